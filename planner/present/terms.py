"""What the terms of the glossary are in a plan, as a sentence."""

from collections.abc import Callable, Mapping
from typing import Final

from planner.plan.evaluate import Evaluation


def in_plan(term: str, evaluation: Evaluation) -> str:
    """Return what the glossary term called `term` is in the evaluated plan; empty for a term without a figure there."""
    figure = _FIGURES.get(term)
    text = "" if figure is None else figure(evaluation)
    return f"In your plan: {text}." if text else ""


_FIGURES: Final[Mapping[str, Callable[[Evaluation], str]]] = {}
"""The figure of each term that has one, as the end of a sentence; empty where a plan lacks it."""
