"""How old a price is, as a colour beside the word for it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from planner.present.cost.prices import Age, age_of

if TYPE_CHECKING:
    from planner.gui.widgets.cells import Mark

AGE_ROLES: Final[Mapping[Age, str]] = {
    "fresh": "ok",
    "recent": "ok",
    "ageing": "warn",
    "old": "bad",
    "history": "bad",
    "undated": "muted",
}


class _Aged(Protocol):
    @property
    def age_days(self) -> int | None: ...


def age_mark(row: _Aged) -> "Mark":
    """Return how the age of a row is set off."""
    from planner.gui.widgets.cells import Mark  # the colours alone are needed from the start on

    return Mark("time", AGE_ROLES[age_of(row.age_days)])
