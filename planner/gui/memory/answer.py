"""The memory answer: verdict, gauge, reason and notes, and the notice about applied corrections."""

from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QWidget

from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.labels import IconLabel, make_label, verdict_icon
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.memory.corrections import applied_correction_note
from planner.memory.result import Verdict
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.memory.view import MemoryView

_ICON_SCALE: Final = 1.5


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
        self.setAccessibleName(" ".join(filter(None, (view.answer, view.sharing, view.certainty))))
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
