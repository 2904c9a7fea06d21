"""The cards of a plan where they differ or hold different parts of the model: a row for those that hold the same."""

from functools import cached_property
from typing import TYPE_CHECKING, Final

from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.gui.memory.gib_column import gib_column
from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.gui.widgets.record_model import RecordTableModel
from planner.gui.widgets.row_room import show_rows
from planner.gui.widgets.verdict_badge import verdict_mark
from planner.present import format as fmt
from planner.present.columns import Column, words
from planner.present.memory import MemoryView
from planner.present.parallel import DeviceRow

if TYPE_CHECKING:
    from planner.gui.widgets.cells import Mark
    from planner.gui.widgets.record_table import RecordTable

_MOST_ROWS: Final = 8


def _used(row: DeviceRow) -> str:
    fraction = row.used_fraction
    return fmt.UNKNOWN if fraction is None else fmt.percent(fraction)


def _stage(row: DeviceRow) -> str:
    return "all" if row.share.stage is None else fmt.integer(row.share.stage + 1)


def _verdict(row: DeviceRow) -> str:
    return ", ".join(word for word in (row.verdict, row.scarcity) if word)


_COLUMNS: Final[tuple[Column[DeviceRow], ...]] = (
    words("card", "Cards", lambda row: row.card, width=18),
    Column("stage", "Stage", lambda row: row.share.stage, _stage, align="right", width=5),
    Column("layers", "Layers", lambda row: row.share.layers, lambda row: row.layers, align="right", width=6),
    gib_column("needs", "Needs", lambda row: row.share.total_bytes, lambda row: row.needs, 7),
    Column("used", "Used", lambda row: row.used_fraction, _used, align="right", width=8, meter=True, full=1.0),
    gib_column("usable", "Usable", lambda row: row.share.capacity_bytes, lambda row: row.usable, 7),
    gib_column("free", "Free", lambda row: row.share.free_bytes, lambda row: row.free, 7),
    words(
        "verdict",
        "Verdict",
        _verdict,
        unknown="",
        width=15,
        tooltip=lambda row: f"{_verdict(row)}: shown above" if row.scarcity else row.verdict,
    ),
)


class Devices(QWidget):
    """Shown where not every card holds the same."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._model = RecordTableModel(_COLUMNS, lambda row: f"{row.share.stage} {row.share.gpu} {row.card}", self)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.spacing.tiny)
        self._column.addWidget(make_label(self.tr("Card by card"), font=theme.font(bold=True)))
        self.hide()

    @cached_property
    def table(self) -> "RecordTable":
        """Return the table, made when there is first something to show: few plans need it."""
        from planner.gui.widgets.record_table import RecordTable

        made = RecordTable(self._model, self._theme, markers={"verdict": _mark})
        made.setAccessibleName(self.tr("What each of the cards holds"))
        made.horizontalHeader().setStretchLastSection(True)
        self._column.addWidget(made)
        return made

    @property
    def rows(self) -> tuple[DeviceRow, ...]:
        """Return the rows in their order."""
        return self._model.records

    def set_view(self, view: MemoryView) -> None:
        """Show the cards of another result, if they hold different things."""
        rows = view.devices if view.supported else ()
        self.setVisible(bool(rows))
        self._model.set_records(rows)
        if not rows:
            return
        self.table.show_column("stage", any(row.share.stage for row in rows))
        self.table.show_column("layers", any(row.share.layers is not None for row in rows))
        show_rows(self.table, min(len(rows), _MOST_ROWS))


def _mark(row: DeviceRow) -> "Mark":
    from planner.gui.widgets.cells import Mark

    return Mark(*verdict_mark(row.share.verdict))
