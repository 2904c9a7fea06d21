"""Suggested changes to the plan with their cost, computed in the background and applied with one click."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button, push_button
from planner.gui.widgets.labels import IconLabel, make_label, verdict_icon
from planner.gui.widgets.layout import WidgetPool, in_column, in_grid, laid_out_at_once
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.plan import Plan
from planner.present import format as fmt
from planner.present.memory.verdict import needs_change

if TYPE_CHECKING:
    from planner.plan.advice.advise import Advice  # imported in the background, where it is computed
    from planner.present.memory.advice import AdviceRow

    Suggestion = tuple[Advice, AdviceRow]

REST_MS: Final = 100
_TITLE: Final = "What would help"
_INITIAL_LINES: Final = 4
_KEY: Final = "advice"


class AdviceLine(QWidget):
    """One suggestion with its *Apply* button; `apply_requested` carries the advice when the button is pressed."""

    apply_requested = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._advice: Advice | None = None
        self._mark = IconLabel(theme)
        self._title = make_label(font=theme.font(bold=True), wrap=True)
        self._effect_label = make_label()
        self._cost_label = make_label(role="muted", font=theme.font("small"), wrap=True)
        self.apply = push_button("Apply", "Change the plan this way, as one undo step.")
        self._lay_out()
        self.apply.clicked.connect(self._on_apply_clicked)

    @property
    def text(self) -> str:
        """Return the text of the suggestion."""
        return f"{self._title.text()}: {self._effect_label.text()}; {self._cost_label.text()}"

    def show_advice(self, suggestion: "Suggestion") -> None:
        """Show a suggestion and enable its button."""
        advice, row = suggestion
        self._advice = advice
        saves = fmt.size_difference(-advice.saved_bytes) if row.saves else ""
        self._title.setText(row.title)
        self._effect_label.setText(" · ".join(word for word in (saves, row.then) if word))
        self._cost_label.setText(row.price)
        self.setToolTip("\n\n".join(row.details))
        self.apply.setAccessibleName(f"{self.apply.text()}: {row.title}")
        self.apply.setAccessibleDescription(self.text)
        self.setEnabled(True)
        self._mark.show_icon(verdict_icon(advice.verdict))

    @Slot()
    def _on_apply_clicked(self) -> None:
        self.apply_requested.emit(self._advice)

    def _lay_out(self) -> None:
        grid = in_grid(self, across=self._theme.spacing.small, down=0, stretched=1)
        grid.addWidget(self._mark, 0, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self._title, 0, 1)
        grid.addWidget(self._effect_label, 0, 2, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self._cost_label, 1, 1, 1, 2)
        grid.addWidget(self.apply, 0, 3, 2, 1, Qt.AlignmentFlag.AlignVCenter)


class AdvicePanel(QWidget):
    """Section with suggestions to reduce memory; opens by itself when the plan does not fit or is tight.

    `updated` is emitted when the suggestions match the current plan.
    """

    updated = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self._evaluation: Evaluation | None = None
        self._suggestions_plan: Plan | None = None
        self._suggestions: tuple[Suggestion, ...] = ()
        self._shown_at_most = _INITIAL_LINES
        self._needed = False
        self.lines: tuple[AdviceLine, ...] = ()
        """The lines of the visible suggestions, best first."""
        self._body = QWidget()
        self._message = make_label(role="muted", wrap=True)
        self.more = link_button("", "Show every change that helps")
        self.section = Section(theme, _TITLE, self._body, "ways to reduce memory, or to run faster")
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._lay_out()
        self._rest.timeout.connect(self.update_now)
        self.section.toggled.connect(self._on_section_toggled)
        self.more.clicked.connect(self._show_all)

    def set_evaluation(self, evaluation: Evaluation) -> None:
        """Update for the evaluated plan; suggestions for the previous plan are disabled."""
        self._evaluation = evaluation
        needed = needs_change(evaluation.memory)
        self.setVisible(needed or evaluation.traced is None)
        if needed != self._needed:
            self._needed = needed
            self.section.set_open(needed)
        if evaluation.plan != self._suggestions_plan:
            self._tasks.cancel(_KEY)
            self._suggestions_plan = None  # or a return to that plan would find its disabled lines up to date
            for line in self.lines:
                line.setEnabled(False)
            self._schedule_update()

    @Slot()
    def open(self) -> None:
        """Open the section."""
        self.section.set_open(True)
        self._schedule_update()

    def showEvent(self, event: QShowEvent) -> None:
        """Update after changes that were made while the panel was hidden."""
        super().showEvent(event)
        self._schedule_update()

    def hideEvent(self, event: QHideEvent) -> None:
        """Compute nothing while the panel is hidden."""
        super().hideEvent(event)
        self._rest.stop()

    @Slot()
    def update_now(self) -> None:
        """Compute the suggestions in the background, and show them as they are found."""
        if self._evaluation is not None:
            self._suggestions_plan = None
            self._shown_at_most = _INITIAL_LINES
            work = partial(_rounds_of_suggestions, self._evaluation, self._workspace.catalog)
            end = partial(self._end_search, self._evaluation)
            self._tasks.run_in_rounds(_KEY, work, self._show_found, end, self._workspace.report)

    def _schedule_update(self) -> None:
        is_outdated = self._evaluation is not None and self._evaluation.plan != self._suggestions_plan
        is_sought = is_outdated and self.isVisible() and self.section.is_open
        self.section.set_title(f"{_TITLE} · looking…" if is_sought else _TITLE)
        if is_sought:
            self._show_message("" if self._suggestions else "Looking…")
            self._rest.start()

    def _show_found(self, suggestions: "tuple[Suggestion, ...]") -> None:
        self._suggestions = suggestions
        with laid_out_at_once(self):
            if suggestions:
                self._show_message("")
            self._show_suggestions()

    def _end_search(self, evaluation: Evaluation, _result: None) -> None:
        from planner.present.memory.advice import no_advice_sentence  # with the advice, imported in the background

        self._suggestions_plan = evaluation.plan
        self.section.set_title(_TITLE)
        if not self._suggestions:
            self._show_message(no_advice_sentence(evaluation.memory, traced=evaluation.traced is not None))
        self.updated.emit()

    def _show_message(self, text: str) -> None:
        self._message.setText(text)
        self._message.setVisible(bool(text))

    def _show_suggestions(self) -> None:
        limit = self._shown_at_most
        self.lines = self._pool.show(min(limit, len(self._suggestions)))
        for line, suggestion in zip(self.lines, self._suggestions, strict=False):
            line.show_advice(suggestion)
        left = len(self._suggestions) - limit
        self.more.setVisible(left > 0)
        self.more.setText(f"Show {fmt.integer(max(0, left))} more")

    def _make_line(self) -> AdviceLine:
        line = AdviceLine(self._theme)
        line.apply_requested.connect(self._apply_advice)
        return line

    @Slot()
    def _show_all(self) -> None:
        first_added = len(self.lines)
        self._shown_at_most = len(self._suggestions)
        had_focus = self.more.hasFocus()
        self._show_suggestions()
        if had_focus:
            self.lines[first_added].apply.setFocus()

    @Slot(bool)
    def _on_section_toggled(self, _opened: bool) -> None:
        self._schedule_update()

    @Slot(object)
    def _apply_advice(self, advice: "Advice") -> None:
        plan = advice.plan
        self.section.focus_heading()  # or the focus would go far from the button, which the change disables
        with self._workspace.step():
            self._workspace.apply(advice.name, workload=plan.workload, gpu=plan.gpu, count=plan.count)

    def _lay_out(self) -> None:
        column = in_column(self._message, self.more, owner=self._body, margins=None, spacing=self._theme.spacing.small)
        self._pool = WidgetPool(column, self._make_line)
        self._message.hide()
        self.more.hide()
        in_column(self.section, owner=self)


def _rounds_of_suggestions(
    evaluation: Evaluation, catalog: Catalog, stop: Callable[[], bool]
) -> "Iterator[tuple[Suggestion, ...]]":
    """Yield the best suggestions found so far with their texts, the final ones last."""
    # Imported here, in the background, to keep the start of the window fast.
    from planner.plan.advice.advise import advise_in_rounds
    from planner.present.memory.advice import advice_row

    for found in advise_in_rounds(evaluation.plan, catalog, stop=stop):
        yield tuple((advice, advice_row(advice)) for advice in found)
