"""Solutions for the largest batch, the fewest cards and the like, as text."""

from typing import Final

from planner.plan.solve import LENGTHS, SolveResult
from planner.present import format as fmt

_TITLES: Final = {
    "micro_batch": "Largest micro-batch that fits",
    "sequence_length": "Longest sequence that fits",
    "batch": "Largest batch that fits",
    "context_length": "Longest context that fits",
    "prompt_length": "Longest prompt that fits",
    "gpu_layers": "Most layers that fit on the card",
    "count": "Fewest cards of this kind",
    "gpu": "Smallest card that fits",
}


def solved_title(asked: str) -> str:
    """Return what was solved for: `Longest context that fits`."""
    return _TITLES[asked]


def solved_sentence(fitting_result: SolveResult, tight_result: SolveResult, card: str | None = None) -> str:
    """Return a solution with its title: `Longest context that fits: 60,039 tokens (up to 62,531 may fit).`.

    `card` is the name of the card if that was solved for; see `solved_text` for the others.
    """
    how = f", {fitting_result.how or tight_result.how}" if fitting_result.how or tight_result.how else ""
    return f"{_TITLES[fitting_result.asked]}: {card or solved_text(fitting_result, tight_result)}{how}."


def solved_text(fitting_result: SolveResult, tight_result: SolveResult) -> str:
    """Return a solution: `6`, `6 (up to 8 may fit)`, `131,072 tokens, the model's maximum`, or why there is none.

    `fitting_result` is the solution with the verdict `fits`, `tight_result` the one with at worst `tight`.
    """
    asked, fits, tight = fitting_result.asked, fitting_result.value, tight_result.value
    if not isinstance(tight, int):
        return f"none, {tight_result.reason}"
    unit = " tokens" if asked in LENGTHS else ""
    if not isinstance(fits, int):
        return f"none for sure, {fmt.integer(tight)}{unit} may fit"
    value = f"{fmt.integer(fits)}{unit}"
    if fitting_result.bounded_by == "model":
        bound = "all of them" if asked == "gpu_layers" else "the model's maximum"
        return f"{value}, {bound}"
    if tight == fits:
        return value
    return (
        f"{value} ({fmt.integer(tight)} may be enough)"
        if tight < fits
        else f"{value} (up to {fmt.integer(tight)} may fit)"
    )
