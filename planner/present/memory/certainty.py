"""How sure an answer is, in words: the chance that it fits, and which bytes are counted and which assumed."""

from typing import Final

from planner.memory.result import MemoryResult
from planner.present import format as fmt
from planner.present.names import CERTAINTY_WORDS

_ODDS: Final = ((1, 20), (1, 10), (1, 5), (1, 4), (1, 3), (1, 2), (2, 3), (3, 4), (4, 5), (9, 10), (19, 20))
_ALMOST_ALL: Final = 0.985
"""Nearer to all, or to none, than to 19 or 1 of 20."""


def odds(probability: float) -> str:
    """Return a probability as people say it: `about 3 in 4`, `more than 98 in 100`."""
    if probability >= _ALMOST_ALL:
        return "more than 98 in 100"
    if probability < 1 - _ALMOST_ALL:
        return "less than 2 in 100"
    hits, tries = min(_ODDS, key=lambda pair: abs(pair[0] / pair[1] - probability))
    return f"about {hits} in {tries}"


def certainty_sentences(memory: MemoryResult) -> str:
    """Return how sure the bytes of the peak are, and the chance that the card has room for them.

    The chance is left out where it is not known, and of what is tight: there it stands in the answer itself.
    """
    return " ".join(sentence for sentence in (_split(memory), _chance(memory)) if sentence)


def _split(memory: MemoryResult) -> str:
    counted = memory.certain_bytes
    parts = (("exact", counted.exact), ("measured", counted.measured), ("assumed", counted.assumed))
    said = ", ".join(f"{CERTAINTY_WORDS[how]} {fmt.size(size)}" for how, size in parts if size)
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _chance(memory: MemoryResult) -> str:
    chance = memory.fit_probability
    return "" if chance is None or memory.verdict == "tight" else f"Chance that it fits: {odds(chance)}."
