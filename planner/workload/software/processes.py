"""Inference programs recognized among the processes on a card by their command line."""

from typing import Final

# vLLM names its processes VLLM::EngineCore, SGLang sglang::scheduler.
MEMORY_RESERVING_PROGRAMS: Final = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
"""Titles of programs that reserve a fixed share of a card's memory at start, by a part of their command line."""
