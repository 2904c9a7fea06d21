"""The structure of a report: sections of paragraphs, lists, tables and figures, which the writers share."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeVar

from planner.plan.plan import Plan
from planner.present.columns import Align, Column

_Row = TypeVar("_Row")
Tone = Literal["ok", "warn", "bad", "none"]


class Prose(NamedTuple):
    """A paragraph of plain text."""

    text: str


class Bullets(NamedTuple):
    """A list of sentences."""

    items: tuple[str, ...]


class ReportColumn(NamedTuple):
    """The heading of a table's column, and the side to which its cells are aligned."""

    title: str
    align: Align = "left"


class ReportTable(NamedTuple):
    """A table; every row has a cell for every column. `last_is_total` sets off the last row."""

    columns: tuple[ReportColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    last_is_total: bool = False


class CodeListing(NamedTuple):
    """Text that is copied as it stands, such as a command or a file with its `name`."""

    text: str
    name: str = ""


class Rectangle(NamedTuple):
    """A filled rectangle of a figure, in its coordinates; `color` is the name of a color role."""

    x: float
    y: float
    width: float
    height: float
    color: str
    opacity: float = 1.0


class Polyline(NamedTuple):
    """A line through points of a figure."""

    points: tuple[tuple[float, float], ...]
    color: str
    width: float = 1.0
    is_dashed: bool = False


class Area(NamedTuple):
    """A filled area between points of a figure."""

    points: tuple[tuple[float, float], ...]
    color: str
    opacity: float


class DrawingLabel(NamedTuple):
    """Text in a figure, whose baseline is at `y`."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    color: str = "text"
    is_small: bool = False


Shape = Rectangle | Polyline | Area | DrawingLabel


class Drawing(NamedTuple):
    """A drawing with its caption, which also says in words what the drawing shows."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    caption: str


Block = Prose | Bullets | ReportTable | CodeListing | Drawing


class ReportSection(NamedTuple):
    """A titled part of a report."""

    title: str
    blocks: tuple[Block, ...]


class ReportAnswer(NamedTuple):
    """One of the report's answers in a few words, with the figures behind it."""

    title: str
    text: str
    tone: Tone = "none"


class Report(NamedTuple):
    """A report: the question, the answers, the sections, and the plan that it was made from.

    `made` says of which day its prices are and which version made it. The `plan` travels with the report, so that it
    opens again in the application; it is None for reports on something else.
    """

    title: str
    question: str
    answers: tuple[ReportAnswer, ...]
    sections: tuple[ReportSection, ...]
    made: str
    plan: Plan | None = None


def section(title: str, *blocks: Block | None) -> ReportSection:
    """Return a section of the blocks that have any content."""
    return ReportSection(title, tuple(block for block in blocks if block is not None and _has_content(block)))


def _has_content(block: Block) -> bool:
    match block:
        case Prose(text):
            return bool(text)
        case Bullets(items):
            return bool(items)
        case ReportTable(_, rows):
            return bool(rows)
        case _:
            return True


def table_of(columns: Iterable[Column[_Row]], rows: Iterable[_Row]) -> ReportTable:
    """Return a table of the application's own columns, without those that are empty in every row."""
    shown = [column for column in columns if column.shown]
    texts = [tuple(column.text(row) for column in shown) for row in rows]
    kept = [index for index in range(len(shown)) if any(row[index] for row in texts)]
    heads = tuple(ReportColumn(shown[index].header, shown[index].align) for index in kept)
    return ReportTable(heads, tuple(tuple(row[index] for index in kept) for row in texts))
