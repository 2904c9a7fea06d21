"""The dialogs of the Monitor tab that show something: the check-up, a diagnosis, a recording's summary, the speed."""

from collections.abc import Iterable, Sequence
from functools import partial
from html import escape
from typing import Final

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QPushButton, QTextBrowser, QWidget

from planner.errors import PlannerError
from planner.gui.monitor.settings_dialog import TariffField
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.dialogs import closing_buttons, copy_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.speed_questions import SpeedQuestions
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.monitor.doctor import Check, binding_version, check_up
from planner.monitor.host.pci import find_cards
from planner.monitor.host.surroundings import look_around
from planner.monitor.readings.latest import Latest
from planner.monitor.recording.recording import Recording
from planner.monitor.recording.summary import Summary
from planner.present.monitor.diagnosis import ChecklistRow, EvidenceRow, Said, checklist_text
from planner.present.monitor.readings import check_lines
from planner.present.monitor.recording import SUMMARY_COLUMNS, recording_line, summary_lines
from planner.present.record_text import to_tsv

_DOCTOR_SIZE: Final = QSize(820, 480)
_CHECK_UP: Final = "monitor doctor"
_SPEED_WIDTH = 480
_SUMMARY_SIZE: Final = QSize(1040, 340)
_HEADS = ("Quantity", "Seen", "Threshold", "Whose")
_VERDICT_SIZE: Final = QSize(820, 600)


class DoctorDialog(QDialog):
    """Shows the checks of what stands now; they are made in the background, since they read files of the system."""

    def __init__(self, latest: Latest, theme: Theme, tasks: TaskRunner, parent: QWidget) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self.setWindowTitle("What works here")
        self.text = QPlainTextEdit(readOnly=True)
        self.text.setPlainText("Looking…")
        self.text.setAccessibleName("What works, what does not, and why")
        self.copy = copy_button(self.text.toPlainText)
        buttons = closing_buttons(self, self.copy)
        in_column(
            make_label("✓ works, ! in part, ✗ does not, · for your information", "muted"),
            (self.text, 1),
            buttons,
            owner=self,
            margins=None,
            spacing=theme.spacing.small,
        )
        self.resize(_DOCTOR_SIZE)
        tasks.run(_CHECK_UP, partial(_checks, latest), self._show, self._fail)

    def done(self, result: int) -> None:
        """Wait for nothing any more."""
        self._tasks.cancel(_CHECK_UP)
        super().done(result)

    def _show(self, checks: Sequence[Check]) -> None:
        self.text.setPlainText(check_lines(checks))

    def _fail(self, error: BaseException) -> None:
        self.text.setPlainText(error.message if isinstance(error, PlannerError) else repr(error))


def _checks(latest: Latest) -> tuple[Check, ...]:
    return check_up(latest, look_around(), find_cards(), binding_version())


class SpeedDialog(QDialog):
    """Each change is one of the plan, and can be undone; time and cost follow it everywhere."""

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.questions = SpeedQuestions(workspace, theme)
        self.questions.set_open(True)
        self.setWindowTitle("Use measured speed")
        self.setMinimumWidth(_SPEED_WIDTH)
        about = (
            "Write what your run prints while it does what the plan says, all cards together. It takes the place of "
            "the estimate: time and cost follow it, on other cards by the ratio of both estimates."
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
        workspace.changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        self.questions.refresh()


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
        self.table = RecordTable(self._model, theme, name="Summary of each card: averages and peaks")
        self.replay, self.export = QPushButton("&Replay it"), QPushButton("&Export…")
        self.copy = copy_button(lambda: self.text)
        self._lay_out(theme)
        self.tariff.valueChanged.connect(self._on_tariff)
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

    def _lay_out(self, theme: Theme) -> None:
        label = make_label("&Electricity costs")
        label.setBuddy(self.tariff)
        price = in_row(label, self.tariff, STRETCH)
        buttons = closing_buttons(self, self.replay, self.export, self.copy)
        in_column(
            self._answer,
            self._about,
            price,
            (self.table, 1),
            make_label("Pairs are the average and the peak.", "muted"),
            buttons,
            owner=self,
            margins=None,
            spacing=theme.spacing.small,
        )
        self.resize(_SUMMARY_SIZE)


def verdict_html(found: Said, checklist: tuple[ChecklistRow, ...], theme: Theme) -> str:
    """Return what was seen, what to try, and what there is to optimise at all, each under its heading."""
    muted = theme.color("muted").name()
    parts = []
    if found.evidence:
        seen = _paragraph(f"For {found.lasted}; seen in the last minutes:")
        parts += [_head("What was seen"), seen, _table(found.evidence, theme)]
    if found.advice:
        parts += [_head("What to try, the likeliest first"), _listed("ol", found.advice)]
    parts.append(_head("What to optimise next, in the order of the guides"))
    parts += [_item(number, row, muted) for number, row in enumerate(checklist, start=1)]
    return "".join(parts)


def _head(text: str) -> str:
    return f"<h4>{escape(text)}</h4>"


def _paragraph(text: str, color: str = "") -> str:
    style = f' style="color: {color}"' if color else ""
    return f"<p{style}>{escape(text)}</p>"


def _listed(tag: str, sentences: Iterable[str]) -> str:
    return f"<{tag}>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</{tag}>"


def _table(rows: Iterable[EvidenceRow], theme: Theme) -> str:
    head = "".join(f'<th align="left">{head}</th>' for head in _HEADS)
    body = "".join(f"<tr>{_cells(row.quantity, row.seen, row.threshold, row.source)}</tr>" for row in rows)
    return f'<table cellspacing="0" cellpadding="{theme.spacing.tiny}"><tr>{head}</tr>{body}</table>'


def _cells(*texts: str) -> str:
    return "".join(f"<td>{escape(text)}</td>" for text in texts)


def _item(number: int, row: ChecklistRow, muted: str) -> str:
    """Return one thing to do: how it stands, why, what was seen, how, and by which guide."""
    title = f"<p><b>{number}. {escape(row.title)}</b>: {escape(row.standing)}<br>{escape(row.why)}</p>"
    seen = _paragraph(row.seen) if row.seen else ""
    return f"{title}{seen}{_listed('ul', row.how)}{_paragraph(f'Source: {row.source}', muted)}"


class VerdictDialog(QDialog):
    """Says what was found of a card, what was seen, and what to try; and what there is to optimise at all."""

    def __init__(
        self, card: str, found: Said, checklist: tuple[ChecklistRow, ...], theme: Theme, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"Diagnosis of {card}")
        copied = "\n\n".join(part for part in (found.sentence, found.details, checklist_text(checklist)) if part)
        sentence = make_label(found.sentence, font=theme.font("title", bold=True), wrap=True)
        self.text = QTextBrowser()
        self.text.setHtml(verdict_html(found, checklist, theme))
        self.text.setAccessibleName("What was seen, what to try, and what to optimise next")
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
