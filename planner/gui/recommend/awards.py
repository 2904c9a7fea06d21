"""The three named answers, each with its reason, what would change it, and a button that takes it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.labels import make_label
from planner.plan.recommend.option import Option
from planner.present.cost.recommendation import AwardView


class Awards(QWidget):
    """One line each; `used` carries the option that is taken."""

    used = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._views: tuple[AwardView, ...] = ()
        self._rows: list[tuple[QWidget, object]] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.spacing.small)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the answers as text."""
        return tuple(f"{view.award.capitalize()}: {view.sentence} {view.reason} {view.change}" for view in self._views)

    def show_views(self, views: tuple[AwardView, ...]) -> None:
        """Show other answers."""
        self._views = views
        while self._column.count():
            item = self._column.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.deleteLater()
        for view in views:
            self._column.addWidget(self._line(view))

    def _line(self, view: AwardView) -> QWidget:
        line = QWidget()
        words = QVBoxLayout()
        words.setSpacing(0)
        title = f"{view.award.capitalize()}: {view.sentence}"
        words.addWidget(make_label(title, font=self._theme.font(bold=True), wrap=True))
        words.addWidget(
            make_label(" ".join(part for part in (view.reason, view.change) if part), role="muted", wrap=True)
        )
        use = QPushButton("Use this")
        use.setAccessibleName(f"Use the {view.award} one")
        option: Option = view.row.option
        use.clicked.connect(lambda: self.used.emit(option))
        layout = QHBoxLayout(line)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(self._theme.spacing.medium)
        layout.addLayout(words, 1)
        layout.addWidget(use, 0, Qt.AlignmentFlag.AlignTop)
        return line
