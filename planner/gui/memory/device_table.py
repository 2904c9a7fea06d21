"""The table of a plan's cards, apart from the place where it stands: few plans need it."""

from typing import Final

from planner.gui.memory.gib_column import gib_column
from planner.gui.theme import Theme
from planner.gui.widgets.cells import Mark
from planner.gui.widgets.record_model import RecordTableModel
from planner.gui.widgets.record_table import RecordTable
from planner.gui.widgets.row_room import show_rows
from planner.gui.widgets.verdict_badge import verdict_mark
from planner.present import format as fmt
from planner.present.columns import Column, words
from planner.present.plan.parallel import DeviceRow

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


class DeviceTable(RecordTable):
    """A row for the cards that hold the same."""

    def __init__(self, theme: Theme) -> None:
        model = RecordTableModel(_COLUMNS, lambda row: f"{row.share.stage} {row.share.gpu} {row.card}")
        super().__init__(model, theme, markers={"verdict": _mark})
        model.setParent(self)
        self.setAccessibleName("What each of the cards holds")
        self.horizontalHeader().setStretchLastSection(True)

    def show_devices(self, rows: tuple[DeviceRow, ...]) -> None:
        """Show other rows, as many as have room without scrolling."""
        self.records().set_records(rows)
        self.show_column("stage", any(row.share.stage for row in rows))
        self.show_column("layers", any(row.share.layers is not None for row in rows))
        show_rows(self, min(len(rows), _MOST_ROWS))


def _mark(row: DeviceRow) -> Mark:
    return Mark(*verdict_mark(row.share.verdict))
