"""Pages of plain text about a trace, in blocks of a heading, figures or sentences, and a source."""

from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.present.trace.view import TraceView


@dataclass(frozen=True, slots=True)
class Block:
    """Something to say; `pairs` are figures with their names, each with what its tooltip says."""

    heading: str = ""
    text: str = ""
    source: str = ""
    pairs: tuple[tuple[str, str, str], ...] = ()

    @property
    def words(self) -> str:
        """Return all of it as text."""
        figures = (f"{title}: {text}{f' ({exact})' if exact else ''}" for title, text, exact in self.pairs)
        return "\n".join(part for part in (self.heading, *figures, self.text, self.source) if part)


class BlockPage(QScrollArea):
    """Shows blocks one under the other; their text can be selected."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._blocks: tuple[Block, ...] = ()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(name)

    @property
    def text(self) -> str:
        """Return what is shown."""
        return "\n\n".join(block.words for block in self._blocks)

    def set_blocks(self, blocks: tuple[Block, ...]) -> None:
        """Show other blocks."""
        self._blocks = blocks
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, self._theme.spacing.tiny, 0, 0)
        column.setSpacing(self._theme.spacing.medium)
        for block in blocks:
            column.addLayout(self._lay(block))
        column.addStretch(1)
        self.setWidget(body)
        self.setAccessibleDescription(self.text)

    def minimumSizeHint(self) -> QSize:
        """Ask for no room of its own."""
        return QSize()

    def _lay(self, block: Block) -> QVBoxLayout:
        layout = QVBoxLayout()
        layout.setSpacing(2)
        if block.heading:
            layout.addWidget(_selectable(make_label(block.heading, font=self._theme.font(bold=True), wrap=True)))
        if block.pairs:
            layout.addLayout(self._grid(block))
        if block.text:
            layout.addWidget(_selectable(make_label(block.text, wrap=True)))
        if block.source:
            layout.addWidget(_selectable(make_label(block.source, "muted", self._theme.font("small"), wrap=True)))
        return layout

    def _grid(self, block: Block) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(self._theme.spacing.huge)
        grid.setVerticalSpacing(self._theme.spacing.tiny)
        grid.setColumnStretch(1, 1)
        for row, (title, text, exact) in enumerate(block.pairs):
            grid.addWidget(make_label(title, "muted"), row, 0)
            figure = _selectable(make_label(text))
            figure.setToolTip(exact)
            grid.addWidget(figure, row, 1)
        return grid


def reserved_blocks(view: TraceView) -> tuple[Block, ...]:
    """Return what the caching allocator takes, and where it would run out of memory."""
    pairs = tuple((row.title, row.text, row.exact) for row in view.reservation)
    runs_out = (Block(text=view.runs_out),) if view.runs_out else ()
    return (*runs_out, Block(pairs=pairs), Block(source=view.traced_with))


def difference_blocks(view: TraceView) -> tuple[Block, ...]:
    """Return what was assumed, and what no trace sees, each with its bounds and its source."""
    if not view.differences:
        return (Block(text="Nothing was assumed, and nothing is known to have gone unseen."),)
    return tuple(
        Block(
            heading=row.name,
            text=f"{row.explanation[:1].upper()}{row.explanation[1:]}.".replace("..", "."),
            pairs=(("Counted as", row.amount, ""), *((("Lies within", row.range_text, ""),) if row.range_text else ())),
            source=" · ".join(part for part in (row.place, row.source) if part),
        )
        for row in view.differences
    )


def _selectable(label: QLabel) -> QLabel:
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
