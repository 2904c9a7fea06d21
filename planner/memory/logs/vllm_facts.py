"""What vLLM says of itself and of its cache beside sizes: version, model, context, and the tokens of the pool."""

import re
from typing import Final, NamedTuple

from planner.memory.logs.text import LogText

BLOCK_TOKENS: Final = 16
"""Tokens of a block of the cache on CUDA cards (vLLM's default for `--block-size`)."""
_VERSION: Final = re.compile(r"(?:LLM engine \(v|vLLM API server version v?)(\d[\w.+]{1,40})")
_MODEL: Final = re.compile(r"(?:model=|Starting to load model )['\"]?([^\s'\",]{1,200}?)(?:\.\.\.|['\",\s])")
_LENGTH: Final = re.compile(r"max_(?:seq|model)_len[=:] ?(\d{1,10})")
_TOKENS: Final = re.compile(r"KV cache size: ([\d,]{1,16}) tokens")
_BLOCKS: Final = re.compile(r"# (?:GPU|CUDA|cuda) blocks: (\d{1,10})")
_CONCURRENCY: Final = re.compile(r"Maximum concurrency for ([\d,]{1,12}) tokens per request")
_MARKS: Final = (
    "LLM engine (v",
    "API server version",
    "Starting to load model",
    "max_seq_len=",
    "max_model_len",
    "KV cache size:",
    " blocks: ",
    "Maximum concurrency for",
)


class VllmFacts(NamedTuple):
    """What was found, the last of each."""

    version: str | None = None
    model: str | None = None
    context_length: int | None = None
    cache_tokens: int | None = None


def read_vllm_facts(text: LogText) -> VllmFacts:
    """Return what the lines of vLLM in `text` say."""
    found: dict[str, str] = {}
    patterns = {
        "version": _VERSION,
        "model": _MODEL,
        "length": _LENGTH,
        "tokens": _TOKENS,
        "blocks": _BLOCKS,
        "concurrency": _CONCURRENCY,
    }
    for line in text.lines_with(*_MARKS):
        for name, pattern in patterns.items():
            match = pattern.search(line.text)
            if match:
                found[name] = match[1]
    tokens, blocks = _number(found.get("tokens")), _number(found.get("blocks"))
    return VllmFacts(
        version=found.get("version"),
        model=found.get("model"),
        context_length=_number(found.get("concurrency")) or _number(found.get("length")),
        cache_tokens=tokens or (blocks * BLOCK_TOKENS if blocks else None),
    )


def _number(text: str | None) -> int | None:
    digits = (text or "").replace(",", "")
    return int(digits) if digits and int(digits) else None
