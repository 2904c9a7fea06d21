"""Explanations of the terms of a window: a card at the term, and GPU basics."""

from functools import partial
from typing import Final

from PySide6.QtCore import QPoint, QRect, QTimer, Slot
from PySide6.QtWidgets import QApplication, QMenu, QTableView, QWidget

from planner.glossary import GlossaryTerm, glossary
from planner.gui.theme import Theme
from planner.gui.widgets.dialogs import open_once
from planner.gui.widgets.terms import TermRequests, explain, explaining_action, terms_at
from planner.gui.workspace import Workspace

BASICS: Final = "gpu-basics.md"


class Explainer(TermRequests):
    """Explains the terms of `window` and of its dialogs, with the figures of the current plan."""

    def __init__(self, workspace: Workspace, theme: Theme, window: QWidget) -> None:
        super().__init__(window)
        self._workspace, self._theme, self._window = workspace, theme, window
        self.asked.connect(self.show_card)

    @Slot()
    def underline_terms(self) -> None:
        """Read the glossary, and paint the window anew with its terms underlined."""
        glossary()
        self._window.update()

    def explain_focused(self) -> None:
        """Explain the term of the focused input; of a table, offer those of its columns; else open GPU basics."""
        focused = QApplication.focusWidget()
        terms = [] if focused is None else terms_at(focused)
        if focused is None or not terms:
            self.show_basics()
        elif isinstance(focused, QTableView):
            menu = QMenu(focused)
            menu.addActions([explaining_action(term, focused) for term in terms])
            menu.popup(focused.mapToGlobal(QPoint()))
        else:
            explain(terms[0], focused)

    @Slot(object, object, object)
    def show_card(self, term: GlossaryTerm, anchor: QWidget, part: QRect | None = None) -> None:
        """Show the card of `term` below `anchor`, or below a `part` of it."""
        # A start of the window does not wait for what only a card needs.
        from planner.gui.explain.card import TermCard
        from planner.present.terms import in_plan

        text = in_plan(term.term, self._workspace.evaluation, self._plan_name())
        card = TermCard(anchor.window(), self._theme, term, text)
        card.more.connect(self.show_basics)
        card.open_at(anchor, part)

    @Slot(str)
    def show_basics(self, name: str = "") -> None:
        """Open GPU basics, at the term `name` if given, with the current plan as the example."""
        from planner.gui.manual import Manual, heading_slug
        from planner.present.terms import in_plan

        example = partial(in_plan, evaluation=self._workspace.evaluation, plan_name=self._plan_name())
        manual = Manual(self._theme, BASICS, self._window, example)
        open_once(manual)
        if name:  # once it is shown, for the page is laid out anew for the width of the window
            QTimer.singleShot(0, manual, partial(manual.open_page, f"{BASICS}#{heading_slug(name)}"))

    def _plan_name(self) -> str:
        return "the sample plan" if self._workspace.is_sample else "your plan"
