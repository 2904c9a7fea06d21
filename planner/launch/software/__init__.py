"""The programs that plans are written for, and those that are refused, with the reason."""

from typing import Final

from planner.launch.software.accelerate import ACCELERATE
from planner.launch.software.axolotl import AXOLOTL
from planner.launch.software.deepspeed import DEEPSPEED
from planner.launch.software.llama_cpp import LLAMA_SERVER
from planner.launch.software.llama_factory import LLAMA_FACTORY
from planner.launch.software.ollama import OLLAMA
from planner.launch.software.sglang import SGLANG_SERVER
from planner.launch.software.tensorrt_llm import TENSORRT_LLM_SERVER
from planner.launch.software.torchtitan import TORCHTITAN
from planner.launch.software.trl import TRL
from planner.launch.software.vllm import VLLM_SERVER

LAUNCHERS: Final = {
    launcher.name: launcher
    for launcher in (
        VLLM_SERVER,
        SGLANG_SERVER,
        TENSORRT_LLM_SERVER,
        LLAMA_SERVER,
        OLLAMA,
        ACCELERATE,
        DEEPSPEED,
        TORCHTITAN,
        TRL,
        AXOLOTL,
        LLAMA_FACTORY,
    )
}
"""Programs by name, servers first."""
REFUSED: Final = {
    "torchtune": "its recipes are per model; copy one with `tune cp` and set the plan's fields there",
    "litgpt": "its configurations are per model; start from one of its `config_hub`",
    "verl": "its command is one for each cluster; the manual lists its keys for the plan's fields",
    "openrlhf": "its command is one for each cluster; plan with --profile deepspeed --loss full-logits, and set its "
    "options as the manual lists them",
    "unsloth": "it is a Python library without a configuration file; set the plan's fields in your script",
    "megatron-lm": "its arguments describe the model itself, which has to be converted first",
    "liger": "it is a set of kernels: plan with --profile liger, and write for axolotl, trl or llama-factory",
    "ktransformers": "its processor kernels for experts in RAM are not estimated: plan experts in RAM with llama.cpp",
}
"""Reasons why no files are written for a program, by its name."""
