"""The cards of a plan where they differ or hold different parts of the model: a row for those that hold the same."""

from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.present.memory.view import MemoryView
from planner.present.plan.parallel import DeviceRow

if TYPE_CHECKING:
    from planner.gui.memory.device_table import DeviceTable


class Devices(QWidget):
    """Shown where not every card holds the same."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.rows: tuple[DeviceRow, ...] = ()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.spacing.tiny)
        self._column.addWidget(make_label("Card by card", font=theme.font(bold=True)))
        self.hide()

    @cached_property
    def table(self) -> "DeviceTable":
        """Return the table, made when there is first something to show: few plans need it."""
        from planner.gui.memory.device_table import DeviceTable

        made = DeviceTable(self._theme)
        self._column.addWidget(made)
        return made

    def set_view(self, view: MemoryView) -> None:
        """Show the cards of another result, if they hold different things."""
        self.rows = view.devices if view.supported else ()
        self.setVisible(bool(self.rows))
        if self.rows:
            self.table.show_devices(self.rows)
