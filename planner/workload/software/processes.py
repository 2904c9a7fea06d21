"""Programs that are recognized among the processes on a card."""

from typing import Final

# vLLM names its processes VLLM::EngineCore, SGLang sglang::scheduler.
CARD_FILLING: Final = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
"""Titles of programs that reserve a fixed share of the card at start, by a part of their command line."""
