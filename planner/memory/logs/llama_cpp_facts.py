"""What llama.cpp says of itself beside sizes: build, context and cards."""

import re
from typing import Final, NamedTuple

from planner.memory.logs.text import LogText

_BUILD: Final = re.compile(r"build(?:_info)?: {1,3}b?(\d{3,6})\b")
_CONTEXT: Final = re.compile(r"\bn_ctx {1,12}= (\d{1,10})\b")
_CARD: Final = re.compile(r"Device (\d{1,3}): ([^,]{3,60}), compute capability")
_NAME: Final = re.compile(r"general\.name {1,20}= ([^\r\n]{1,120})")
_MARKS: Final = ("build", "n_ctx ", "compute capability", "general.name ")


class LlamaCppFacts(NamedTuple):
    """What was found: the first build, model and cards, and the last context."""

    version: str | None = None
    model: str | None = None
    context_length: int | None = None
    cards: tuple[str, ...] = ()


def read_llama_cpp_facts(text: LogText) -> LlamaCppFacts:
    """Return what the lines of llama.cpp in `text` say."""
    version = model = context = None
    cards: dict[str, str] = {}
    for line in text.lines_with(*_MARKS):
        build, length, card, name = (pattern.search(line.text) for pattern in (_BUILD, _CONTEXT, _CARD, _NAME))
        version = version or (f"b{build[1]}" if build else None)
        context = int(length[1]) if length else context
        model = model or (name[1].strip() if name else None)
        if card:
            cards[card[1]] = card[2]
    return LlamaCppFacts(version, model, context or None, tuple(cards.values()))
