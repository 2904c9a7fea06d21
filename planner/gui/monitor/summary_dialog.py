"""What a recording came to: energy, cost, averages and peaks of each card."""

from typing import Final

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from planner.gui.monitor.tariff import TariffField
from planner.gui.theme import Theme
from planner.gui.widgets.closing_buttons import closing_buttons
from planner.gui.widgets.label import make_label
from planner.gui.widgets.record_model import RecordTableModel
from planner.gui.widgets.record_table import RecordTable
from planner.monitor.recording.recording import Recording
from planner.monitor.recording.summary import Summary
from planner.present.monitor.recording import SUMMARY_COLUMNS, recording_line, summary_lines
from planner.present.record_text import to_tsv

_SIZE: Final = QSize(1040, 340)


class SummaryDialog(QDialog):
    """Shows a summary; `tariff_chosen` carries another price of a kWh or none.

    `replay_wanted` and `export_wanted` carry the recording.
    """

    tariff_chosen = Signal(object)
    replay_wanted = Signal(object)
    export_wanted = Signal(object)

    def __init__(self, recording: Recording, found: Summary, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"What {recording.path.name} came to")
        self.recording, self._found = recording, found
        self._answer = make_label(font=theme.font("title", bold=True), wrap=True)
        self._about = make_label(role="muted", wrap=True)
        self.tariff = TariffField(found.usd_per_kwh)
        self._model = RecordTableModel(SUMMARY_COLUMNS, lambda card: card.device.uuid, self)
        self.table = RecordTable(self._model, theme)
        self.table.setAccessibleName("Summary of each card: averages and peaks")
        self.replay, self.export = QPushButton("&Replay it"), QPushButton("&Export…")
        self.copy = QPushButton("&Copy")
        self._lay_out(theme)
        self.tariff.valueChanged.connect(self._on_tariff)
        self.copy.clicked.connect(self._copy_text)
        self.replay.clicked.connect(self._on_replay)
        self.export.clicked.connect(lambda: self.export_wanted.emit(self.recording))
        self._show()

    @property
    def text(self) -> str:
        """Return all that is shown."""
        lines = summary_lines(self.recording, self._found)
        return "\n".join([recording_line(self.recording), *lines, to_tsv(SUMMARY_COLUMNS, self._found.cards)])

    def _show(self) -> None:
        first, *others = summary_lines(self.recording, self._found)
        self._answer.setText(first)
        self._about.setText("\n".join([recording_line(self.recording), *others]))
        self._model.set_records(self._found.cards)

    @Slot()
    def _on_tariff(self) -> None:
        self._found = self._found.at(self.tariff.usd_per_kwh)
        self._show()
        self.tariff_chosen.emit(self.tariff.usd_per_kwh)

    @Slot()
    def _on_replay(self) -> None:
        self.replay_wanted.emit(self.recording)
        self.close()

    @Slot()
    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self.text)

    def _lay_out(self, theme: Theme) -> None:
        price = QHBoxLayout()
        label = make_label("&Electricity costs")
        label.setBuddy(self.tariff)
        price.addWidget(label)
        price.addWidget(self.tariff)
        price.addStretch(1)
        buttons = closing_buttons(self, self.replay, self.export, self.copy)
        layout = QVBoxLayout(self)
        layout.setSpacing(theme.spacing.small)
        layout.addWidget(self._answer)
        layout.addWidget(self._about)
        layout.addLayout(price)
        layout.addWidget(self.table, 1)
        layout.addWidget(make_label("Pairs are the average and the peak.", "muted"))
        layout.addWidget(buttons)
        self.resize(_SIZE)
