"""Table of memory per card, for plans whose cards differ or hold different parts of the model."""

from collections.abc import Callable
from typing import Final, TypeVar

from PySide6.QtWidgets import QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.labels import make_label, verdict_icon
from planner.gui.widgets.layout import in_column
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable, show_rows
from planner.present import format as fmt
from planner.present.columns import Column, text_column
from planner.present.memory.view import MemoryView
from planner.present.plan.parallel import DeviceRow

Row = TypeVar("Row")
_MOST_ROWS: Final = 8


def gib_column(
    key: str,
    title: str,
    get_bytes: Callable[[Row], int | None],
    get_text: Callable[[Row], str],
    width: int,
    unknown: str = fmt.UNKNOWN,
    about: str = "",
) -> Column[Row]:
    """Return a column that shows `get_text` in GiB, with a tooltip of the exact number of bytes, or `unknown`."""
    return Column(
        key,
        title,
        get_bytes,
        get_text,
        unit="GiB",
        align="right",
        width=width,
        tooltip=lambda row: fmt.exact_bytes(get_bytes(row), unknown),
        help=about,
    )


def _used_percent_text(row: DeviceRow) -> str:
    fraction = row.used_fraction
    return fmt.UNKNOWN if fraction is None else fmt.percent(fraction)


def _stage_text(row: DeviceRow) -> str:
    return "all" if row.share.stage is None else fmt.integer(row.share.stage + 1)


_COLUMNS: Final[tuple[Column[DeviceRow], ...]] = (
    text_column("card", "GPUs", lambda row: row.card, width=18, about="GPUs that hold the same parts of the plan"),
    Column(
        "stage",
        "Stage",
        lambda row: row.share.stage,
        _stage_text,
        align="right",
        width=5,
        help="Pipeline stage that these GPUs run",
    ),
    Column(
        "layers",
        "Layers",
        lambda row: row.share.layers,
        lambda row: row.layers,
        align="right",
        width=6,
        help="Number of layers on each of these GPUs",
    ),
    gib_column(
        "needs",
        "Needs",
        lambda row: row.share.total_bytes,
        lambda row: row.needs,
        7,
        about="Memory that the plan needs on each of these GPUs",
    ),
    Column(
        "used",
        "Used",
        lambda row: row.used_fraction,
        _used_percent_text,
        align="right",
        width=8,
        meter=True,
        full=1.0,
        help="Share of the usable memory that the plan needs",
    ),
    gib_column(
        "usable",
        "Usable",
        lambda row: row.share.capacity_bytes,
        lambda row: row.usable,
        7,
        about="Memory that a program can allocate on an otherwise empty GPU",
    ),
    gib_column(
        "free",
        "Free",
        lambda row: row.share.free_bytes,
        lambda row: row.free,
        7,
        about="Usable memory that the plan and other programs leave",
    ),
    text_column(
        "verdict",
        "Verdict",
        lambda row: row.verdict,
        unknown="",
        width=15,
        tooltip=lambda row: f"{row.verdict}, {row.scarcity}: shown above" if row.scarcity else row.verdict,
        about="Whether the plan fits on these GPUs",
    ),
)


class DeviceTable(QWidget):
    """Memory table with a row per group of identical cards; hidden if all cards hold the same part of the model."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.rows: tuple[DeviceRow, ...] = ()
        self._model = RecordTableModel(_COLUMNS, lambda row: f"{row.share.stage} {row.share.gpu} {row.card}", self)
        self.table = RecordTable(
            self._model,
            theme,
            markers={"verdict": lambda row: verdict_icon(row.share.verdict)},
            name="Memory of each GPU",
        )
        self.table.horizontalHeader().setStretchLastSection(True)
        heading = make_label("Memory of each GPU", font=theme.font(bold=True))
        in_column(heading, self.table, owner=self, spacing=theme.spacing.tiny)

    def set_view(self, view: MemoryView) -> None:
        """Show the memory of each card if the cards hold different parts of the model."""
        self.rows = rows = view.devices if view.supported else ()
        self.setVisible(bool(rows))
        self._model.set_records(rows)
        self.table.show_column("stage", any(row.share.stage for row in rows))
        self.table.show_column("layers", any(row.share.layers is not None for row in rows))
        show_rows(self.table, min(len(rows), _MOST_ROWS))
