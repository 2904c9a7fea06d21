"""Programs that are recognised among the processes of a card."""

from typing import Final

CARD_FILLING: Final = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
"""Titles of programs that take a share of the card whatever they need, by a part of their command line."""
