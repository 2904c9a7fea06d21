"""Explanations of the terms of a window: a card at the term, and GPU basics."""

from functools import partial
from typing import Final

from PySide6.QtCore import QPoint, QRect, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QTableView, QWidget

from planner.glossary import GlossaryTerm, glossary
from planner.gui.theme import DRAWING_SIZE, Theme, drawing_pixmap
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.dialogs import open_once
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.popover import Popover
from planner.gui.widgets.terms import TermRequests, explain, explaining_action, terms_at
from planner.gui.workspace import Workspace

_WIDTH = DRAWING_SIZE.width() + 40


class TermCard(Popover):
    """Popover about `term`; `in_plan` is its figure in the current plan. `more` is emitted by the link *More*."""

    more = Signal(str)

    def __init__(self, parent: QWidget, theme: Theme, term: GlossaryTerm, in_plan: str) -> None:
        content = QWidget()
        super().__init__(parent, theme, content)
        self.term = term
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(f"Explanation: {term.term}")
        self.setAccessibleDescription(" ".join(filter(None, (term.definition, in_plan))))
        margin = theme.spacing.small
        column = in_column(
            make_label(term.term, font=theme.font(bold=True)),
            make_label(term.definition, wrap=True),
            owner=content,
            margins=margin,
            spacing=margin,
        )
        if term.drawing:
            drawing = QLabel()
            drawing.setPixmap(drawing_pixmap(theme, term.drawing, self.devicePixelRatio()))
            drawing.setAccessibleName(f"Drawing of {term.term}")
            column.addWidget(drawing)
        if in_plan:
            column.addWidget(make_label(in_plan, font=theme.font(bold=True), wrap=True))
        self.more_button = link_button("&More", "Read about it in GPU basics")
        self.more_button.clicked.connect(self._ask_for_more)
        column.addLayout(in_row(self.more_button, STRETCH))
        content.setFocusProxy(self.more_button)

    def open_at(self, anchor: QWidget, part: QRect | None = None) -> None:
        """Show the card below `anchor`, or a part of it, as tall as its texts need."""
        self.open_below(anchor, _WIDTH, self.height_for(_WIDTH), part)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Read more with Return."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.more_button.click()
        else:
            super().keyPressEvent(event)

    @Slot()
    def _ask_for_more(self) -> None:
        self.close()
        self.more.emit(self.term.term)


BASICS: Final = "gpu-basics.md"


class Explainer(TermRequests):
    """Explains the terms of `window` and of its dialogs, with the figures of the current plan."""

    def __init__(self, workspace: Workspace, theme: Theme, window: QWidget) -> None:
        super().__init__(window)
        self._workspace, self._theme, self._window = workspace, theme, window
        self.card_requested.connect(self.show_card)

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
