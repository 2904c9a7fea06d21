"""Active filter conditions as removable chips, and the page that replaces an empty result."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QToolButton, QWidget

from planner.gui.catalog.filters import FilterCondition, RecordFilter
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, FlowLayout, in_column
from planner.present import format as fmt


class ChipRow(QWidget):
    """Row with a removable chip per filter condition; `lifted` carries the filter without the removed condition."""

    lifted = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[FilterCondition, ...] = ()
        self._chips: list[QToolButton] = []
        self._flow = FlowLayout(theme.spacing.tiny)
        self._flow.setContentsMargins(theme.spacing.small, 0, 0, 0)
        self.setLayout(self._flow)
        self.hide()
        theme.changed.connect(self._update_chip_icons)

    def show_conditions(self, conditions: Sequence[FilterCondition]) -> None:
        """Show one chip per condition."""
        if tuple(conditions) == self._shown:
            return
        self._shown = tuple(conditions)
        for chip in self._chips:
            self._flow.removeWidget(chip)
            chip.setParent(None)
            chip.deleteLater()  # deferred: this chip may be the sender of the current click
        self._chips = [self._make_chip(condition) for condition in self._shown]
        self._update_chip_icons()
        self.setVisible(bool(self._chips))

    def _make_chip(self, condition: FilterCondition) -> QToolButton:
        chip = QToolButton()
        set_style_role(chip, "chip")
        chip.setText(condition.words)
        chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        chip.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        chip.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        chip.setAccessibleName(f"Remove the filter {condition.words}")
        chip.setToolTip(chip.accessibleName())
        chip.clicked.connect(partial(self.lifted.emit, condition.lifted))
        self._flow.addWidget(chip)
        return chip

    def _update_chip_icons(self) -> None:
        for chip in self._chips:
            chip.setIcon(self._theme.icon("close", "muted"))


class EmptyResult(QWidget):
    """Page shown when no record matches; `lifted` carries the filter without the condition that the user removed.

    `everything` is the filter without conditions; its kind names the records.
    """

    lifted = Signal(object)

    def __init__(self, theme: Theme, everything: RecordFilter) -> None:
        super().__init__()
        self._wider = self._everything = everything
        self._noun = everything.kind.noun
        self._words = make_label(font=theme.font("title"), wrap=True)
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._about = make_label(wrap=True)
        self._about.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._button = push_button("", "Show results again")
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
        self._button.clicked.connect(self._on_remove_clicked)

    def explain(
        self, removable: tuple[FilterCondition, int] | None, active: Sequence[FilterCondition], about: str = ""
    ) -> None:
        """Explain why no record matches: name the `removable` condition, or else all `active` conditions.

        `removable` is a condition with the number of records that match without it. `about` explains why the catalog
        has no records for the search term.
        """
        if removable is None:
            self._wider = self._everything
            self._words.setText(f"No {self._noun} matches all filters.")
            listed = " · ".join(condition.words for condition in active)
            more = f"Removing a single filter is not enough: {listed}"
            self._button.setText("Clear all filters")
        else:
            condition, count = removable
            self._wider = condition.lifted
            left = fmt.plural(count, self._noun)
            quoted = condition.words if condition.words.startswith("“") else f"“{condition.words}”"
            self._words.setText(f"{quoted} leaves nothing to list. Without it there would be {left}.")
            more = ""
            self._button.setText(f"Remove {quoted}")
        self._button.show()
        about_text = "\n".join(filter(None, (more, about)))
        self._about.setText(about_text)
        self._about.setVisible(bool(about_text))

    def ask_to_wait(self, text: str) -> None:
        """Show what is still loading, without which no record can match."""
        self._words.setText(text)
        self._about.hide()
        self._button.hide()

    @Slot()
    def _on_remove_clicked(self) -> None:
        self.lifted.emit(self._wider)
