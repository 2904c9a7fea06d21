"""The memory answer: verdict, reason, confidence and notes, and the notice about applied corrections."""

from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QWidget

from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.labels import IconLabel, make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.section import Section
from planner.gui.widgets.status_icons import verdict_icon
from planner.gui.workspace import Workspace
from planner.memory.corrections import applied_correction_note
from planner.memory.result import Verdict
from planner.plan.evaluate import Evaluation
from planner.plan.logs.applied_corrections import applied_corrections
from planner.present import format as fmt
from planner.present.memory.view import MemoryView

_ICON_SCALE: Final = 1.5


class AnswerPanel(QWidget):
    """The plan's memory verdict as a sentence with an icon, its reason and confidence, and collapsible notes."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._mark = IconLabel(theme, _ICON_SCALE)
        self._sentence = make_label(selectable=True, font=theme.font("title", bold=True), wrap=True)
        self._sharing = make_label(selectable=True, wrap=True)
        self._reason = make_label(selectable=True, wrap=True)
        self._certainty = make_label(selectable=True, role="muted", wrap=True)
        self._note_lines = make_label(selectable=True, role="muted", wrap=True)
        self._notes = Section(theme, "Notes", self._note_lines)
        in_row(
            (self._mark, 0, Qt.AlignmentFlag.AlignTop),
            (
                in_column(
                    self._sentence,
                    self._sharing,
                    self._reason,
                    self._certainty,
                    self._notes,
                    spacing=self._theme.spacing.tiny,
                ),
                1,
            ),
            owner=self,
            spacing=self._theme.spacing.small,
        )

    @property
    def sentence(self) -> str:
        """Return the shown verdict sentence."""
        return self._sentence.text()

    def set_view(self, view: MemoryView, verdict: Verdict | None) -> None:
        """Show the memory result in `view` with its verdict."""
        self._sentence.setText(view.answer)
        self._sharing.setText(view.sharing)
        self._sharing.setVisible(bool(view.sharing))
        self._reason.setText(view.reason)
        self._reason.setVisible(bool(view.reason))
        self._certainty.setText(view.certainty)
        self._certainty.setVisible(bool(view.certainty))
        self._note_lines.setText("\n".join(view.notes))
        self._notes.set_summary(" · ".join(view.notes))
        self._notes.setVisible(bool(view.notes))
        self.setAccessibleName(" ".join(part for part in (view.answer, view.sharing, view.certainty) if part))
        self._mark.show_icon(verdict_icon(verdict if view.supported else "does-not-fit"))

    def set_outdated(self, outdated: bool) -> None:
        """Gray out the answer while a newer answer is being computed."""
        for label in (self._sentence, self._sharing, self._reason):
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
        corrections = applied_corrections(evaluation)
        sentences = [f"Corrected by your log of {fmt.date(item.date)}: {item.changes}." for item in corrections]
        self.words.setText(" ".join(sentences))
        self.words.setToolTip("\n".join(map(applied_correction_note, corrections)))
        self.setVisible(bool(corrections))

    @Slot()
    def _remove_corrections(self) -> None:
        corrections = applied_corrections(self._workspace.evaluation)
        others = tuple(item for item in self._workspace.plan.corrections if item not in corrections)
        with self._workspace.step():
            self._workspace.apply("correction", corrections=others)
