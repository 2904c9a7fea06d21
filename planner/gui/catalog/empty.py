"""What stands in place of the table when nothing is left."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from planner.gui.catalog.filters import Condition, RecordFilter
from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.present import format as fmt


class EmptyResult(QWidget):
    """Says which condition removed the last rows and offers to lift it; `lifted` carries the wider filter.

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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*(theme.spacing.huge,) * 4)
        layout.setSpacing(theme.spacing.large)
        layout.addStretch(1)
        layout.addWidget(self._words)
        layout.addWidget(self._about)
        layout.addWidget(self._button, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch(2)
        self._button.clicked.connect(self._on_clicked)

    def explain(self, found: tuple[Condition, int] | None, about: str = "") -> None:
        """Name the condition that removed `count` rows; without one it takes more than lifting one.

        `about` is what to say of what is searched for and is none of them.
        """
        self._about.setText(about)
        self._about.setVisible(bool(about))
        if found is None:
            self._wider = self._everything
            self._words.setText(self.tr("No %1 is like that.").replace("%1", self._noun))
            self._button.setText(self.tr("Clear all filters"))
            return
        condition, count = found
        self._wider = condition.lifted
        removed = fmt.plural(count, self._noun) if count > 1 else self._noun
        self._words.setText(
            self.tr("No %1 is left: %2 removed the last %3.")
            .replace("%1", self._noun)
            .replace("%2", condition.words)
            .replace("%3", removed)
        )
        self._button.setText(self.tr("Lift %1").replace("%1", condition.words))

    @Slot()
    def _on_clicked(self) -> None:
        self.lifted.emit(self._wider)
