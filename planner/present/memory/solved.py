"""Solutions for the largest batch, the fewest cards and the like, as text."""

from typing import Final

from planner.plan.solve import SolveResult
from planner.present import format as fmt

_TITLES: Final = {
    "micro_batch": "Largest micro-batch that fits",
    "sequence_length": "Longest sequence that fits, tokens",
    "batch": "Largest batch that fits",
    "context_length": "Longest context that fits, tokens",
    "prompt_length": "Longest prompt that fits, tokens",
    "gpu_layers": "Most layers on the card that fit",
    "count": "Fewest cards of this kind",
    "gpu": "Smallest card that fits",
}


def solved_sentence(fitting_result: SolveResult, tight_result: SolveResult, card: str | None = None) -> str:
    """Return a solution with its title: `Largest micro-batch that fits: 6, up to 8 tight.`.

    `card` is the name of the card if that was solved for; see `solved_text` for the others.
    """
    how = f", {fitting_result.how or tight_result.how}" if fitting_result.how or tight_result.how else ""
    return f"{_TITLES[fitting_result.asked]}: {card or solved_text(fitting_result, tight_result)}{how}."


def solved_text(fitting_result: SolveResult, tight_result: SolveResult) -> str:
    """Return a solution: `6`, `6, up to 8 tight`, `8, tight`, `131,072, the model's maximum`, or why there is none.

    `fitting_result` is the solution with the verdict `fits`, `tight_result` the one with at worst `tight`.
    """
    if not isinstance(tight_result.value, int):
        return f"none, {tight_result.reason}"
    if not isinstance(fitting_result.value, int):
        return f"{fmt.integer(tight_result.value)}, tight"
    if fitting_result.bounded_by == "model":
        bound = "all of them" if fitting_result.asked == "gpu_layers" else "the model's maximum"
        return f"{fmt.integer(fitting_result.value)}, {bound}"
    if tight_result.value == fitting_result.value:
        return fmt.integer(fitting_result.value)
    if tight_result.value < fitting_result.value:
        return f"{fmt.integer(fitting_result.value)}, or {fmt.integer(tight_result.value)} tight"
    return f"{fmt.integer(fitting_result.value)}, up to {fmt.integer(tight_result.value)} tight"
