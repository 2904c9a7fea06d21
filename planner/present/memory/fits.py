"""Whether the plan fits, as a cell of a table says it."""

from typing import Final

from planner.memory.result import Verdict
from planner.present import format as fmt
from planner.present.names import VERDICT_WORDS

_RANKS: Final[dict[Verdict, int]] = {"fits": 2, "tight": 1, "does-not-fit": 0}


def fits_rank(verdict: Verdict | None) -> int | None:
    """Return what orders verdicts, the best highest; none where there is no verdict."""
    return None if verdict is None else _RANKS[verdict]


def fits_words(verdict: Verdict | None, unsupported: str) -> str:
    """Return the verdict; `unsupported` says why the hardware cannot run it at all, empty where it can."""
    return VERDICT_WORDS[verdict] if verdict else "Not supported" if unsupported else fmt.UNKNOWN


def fits_tooltip(free_bytes: int | None, reason: str, where: str = "") -> str:
    """Return why there is no verdict, or what is left or missing, `where` being the words that follow."""
    if reason or free_bytes is None:
        return reason
    return f"{fmt.size(abs(free_bytes))} {'free' if free_bytes >= 0 else 'too much'}{where}"
