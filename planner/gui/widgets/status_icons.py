"""Icons and color roles of verdicts and price ages."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from PySide6.QtWidgets import QWidget

from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.labels import IconLabel, make_label
from planner.gui.widgets.layout import in_row
from planner.memory.result import Verdict
from planner.present.cost.prices import Age, age_of
from planner.present.memory.verdict import VERDICT_TITLES


class StatusIcon(NamedTuple):
    """Icon with a color role, which also colors the text after the icon."""

    icon: str
    role: str


_ROLES: Final[dict[Verdict, str]] = {"fits": "ok", "tight": "warn", "does-not-fit": "bad"}
AGE_ROLES: Final[Mapping[Age, str]] = {
    "fresh": "ok",
    "recent": "ok",
    "aging": "warn",
    "old": "bad",
    "outdated": "bad",
    "undated": "muted",
}


def verdict_icon(verdict: Verdict | None) -> StatusIcon:
    """Return the icon and color role of a verdict."""
    return StatusIcon("unknown", "muted") if verdict is None else StatusIcon(verdict, _ROLES[verdict])


class VerdictBadge(QWidget):
    """Badge of a memory verdict: its icon and its text, side by side."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._mark = IconLabel(theme)
        self._text = make_label(font=theme.font(bold=True))
        in_row(self._mark, (self._text, 1), owner=self, spacing=theme.spacing.tiny)

    def set_verdict(self, verdict: Verdict | None, text: str = "") -> None:
        """Show a verdict with `text`, or with the verdict's name if `text` is empty."""
        self._text.setText(text or ("Unknown" if verdict is None else VERDICT_TITLES[verdict]))
        self.setAccessibleName(self._text.text())
        icon = verdict_icon(verdict)
        self._mark.show_icon(icon)
        set_style_role(self._text, icon.role)


class _HasAge(Protocol):
    """Row with the age of its price."""

    @property
    def age_days(self) -> int | None: ...


def age_icon(row: _HasAge) -> StatusIcon:
    """Return the icon and color role of a row's price age."""
    return StatusIcon("time", AGE_ROLES[age_of(row.age_days)])
