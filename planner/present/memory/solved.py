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
    "gpu_layers": "Most layers that fit on the GPU",
    "count": "Fewest GPUs of this kind",
    "gpu": "Smallest GPU that fits",
}

_COUNTED: Final = {"micro_batch": "a micro-batch of", "batch": "a batch of", "gpu_layers": "layer", "count": "GPU"}


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

    A context whose prompt the plan leaves open names it: `60,039 tokens, with a prompt of 4,096`.

    `fitting_result` is the solution with the verdict `fits`, `tight_result` the one with at worst `tight`.
    """
    asked, fits, tight = fitting_result.asked, fitting_result.value, tight_result.value
    if not isinstance(tight, int):
        return f"none, {tight_result.reason}"
    unit = " tokens" if asked in LENGTHS else ""
    if not isinstance(fits, int):
        return f"none for sure; {_counted(asked, tight)} may {'be enough' if asked == 'count' else 'fit'}"
    return f"{fmt.integer(fits)}{unit}{_bound_text(fitting_result, fits, tight)}{_prompt_text(fitting_result)}"


def _bound_text(fitting_result: SolveResult, fits: int, tight: int) -> str:
    """Return what limits the value that surely fits, and the value that may fit."""
    if fitting_result.bounded_by == "model":
        if fitting_result.asked == "gpu_layers":
            return f": all {fmt.integer(fits - 1)} and the output layer"
        return ", the model's maximum"
    if tight == fits:
        return ""
    return f" ({fmt.integer(tight)} may be enough)" if tight < fits else f" (up to {fmt.integer(tight)} may fit)"


def _prompt_text(solved: SolveResult) -> str:
    """Return the prompt that was assumed in a context, if the plan leaves it open."""
    return "" if solved.prompt is None else f", with a prompt of {fmt.integer(solved.prompt)}"


def _counted(asked: str, value: int) -> str:
    """Return a value with what it counts: `a batch of 1`, `2,048 tokens`, `2 GPUs`."""
    one = _COUNTED.get(asked, "token")
    return f"{one} {fmt.integer(value)}" if one.endswith(" of") else fmt.plural(value, one)
