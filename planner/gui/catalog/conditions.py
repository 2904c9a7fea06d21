"""The conditions that the catalog is narrowed by: as buttons above the rows, and in place of rows when none is left."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from planner.gui.catalog.filters import Condition, RecordFilter
from planner.gui.theme import Theme, mark
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, FlowLayout, in_column
from planner.present import format as fmt


class ChipRow(QWidget):
    """One button a condition; `lifted` carries the filter without it. Hidden while there is none."""

    lifted = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[Condition, ...] = ()
        self._chips: list[QToolButton] = []
        self._flow = FlowLayout(theme.spacing.tiny)
        self._flow.setContentsMargins(theme.spacing.small, 0, 0, 0)
        self.setLayout(self._flow)
        self.hide()
        theme.changed.connect(self._tint)

    def show_conditions(self, conditions: Sequence[Condition]) -> None:
        """Show a button for each of `conditions`."""
        if tuple(conditions) == self._shown:
            return
        self._shown = tuple(conditions)
        for chip in self._chips:
            self._flow.removeWidget(chip)
            chip.setParent(None)
            chip.deleteLater()  # later, since it may be the one whose click is being answered
        self._chips = [self._make(condition) for condition in self._shown]
        self._tint()
        self.setVisible(bool(self._chips))

    def _make(self, condition: Condition) -> QToolButton:
        chip = QToolButton()
        mark(chip, "chip")
        chip.setText(condition.words)
        chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        chip.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        chip.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        chip.setAccessibleName(f"Remove the filter {condition.words}")
        chip.setToolTip(chip.accessibleName())
        chip.clicked.connect(partial(self.lifted.emit, condition.lifted))
        self._flow.addWidget(chip)
        return chip

    def _tint(self) -> None:
        for chip in self._chips:
            chip.setIcon(self._theme.icon("close", "muted"))


class EmptyResult(QWidget):
    """Says without which condition rows would be left and offers to remove it; `lifted` carries the wider filter.

    `everything` is the filter that removes none, and says what its records are called.
    """

    lifted = Signal(object)

    def __init__(self, theme: Theme, everything: RecordFilter) -> None:
        super().__init__()
        self._wider = self._everything = everything
        self._noun = everything.of.noun
        self._words = make_label(font=theme.font("title"), wrap=True)
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._about = make_label(wrap=True)
        self._about.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._button = QPushButton()
        in_column(
            STRETCH,
            self._words,
            self._about,
            (self._button, 0, Qt.AlignmentFlag.AlignHCenter),
            (STRETCH, 2),
            owner=self,
            margins=theme.spacing.huge,
            spacing=theme.spacing.large,
        )
        self._button.clicked.connect(self._on_clicked)

    def explain(self, found: tuple[Condition, int] | None, asked: Sequence[Condition], about: str = "") -> None:
        """Name the condition without which `count` rows would be left; where there is none, all that is `asked` for.

        `about` is what to say of what is searched for and is none of them.
        """
        if found is None:
            self._wider = self._everything
            self._words.setText(f"No {self._noun} is all of this at once.")
            listed = " · ".join(condition.words for condition in asked)
            more = f"It takes more than removing one of them: {listed}"
            self._button.setText("Clear all filters")
        else:
            condition, count = found
            self._wider = condition.lifted
            left = fmt.plural(count, self._noun)
            self._words.setText(f"Nothing is left. Without {condition.words} there would be {left}.")
            more = ""
            self._button.setText(f"Remove {condition.words}")
        told = "\n".join(filter(None, (more, about)))
        self._about.setText(told)
        self._about.setVisible(bool(told))

    @Slot()
    def _on_clicked(self) -> None:
        self.lifted.emit(self._wider)
