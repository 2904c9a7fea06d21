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


def solved_sentence(surely: SolveResult, barely: SolveResult, card: str | None = None) -> str:
    """Return a solution with its title: `Largest micro-batch that fits: 6, up to 8 tight.`.

    `card` is the name of the card if that was solved for; see `solved_words` for the others.
    """
    how = f", {surely.how or barely.how}" if surely.how or barely.how else ""
    return f"{_TITLES[surely.asked]}: {card or solved_text(surely, barely)}{how}."


def solved_text(surely: SolveResult, barely: SolveResult) -> str:
    """Return a solution: `6`, `6, up to 8 tight`, `8, tight`, `131,072, the model's maximum`, or why there is none.

    `surely` is the solution with the verdict `fits`, `barely` the one with at worst `tight`.
    """
    if not isinstance(barely.value, int):
        return f"none, {barely.reason}"
    if not isinstance(surely.value, int):
        return f"{fmt.integer(barely.value)}, tight"
    if surely.bounded_by == "model":
        bound = "all of them" if surely.asked == "gpu_layers" else "the model's maximum"
        return f"{fmt.integer(surely.value)}, {bound}"
    if barely.value == surely.value:
        return fmt.integer(surely.value)
    if barely.value < surely.value:
        return f"{fmt.integer(surely.value)}, or {fmt.integer(barely.value)} tight"
    return f"{fmt.integer(surely.value)}, up to {fmt.integer(barely.value)} tight"
