"""Inference programs that are recognized among the processes on a card."""

from typing import Final

# vLLM names its processes VLLM::EngineCore, SGLang sglang::scheduler.
MEMORY_RESERVING_PROGRAMS: Final = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
"""Titles of programs that reserve a fixed fraction of the card's memory at start, by a part of the command line."""
