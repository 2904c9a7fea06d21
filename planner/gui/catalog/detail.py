"""The pane beside the table: one record with its verdict, its figures and their sources."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from planner.gui.catalog.describe import Described
from planner.gui.catalog.figures import FigureList
from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.gui.widgets.verdict_badge import VerdictBadge
from planner.present.columns import MARK_MEANINGS


class DetailPane(QWidget):
    """Shows one `Described`; `used` says that the person wants it in the plan, `comparison_wanted` beside others."""

    used = Signal()
    comparison_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._described: Described | None = None
        self._name = make_label(font=theme.font("title", bold=True), wrap=True)
        self._kind = make_label(role="muted", wrap=True)
        self._badge = VerdictBadge(theme)
        self._sentence = make_label(wrap=True)
        self._use = QPushButton()
        self._compare = QPushButton("Compare")
        self._sources = QCheckBox("Show so&urces")
        self._figures = FigureList(theme)
        self._notes = make_label(wrap=True)
        meanings = ", ".join(f"{sign} {meaning}" for sign, meaning in MARK_MEANINGS)
        self._legend = make_label(meanings, role="muted", font=theme.font("small"), wrap=True)
        self._nothing = make_label("Choose a row to see its figures and where they come from.", "muted", wrap=True)
        self._body = QWidget()
        self._lay_out()
        self._use.clicked.connect(self.used)
        self._compare.clicked.connect(self.comparison_wanted)
        self._sources.toggled.connect(self._on_sources)
        self.clear()

    def clear(self) -> None:
        """Show no record."""
        self._described = None
        self._body.hide()
        self._nothing.show()

    def describe(self, described: Described) -> None:
        """Show another record."""
        self._described = described
        self._name.setText(described.name)
        self._kind.setText(described.kind)
        self._badge.set_verdict(described.verdict, described.phrase)
        self._sentence.setText(described.sentence)
        self._use.setText("In the plan" if described.in_plan else described.use)
        self._use.setVisible(bool(described.use))
        self._use.setEnabled(not described.in_plan)
        self._notes.setText("\n\n".join(described.notes))
        self._notes.setVisible(bool(described.notes))
        self._figures.show_groups(described.groups, self._sources.isChecked())
        self._nothing.hide()
        self._body.show()

    def as_text(self) -> str:
        """Return what the pane says, a line a figure; nothing while it shows no record."""
        return self._described.as_text() if self._described else ""

    @Slot()
    def _on_sources(self) -> None:
        if self._described is not None:
            self._figures.show_groups(self._described.groups, self._sources.isChecked())

    def _lay_out(self) -> None:
        space = self._theme.spacing
        mark(self._use, "primary")
        self._sources.setToolTip("Shows under each figure where it comes from")
        scrolled = QWidget()
        figures = QVBoxLayout(scrolled)
        figures.setContentsMargins(space.medium, space.small, space.medium, space.medium)
        figures.setSpacing(space.large)
        for part in (self._sources, self._figures, self._notes, self._legend):
            figures.addWidget(part)
        figures.addStretch(1)
        area = QScrollArea()
        area.setWidget(scrolled)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setAccessibleName("Figures")
        mark(area, "ringed")
        head = QVBoxLayout()
        head.setContentsMargins(space.medium, space.small, space.medium, space.small)
        head.setSpacing(space.small)
        for line in (self._name, self._kind, self._badge, self._sentence):
            head.addWidget(line)
        buttons = QHBoxLayout()
        buttons.addWidget(self._use, 1)
        buttons.addWidget(self._compare)
        head.addLayout(buttons)
        body = QVBoxLayout(self._body)
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(0)
        body.addLayout(head)
        body.addWidget(area, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._nothing)
        layout.addWidget(self._body)
        self._nothing.setContentsMargins(space.medium, space.huge, space.medium, space.huge)
