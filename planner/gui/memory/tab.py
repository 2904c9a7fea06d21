"""The Memory tab: verdict, breakdown, suggestions, curves and traces of a plan."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.gui.memory.advice import AdvicePanel
from planner.gui.memory.breakdown import Breakdown, PhaseBars
from planner.gui.memory.controls import QuestionColumn
from planner.gui.memory.exploration import ExplorationPanel
from planner.gui.memory.stacked_bar import StackedBar
from planner.gui.memory.trace.controller import OtherCardStrip, TraceController, TracedRunForm, TraceStatus
from planner.gui.memory.trace.tracer import Start, Tracer, start_in_child
from planner.gui.tab import QuestionTab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.labels import IconLabel, make_label, verdict_icon
from planner.gui.widgets.layout import STRETCH, SideBySide, add_items, in_column, in_row
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.memory.corrections import applied_correction_note
from planner.memory.result import Verdict
from planner.plan.catalog import Catalog
from planner.plan.editing import WORKLOAD
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.columns import rows_to_csv
from planner.present.memory.verdict import host_note
from planner.present.memory.view import MemoryView, evaluation_view

if TYPE_CHECKING:
    from planner.gui.memory.devices import DeviceTable
    from planner.gui.memory.log_dialog import LogDialog
    from planner.gui.memory.pinned_comparison import VersusPanel
    from planner.gui.memory.trace.evidence import TraceComparison, TraceEvidence

_ICON_SCALE: Final = 1.5
_SUGGESTIONS_TASK: Final = "memory-suggestions"
_CONTROLS_WIDTH: Final = 384
_ASIDE_WIDTH: Final = 180
_EVIDENCE_WIDTH: Final = 660
"""Width in pixels from which the phases stand beside the breakdown."""
_WIDE: Final = 1150
"""Width in pixels from which the curve stands beside the breakdown and the advice."""
_WIDE_STRETCHES: Final = (3, 2)


class AnswerPanel(QWidget):
    """The plan's memory verdict as mark, word and gauge, or as a sentence if there is no gauge.

    `reasons` is shown below the memory bar: why the plan needs so much, how certain that is, and notes.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._mark = IconLabel(theme, _ICON_SCALE)
        self._headline = make_label(selectable=True, font=theme.font("title", bold=True), wrap=True)
        self._facts = make_label(selectable=True, wrap=True)
        self._assumed = make_label(selectable=True, wrap=True)
        self._suggestions = make_label(selectable=True, wrap=True)
        self._suggestions.hide()
        self.fill_prompt = link_button("Fill the context", "Set the prompt length to the context length.")
        self._assumption = QWidget()
        in_row((self._assumed, 1), (self.fill_prompt, 0, Qt.AlignmentFlag.AlignTop), owner=self._assumption)
        self._sharing = make_label(selectable=True, wrap=True)
        self._reason = make_label(selectable=True, wrap=True)
        self._note_lines = make_label(selectable=True, role="muted", wrap=True)
        self._notes = Section(theme, "Notes", self._note_lines)
        self.reasons = QWidget()
        tiny = theme.spacing.tiny
        in_column(self._reason, self._notes, owner=self.reasons, spacing=tiny)
        lines = (self._headline, self._facts, self._suggestions, self._assumption, self._sharing)
        in_row(
            (self._mark, 0, Qt.AlignmentFlag.AlignTop),
            (in_column(*lines, spacing=tiny), 1),
            owner=self,
            spacing=theme.spacing.small,
        )

    @property
    def headline(self) -> str:
        """Return the shown verdict with the gauge."""
        return self._headline.text()

    @property
    def facts(self) -> str:
        """Return the line below the gauge."""
        return self._facts.text()

    @property
    def suggestions(self) -> str:
        """Return the cards on which a plan without a card could run."""
        return self._suggestions.text()

    @property
    def assumed(self) -> str:
        """Return the assumptions about what the plan leaves open; empty without any."""
        return "" if self._assumption.isHidden() else self._assumed.text()

    def set_view(self, view: MemoryView, verdict: Verdict | None) -> None:
        """Show the memory result in `view` with its verdict."""
        notes = tuple(filter(None, (view.certainty, *view.notes)))
        self._headline.setText(fmt.unbroken(view.headline))
        self._note_lines.setText("\n".join(notes))
        self._notes.set_summary(" · ".join(notes))
        self._notes.setVisible(bool(notes))
        facts = fmt.capitalized(" · ".join(view.facts))
        self._assumed.setText(fmt.unbroken(f"Assumed: {view.assumed}"))
        self._assumption.setVisible(bool(view.assumed))
        for label, text in ((self._facts, facts), (self._sharing, view.sharing), (self._reason, view.reason)):
            label.setText(fmt.unbroken(text))
            label.setVisible(bool(text))
        self.reasons.setVisible(bool(view.reason or notes))
        self.setAccessibleName(" ".join(filter(None, (view.answer, view.sharing, view.sureness))))
        self._mark.show_icon(verdict_icon(verdict if view.supported else "does-not-fit"))

    def set_suggestions(self, text: str) -> None:
        """Show the cards on which a plan without a card could run, if `text` is not empty."""
        self._suggestions.setText(fmt.unbroken(text))
        self._suggestions.setVisible(bool(text))

    def set_outdated(self, outdated: bool) -> None:
        """Gray out the answer while a newer answer is being computed."""
        for label in (self._headline, self._facts, self._assumed, self._sharing, self._reason):
            set_style_role(label, "muted" if outdated else "")


class CorrectionStrip(QWidget):
    """Notice that corrections are applied to the estimate, with a button to remove them."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self.words = make_label(role="warn", wrap=True)
        self.off = link_button("Switch off", "Compute the estimate without the correction from your log.")
        in_row((self.words, 1), self.off, owner=self, spacing=theme.spacing.small)
        self.off.clicked.connect(self._remove_corrections)
        self.hide()

    def refresh(self, evaluation: Evaluation) -> None:
        """List the corrections that are applied in `evaluation`."""
        corrections = evaluation.applied_corrections
        sentences = [f"Corrected by your log of {fmt.date(item.date)}: {item.changes}." for item in corrections]
        self.words.setText(" ".join(sentences))
        self.words.setToolTip("\n".join(map(applied_correction_note, corrections)))
        self.setVisible(bool(corrections))

    @Slot()
    def _remove_corrections(self) -> None:
        corrections = self._workspace.evaluation.applied_corrections
        others = tuple(item for item in self._workspace.plan.corrections if item not in corrections)
        with self._workspace.step():
            self._workspace.apply("correction", corrections=others)


class MemoryTab(QuestionTab):
    """Questions about the plan on the left; the memory answer and its evidence on the right."""

    key: ClassVar[str] = "memory"
    title: ClassVar[str] = "Memory"
    icon_name: ClassVar[str] = "memory"
    primary_action: ClassVar[str] = "List the &smallest GPUs that fit"

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner, start: Start = start_in_child) -> None:
        super().__init__(workspace, theme, tasks)
        self.tracer = Tracer(workspace, tasks, start)
        self.trace_controller = TraceController(workspace, theme, self.tracer, self)
        self.correction = CorrectionStrip(workspace, theme)
        self.other_card = OtherCardStrip(theme, self.tracer)
        self.controls = QuestionColumn(
            workspace, theme, TracedRunForm(workspace, theme, self.tracer, self.trace_controller), _CONTROLS_WIDTH
        )
        self.answer = AnswerPanel(theme)
        self.bar = StackedBar(theme)
        self.host = make_label(wrap=True)
        self.breakdown = Breakdown(theme)
        self.phases = PhaseBars(theme)
        self.advice = AdvicePanel(workspace, theme, tasks)
        self.exploration = ExplorationPanel(workspace, theme, tasks)
        self._versus_place, self._devices_place = QVBoxLayout(), QVBoxLayout()
        self._comparison_place, self._trace_place = QVBoxLayout(), QVBoxLayout()
        self._status_place = QWidget()
        self.evidence = self._breakdown_and_phases()
        self._fill_answer_column()
        self._lay_out(self.controls, self._status_place)
        self._make_copy_menu(self.controls.copy, self._csv_text, self._json_text)
        self.bar.activated.connect(self.breakdown.open_term)
        self.controls.find_cards.advice_requested.connect(self._show_advice)
        self.answer.fill_prompt.clicked.connect(self._fill_prompt)
        self.tracer.changed.connect(self._on_tracer_changed)
        workspace.navigator.log_requested.connect(self.compare_with_log)
        workspace.navigator.setting_requested.connect(self.controls.focus_setting)

    # Imported and built on first use, to keep the start of the window fast: a table, which most of these contain, takes
    # 20 ms, and the log readers 50 ms.

    @cached_property
    def trace_status(self) -> TraceStatus:
        """Return the status of the tracer, shown above the column with the answer."""
        widget = TraceStatus(self.theme, self.tracer)
        widget.edit_requested.connect(self.trace_controller.open_dialog)
        in_column(widget, owner=self._status_place)
        return widget

    @cached_property
    def devices(self) -> "DeviceTable":
        """Return the table of the cards, for plans whose cards hold different parts of the model."""
        from planner.gui.memory.devices import DeviceTable

        widget = DeviceTable(self.theme)
        self._devices_place.addWidget(widget)
        return widget

    @cached_property
    def log_dialog(self) -> "LogDialog":
        """Return the dialog that compares the estimate with a log; it keeps its log until another log is read."""
        from planner.gui.memory.log_dialog import LogDialog

        return LogDialog(self.workspace, self.theme, self.tasks, self.window())

    @cached_property
    def versus(self) -> "VersusPanel":
        """Return the comparison with the pinned plan."""
        from planner.gui.memory.pinned_comparison import VersusPanel

        widget = VersusPanel(self.workspace, self.theme)
        widget.activated.connect(self.breakdown.open_term)
        self._versus_place.addWidget(widget)
        return widget

    @cached_property
    def comparison(self) -> "TraceComparison":
        """Return the comparison of the estimate with its trace."""
        from planner.gui.memory.trace.evidence import TraceComparison

        widget = TraceComparison(self.workspace, self.theme, self.tracer)
        self._comparison_place.addWidget(widget)
        return widget

    @cached_property
    def trace(self) -> "TraceEvidence":
        """Return the live-memory timeline and tables of the plan's traced module, built on first use."""
        from planner.gui.memory.trace.evidence import TraceEvidence

        widget = TraceEvidence(self.workspace, self.theme, self.tasks)
        self._trace_place.addWidget(widget)
        return widget

    def prepare(self) -> Iterator[object]:
        """Create the questions that the plan does not need yet."""
        yield from self.controls.prepare()

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the evaluated plan; the memory curve is updated after a delay."""
        view = evaluation_view(evaluation, self.workspace.catalog)
        self.controls.refresh(evaluation)
        # Of an untraced plan the solutions beside the curve say how many cards are enough.
        shown = view if evaluation.traced is None else view._replace(notes=(*view.notes, *view.at_least))
        self.answer.set_view(shown, evaluation.memory.verdict)
        self._suggest_cards(evaluation)
        self.correction.refresh(evaluation)
        self.other_card.refresh(evaluation)
        is_pinned = self.workspace.pin.evaluation is not None
        if is_pinned or "versus" in vars(self):
            self.versus.set_evaluation(evaluation)
        self.bar.setVisible(view.supported and not is_pinned)
        self.evidence.setVisible(view.supported)
        self.exploration.setVisible(view.supported and evaluation.traced is None)
        if view.supported:
            self.bar.set_view(view)
            self.breakdown.set_view(view)
            self.phases.set_view(view)
        self.host.setText(" ".join(host_note(evaluation.memory)))
        self.host.setVisible(view.supported and bool(self.host.text()))
        if view.devices or "devices" in vars(self):
            self.devices.set_view(view)
        self.advice.set_evaluation(evaluation)
        self.exploration.set_evaluation(evaluation)
        if evaluation.traced is not None or "trace" in vars(self):
            self.trace.setVisible(view.supported and evaluation.traced is not None)
            self.trace.set_evaluation(evaluation)
        self._refresh_trace_comparison()

    def copy_result(self) -> str:
        """Return the answer with its breakdown, phases and notes as text."""
        text = evaluation_view(self.workspace.evaluation, self.workspace.catalog).as_text()
        trace_tables = "" if self.workspace.evaluation.traced is None else self.trace.as_text()
        return f"{text}\n\n{trace_tables}" if trace_tables else text

    def focus_search(self) -> None:
        """Open the list of models with its search field focused."""
        self.open_questions()
        self.controls.subject.model.open()

    def run_primary_action(self) -> None:
        """List the cards that fit."""
        self.open_questions()
        self.controls.find_cards.open()

    @Slot(object)
    def compare_with_log(self, file: object = None) -> None:
        """Open the dialog that compares the estimate with a log, and read the log in `file` unless `file` is None."""
        self.log_dialog.show()
        self.log_dialog.raise_()
        self.log_dialog.source.field.setFocus()
        if isinstance(file, Path):
            self.log_dialog.source.open_file(file)

    @Slot()
    def _show_advice(self) -> None:
        self.advice.open()
        self.results.ensureWidgetVisible(self.advice)

    def _suggest_cards(self, evaluation: Evaluation) -> None:
        """Look in the background for cards that a plan without a card fits on: prices take a while to read."""
        self.tasks.cancel(_SUGGESTIONS_TASK)
        if evaluation.cards:
            self.answer.set_suggestions("")
        else:
            work = partial(_find_suggestions, evaluation, self.workspace.catalog)
            self.tasks.run(_SUGGESTIONS_TASK, work, self.answer.set_suggestions)

    @Slot()
    def _fill_prompt(self) -> None:
        with self.workspace.step():
            context = getattr(self.workspace.evaluation.workload, "context_length", None)
            self.workspace.answer("prompt length", {f"{WORKLOAD}prompt_length": context})

    @Slot()
    def _on_tracer_changed(self) -> None:
        if self.tracer.busy or self.tracer.failure is not None or "trace_status" in vars(self):
            self.trace_status.refresh()
        self.answer.set_outdated(self.tracer.is_change)
        self._refresh_trace_comparison()

    def _refresh_trace_comparison(self) -> None:
        if self.tracer.check is not None or "comparison" in vars(self):
            self.comparison.refresh()

    def _csv_text(self) -> str:
        return rows_to_csv(evaluation_view(self.workspace.evaluation, self.workspace.catalog).csv_rows())

    def _json_text(self) -> str:
        """Return what `gpu-planner fit --json` prints for this plan."""
        return self.workspace.evaluation.model_dump_json(indent=2)

    def picture(self) -> QPixmap:
        """Return a picture of the answer with its bar and breakdown."""
        last = self.evidence if self.evidence.isVisible() else self.answer
        return self._picture_of(self.answer, last)

    def _fill_answer_column(self) -> None:
        main = QWidget()
        space = self.theme.spacing
        in_column(self.evidence, self.advice, self._comparison_place, STRETCH, owner=main, spacing=space.medium)
        add_items(
            self._column,
            self.answer,
            self.correction,
            self.other_card,
            self._versus_place,
            self.bar,
            self.host,
            self.answer.reasons,
            self._devices_place,
            (
                SideBySide(main, self.exploration, least_width=_WIDE, stretches=_WIDE_STRETCHES, spacing=space.large),
                1,
            ),
            (self._trace_place, 1),
            (STRETCH, 0),
        )

    def _breakdown_and_phases(self) -> QWidget:
        phases = QWidget()
        heading = make_label("Phases", "muted", self.theme.font("small"))
        in_column(heading, self.phases, STRETCH, owner=phases, spacing=self.theme.spacing.tiny)
        phases.setMinimumWidth(_ASIDE_WIDTH)
        breakdown = QWidget()
        in_column(self.breakdown, STRETCH, owner=breakdown)
        return SideBySide(
            breakdown, phases, least_width=_EVIDENCE_WIDTH, stretches=(1, 0), spacing=self.theme.spacing.large
        )


def _find_suggestions(evaluation: Evaluation, catalog: Catalog) -> str:
    from planner.present.memory.advice import suggestions_without_card  # loads prices, in the background

    return suggestions_without_card(evaluation, catalog, datetime.now(UTC).date())
