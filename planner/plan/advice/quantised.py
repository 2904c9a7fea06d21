"""Weights in fewer bits, as a change."""

from collections.abc import Mapping

from planner.plan.advice.change import Change


def quantised(
    name: str,
    sentence: str,
    source: str,
    settings: Mapping[str, object],
    applies: Mapping[str, tuple[object, ...]],
    needs: str,
) -> Change:
    """Return a change to weights in fewer bits; how fast those are depends on the kernels that compute with them."""
    return Change(
        name=name,
        lever="weights",
        sentence=sentence,
        source=source,
        settings=settings,
        applies=applies,
        cost="time",
        slower_by_about=None,
        costs="speed depends on the kernels",
        risk="small",
        needs=needs,
    )
