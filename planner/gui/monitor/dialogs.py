"""Dialogs of the Monitor tab: checks of the machine, a diagnosis, a recording's summary, measured speed, trackers."""

from collections.abc import Iterable, Sequence
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize, QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QGridLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QTextBrowser,
    QWidget,
)

from planner.errors import PlannerError
from planner.gui.monitor.settings_dialog import TariffField
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.dialogs import closing_buttons, copy_button
from planner.gui.widgets.inputs.choice_field import ChoiceBox
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.speed_questions import SpeedQuestions
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.installation import extra_command
from planner.monitor.doctor import SetupCheck, binding_version, check_setup
from planner.monitor.host.environment import detect_environment, find_cards
from planner.monitor.readings.latest import Latest
from planner.monitor.recording.recording import MonitorRecording
from planner.monitor.recording.summary import RecordingSummary
from planner.present.columns import to_tsv
from planner.present.monitor.card_details import CardDetail, details_text
from planner.present.monitor.diagnosis import ChecklistRow, DiagnosisView, EvidenceRow, checklist_text
from planner.present.monitor.readings import setup_check_text
from planner.present.monitor.recording import SUMMARY_COLUMNS, recording_line, summary_lines
from planner.present.trackers.run import TrackerName
from planner.present.trackers.tracking import TRACKER_TITLES

_DOCTOR_SIZE: Final = QSize(820, 480)
_CHECK_UP: Final = "monitor doctor"
_LOOK_MS, _MOST_LOOKS = 100, 50
_SPEED_WIDTH = 480
_SUMMARY_SIZE: Final = QSize(1200, 340)
_HEADS = ("Quantity", "Measured", "Threshold", "Source")
_VERDICT_SIZE: Final = QSize(820, 600)


class DoctorDialog(QDialog):
    """Dialog that checks this machine in the background and shows the results, once it has been read."""

    def __init__(self, latest: Latest, theme: Theme, tasks: TaskRunner, parent: QWidget) -> None:
        super().__init__(parent)
        self._latest, self._tasks = latest, tasks
        self._looks_left = _MOST_LOOKS
        self._look = QTimer(self, interval=_LOOK_MS)
        self.setWindowTitle("Check this machine")
        self.text = QPlainTextEdit(readOnly=True)
        self.text.setPlainText("Checking…")
        self.text.setAccessibleName("Results of the checks")
        self.text.setToolTip("What works on this machine, and what to do about the rest")
        self.copy = copy_button(self.text.toPlainText)
        buttons = closing_buttons(self, self.copy)
        in_column(
            make_label("✓ works, ! works in part, ✗ does not work, · for information", "muted"),
            (self.text, 1),
            buttons,
            owner=self,
            margins=None,
            spacing=theme.spacing.small,
        )
        self.resize(_DOCTOR_SIZE)
        self._look.timeout.connect(self._check_what_is_read)
        self._look.start()
        self._check_what_is_read()

    @Slot()
    def _check_what_is_read(self) -> None:
        """Check the machine after its first readings, which come a moment after the start, or without them."""
        self._looks_left -= 1
        if self._latest.monotonic_seconds is None and self._looks_left:
            return
        self._look.stop()
        self._tasks.run(_CHECK_UP, partial(_setup_checks, self._latest), self._show_checks, self._show_error)

    def done(self, result: int) -> None:
        """Close the dialog and cancel the checks that are still running."""
        self._look.stop()
        self._tasks.cancel(_CHECK_UP)
        super().done(result)

    def _show_checks(self, checks: Sequence[SetupCheck]) -> None:
        self.text.setPlainText(setup_check_text(checks))

    def _show_error(self, error: BaseException) -> None:
        self.text.setPlainText(error.message if isinstance(error, PlannerError) else repr(error))


def _setup_checks(latest: Latest) -> tuple[SetupCheck, ...]:
    return check_setup(latest, detect_environment(), find_cards(), binding_version())


class SpeedDialog(QDialog):
    """Dialog for the measured speed of a run, which becomes part of the plan and can be undone."""

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.questions = SpeedQuestions(workspace, theme)
        self.questions.set_open(True)
        self.setWindowTitle("Use measured speed")
        self.setMinimumWidth(_SPEED_WIDTH)
        about = (
            "Enter the speed that your run reports for this plan, summed over all GPUs. It replaces the estimate in "
            "time and cost; for other GPUs, it is scaled by the ratio of their estimates."
        )
        buttons = closing_buttons(self)
        in_column(
            make_label(about, wrap=True),
            self.questions,
            buttons,
            owner=self,
            margins=None,
            spacing=theme.spacing.medium,
        )
        workspace.changed.connect(self._update_questions)
        self._update_questions()

    @Slot()
    def _update_questions(self) -> None:
        self.questions.refresh()


class SummaryDialog(QDialog):
    """Dialog with the summary of a recording: energy, cost, averages and peaks.

    `tariff_chosen` carries the new price of a kWh or None; `replay_wanted` and `export_wanted` carry the recording.
    """

    tariff_chosen = Signal(object)
    replay_wanted = Signal(object)
    export_wanted = Signal(object)

    def __init__(self, recording: MonitorRecording, summary: RecordingSummary, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"Summary of {recording.path.name}")
        self.recording, self._summary = recording, summary
        self._answer = make_label(font=theme.font("title", bold=True), wrap=True)
        self._about = make_label(role="muted", wrap=True)
        self.tariff = TariffField(summary.usd_per_kwh)
        self._model = RecordTableModel(SUMMARY_COLUMNS, lambda card: card.device.uuid, self)
        self.table = RecordTable(self._model, theme, name="Summary of each GPU: averages and peaks")
        self.replay, self.export = QPushButton("&Replay"), QPushButton("&Export…")
        self.copy = copy_button(lambda: self.text)
        self._lay_out(theme)
        self.tariff.finished.connect(self._on_tariff_changed)
        self.replay.clicked.connect(self._replay_and_close)
        self.export.clicked.connect(lambda: self.export_wanted.emit(self.recording))
        self._show_summary()

    @property
    def text(self) -> str:
        """Return the summary as text: energy, cost, notes, and the table of cards."""
        lines = summary_lines(self.recording, self._summary)
        return "\n".join([recording_line(self.recording), *lines, to_tsv(SUMMARY_COLUMNS, self._summary.cards)])

    def _show_summary(self) -> None:
        first, *others = summary_lines(self.recording, self._summary)
        self._answer.setText(first)
        self._about.setText("\n".join([recording_line(self.recording), *others]))
        self._model.set_records(self._summary.cards)

    @Slot()
    def _on_tariff_changed(self) -> None:
        self._summary = self._summary.at_price(self.tariff.usd_per_kwh)
        self._show_summary()
        self.tariff_chosen.emit(self.tariff.usd_per_kwh)

    @Slot()
    def _replay_and_close(self) -> None:
        self.replay_wanted.emit(self.recording)
        self.close()

    def _lay_out(self, theme: Theme) -> None:
        label = make_label("&Electricity costs")
        label.setBuddy(self.tariff)
        price = in_row(label, self.tariff, make_label("$ per kWh"), STRETCH)
        buttons = closing_buttons(self, self.replay, self.export, self.copy)
        in_column(
            self._answer,
            self._about,
            price,
            (self.table, 1),
            make_label("Pairs of values are the average and the peak.", "muted"),
            buttons,
            owner=self,
            margins=None,
            spacing=theme.spacing.small,
        )
        self.resize(_SUMMARY_SIZE)


def verdict_html(
    diagnosis: DiagnosisView, details: Sequence[CardDetail], checklist: tuple[ChecklistRow, ...], theme: Theme
) -> str:
    """Return the evidence and the advice of a diagnosis, the card's details and the checklist as HTML."""
    muted = theme.color("muted").name()
    parts = []
    if diagnosis.evidence:
        since = _paragraph_html(f"For {diagnosis.lasted}; readings of the last minutes:")
        parts += [_heading_html("Evidence"), since, _evidence_table_html(diagnosis.evidence, theme)]
    if diagnosis.unreported:
        parts.append(_paragraph_html(diagnosis.unreported, muted))
    if diagnosis.advice:
        parts += [_heading_html("What to try, most likely first"), _list_html("ol", diagnosis.advice)]
    if details:
        parts += [_heading_html("The GPU"), _details_table_html(details, theme)]
    if checklist:
        parts.append(_heading_html("Optimization checklist, in the order of the guides"))
    parts += [_checklist_item_html(number, row, muted) for number, row in enumerate(checklist, start=1)]
    return "".join(parts)


def _heading_html(text: str) -> str:
    return f"<h4>{escape(text)}</h4>"


def _paragraph_html(text: str, color: str = "") -> str:
    style = f' style="color: {color}"' if color else ""
    return f"<p{style}>{escape(text)}</p>"


def _list_html(tag: str, sentences: Iterable[str]) -> str:
    return f"<{tag}>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</{tag}>"


def _evidence_table_html(rows: Iterable[EvidenceRow], theme: Theme) -> str:
    head = "".join(f'<th align="left">{head}</th>' for head in _HEADS)
    body = "".join(f"<tr>{_cells_html(row.quantity, row.seen, row.threshold, row.source)}</tr>" for row in rows)
    return f'<table cellspacing="0" cellpadding="{theme.spacing.tiny}"><tr>{head}</tr>{body}</table>'


def _details_table_html(details: Iterable[CardDetail], theme: Theme) -> str:
    muted = theme.color("muted").name()
    body = "".join(
        f'<tr><td style="color: {muted}">{escape(detail.title)}</td><td>{escape(detail.text)}</td></tr>'
        for detail in details
    )
    return f'<table cellspacing="0" cellpadding="{theme.spacing.tiny}">{body}</table>'


def _cells_html(*texts: str) -> str:
    return "".join(f"<td>{escape(text)}</td>" for text in texts)


def _checklist_item_html(number: int, row: ChecklistRow, muted: str) -> str:
    """Return a checklist item as HTML: its status, reason, readings, instructions and source."""
    title = f"<p><b>{number}. {escape(row.title)}</b>: {escape(row.standing)}<br>{escape(row.why)}</p>"
    seen = _paragraph_html(row.seen) if row.seen else ""
    return f"{title}{seen}{_list_html('ul', row.how)}{_paragraph_html(f'Source: {row.source}', muted)}"


class VerdictDialog(QDialog):
    """Dialog with the diagnosis of a card: evidence, advice, what else it reports, and optimization checklist."""

    def __init__(
        self,
        card: str,
        diagnosis: DiagnosisView,
        details: Sequence[CardDetail],
        checklist: tuple[ChecklistRow, ...],
        theme: Theme,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"Diagnosis of {card}")
        copied = "\n\n".join(
            part
            for part in (diagnosis.sentence, diagnosis.details, details_text(details), checklist_text(checklist))
            if part
        )
        sentence = make_label(diagnosis.sentence, font=theme.font("title", bold=True), wrap=True)
        self.text = QTextBrowser()
        self.text.setHtml(verdict_html(diagnosis, details, checklist, theme))
        self.text.setPlaceholderText("The readings of this moment say no more.")
        self.text.setAccessibleName("Evidence, advice, the GPU, and optimization checklist")
        self._copy = copy_button(lambda: copied)
        buttons = closing_buttons(self, self._copy)
        in_column(
            make_label(card, "muted"),
            sentence,
            (self.text, 1),
            buttons,
            owner=self,
            margins=None,
            spacing=theme.spacing.small,
        )
        self.resize(_VERDICT_SIZE)


_ABOUT: Final[dict[TrackerName, str]] = {
    "tensorboard": "An event file in a folder of its own, with every reading at its true time. Show it with "
    "tensorboard --logdir FOLDER.",
    "mlflow": "A run in the database mlflow.db of the folder, with means of ten seconds under MLflow's own names. Show "
    "it with mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db.",
    "wandb": "An offline run. Nothing leaves this machine until you upload it with wandb sync.",
}
_WIDTH: Final = 560


class TrackerDialog(QDialog):
    """Dialog for a run of a tracker, exported or `live`; `chosen` carries the tracker's name and the folder."""

    chosen = Signal(str, object)

    def __init__(self, name: str, folder: Path, theme: Theme, parent: QWidget, *, live: bool = False) -> None:
        super().__init__(parent)
        action = "Track {} while it is recorded" if live else "Export {} to an experiment tracker"
        self.setWindowTitle(action.format(name))
        self.setMinimumWidth(_WIDTH)
        self.trackers = ChoiceBox(theme)
        for tracker, title in TRACKER_TITLES.items():
            self.trackers.addItem(title, tracker)
        self.folder = QLineEdit(str(folder))
        self.browse = QPushButton("&Browse…")
        self.about = make_label(role="muted", wrap=True)
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.export = self.buttons.addButton("&Track" if live else "&Export", QDialogButtonBox.ButtonRole.AcceptRole)
        self._lay_out(theme)
        self.trackers.currentIndexChanged.connect(self._show_about)
        self.trackers.setToolTip("Experiment tracker that shows the readings")
        self.folder.setToolTip("Folder of the tracker's runs; it is made if it does not exist")
        self.browse.setToolTip("Choose the folder")
        self.folder.textChanged.connect(self._show_about)
        self.browse.clicked.connect(self._choose_folder)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self._show_about()

    @property
    def tracker(self) -> TrackerName:
        """Return the chosen tracker."""
        tracker: TrackerName = self.trackers.currentData()
        return tracker

    def accept(self) -> None:
        """Close the dialog and tell what was chosen."""
        super().accept()
        self.chosen.emit(self.tracker, Path(self.folder.text().strip()).expanduser())

    @Slot()
    def _show_about(self) -> None:
        tracker = self.tracker
        is_missing = tracker != "tensorboard" and find_spec(tracker) is None
        hint = f"\n\nIts package is not installed. Run: {extra_command(tracker)}" if is_missing else ""  # type: ignore[arg-type]
        self.about.setText(_ABOUT[tracker] + hint)
        self.export.setEnabled(not is_missing and bool(self.folder.text().strip()))
        self.resize(self.width(), max(self.height(), self.heightForWidth(self.width())))

    @Slot()
    def _choose_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Folder of the tracker's runs", self.folder.text())
        if chosen:
            self.folder.setText(chosen)

    def _lay_out(self, theme: Theme) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.spacing.medium)
        grid.setVerticalSpacing(theme.spacing.small)
        for row, (title, field) in enumerate((("&Tracker", self.trackers), ("&Folder", self.folder))):
            label = make_label(title)
            label.setBuddy(field)
            field.setAccessibleName(title.replace("&", ""))
            grid.addWidget(label, row, 0)
        grid.addWidget(self.trackers, 0, 1)
        grid.addLayout(in_row((self.folder, 1), self.browse, spacing=theme.spacing.small), 1, 1)
        in_column(grid, self.about, self.buttons, owner=self, margins=None, spacing=theme.spacing.medium)
