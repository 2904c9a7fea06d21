"""Columns of tables and lines of details, with where a figure comes from: declared once for window and command line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

from planner.present import format as fmt
from planner.present.names import CERTAINTY_WORDS

if TYPE_CHECKING:  # tables of models and of readings have neither
    from planner.hardware.gpu import Gpu, Provenance
    from planner.hardware.software import SoftwareFact
    from planner.hardware.system import System

Row = TypeVar("Row")
Sortable = str | int | float
Align = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One column: `value` sorts and compares (none where unknown), `text` is shown, with `unit` in the header.

    A meter is full at the value `full`, by default at one that a tenth of the shown rows reach: a single giant would
    leave nothing of the others. `value` counts in base units, of which `unit` has `per_unit`. `measure` says what the
    numbers count where the cells say it themselves and no unit stands in the header: US dollars. `help` says what the
    column means, where its title alone might not. `lower_is_better` is None if neither direction is better.
    """

    key: str
    title: str
    value: Callable[[Row], Sortable | None]
    text: Callable[[Row], str]
    unit: str = ""
    align: Align = "left"
    width: int = 12
    tooltip: Callable[[Row], str] | None = None
    meter: bool = False
    shown: bool = True
    full: float | None = None
    per_unit: float = 1
    measure: str = ""
    help: str = ""
    lower_is_better: bool | None = False

    @property
    def is_number(self) -> bool:
        """Return whether the column holds numbers, which have ranges and can be drawn."""
        return self.align == "right"

    def number(self, row: Row) -> float | None:
        """Return the value as a multiple of `unit`, or None where it is unknown or no number."""
        value = self.value(row)
        return value / self.per_unit if isinstance(value, int | float) else None

    @property
    def header(self) -> str:
        """Return the title with its unit: `Memory, GiB`."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def axis(self) -> str:
        """Return the title with what its numbers count: `Launch price, USD`."""
        return f"{self.title}, {self.measure}" if self.measure else self.header


@dataclass(frozen=True, slots=True)
class Detail:
    """One line of a record's detail pane, with where its figure comes from.

    `exact` is the figure unrounded, where `text` rounds it; `mark` is one sign for how sure it is.
    """

    title: str
    text: str
    source: str = ""
    basis: str = ""
    certainty: str = ""
    as_of: str = ""
    exact: str = ""
    mark: str = ""

    @property
    def origin(self) -> str:
        """Return where the figure comes from, a line each."""
        return "\n".join(part for part in (self.basis, self.source, self.certainty, self.as_of) if part)

    @property
    def tooltip(self) -> str:
        """Return the exact figure and where it comes from, a line each."""
        return "\n".join(part for part in (self.exact, self.origin) if part)


@dataclass(frozen=True, slots=True)
class DetailGroup:
    """Details of one kind under a heading."""

    title: str
    details: tuple[Detail, ...]


def words(
    key: str,
    title: str,
    get: Callable[[Row], str | None],
    *,
    unknown: str = fmt.UNKNOWN,
    width: int = 12,
    shown: bool = True,
    tooltip: Callable[[Row], str] | None = None,
    about: str = "",
) -> Column[Row]:
    """Return a column of words, with `about` for its help."""
    return Column(
        key, title, get, lambda row: get(row) or unknown, width=width, shown=shown, tooltip=tooltip, help=about
    )


def numbers(
    key: str,
    title: str,
    get: Callable[[Row], float | None],
    *,
    unit: str = "",
    per_unit: float = 1,
    show: Callable[[float], str] = fmt.plain,
    unknown: str | Callable[[Row], str] = fmt.NOT_PUBLISHED,
    width: int = 10,
    meter: bool = False,
    shown: bool = True,
    measure: str = "",
    tooltip: Callable[[Row], str] | None = None,
    text: Callable[[Row], str] | None = None,
    about: str = "",
    lower_is_better: bool | None = False,
) -> Column[Row]:
    """Return a right-aligned column of numbers, shown as multiples of `per_unit`; `unknown` stands for none of them.

    `text` replaces `show` and `unknown` where a cell says more than the number; `about` is the column's help.
    """

    def shown_text(row: Row) -> str:
        value = get(row)
        if value is not None:
            return show(value / per_unit)
        return unknown if isinstance(unknown, str) else unknown(row)

    return Column(
        key=key,
        title=title,
        value=get,
        text=text or shown_text,
        unit=unit,
        align="right",
        width=width,
        tooltip=tooltip,
        meter=meter,
        shown=shown,
        per_unit=per_unit,
        measure=measure,
        help=about,
        lower_is_better=lower_is_better,
    )


def unbeaten(points: Sequence[tuple[float, float]], lower: tuple[bool | None, bool | None]) -> tuple[int, ...]:
    """Return the positions of the points that no other beats in both figures (Pareto front), in the first's order.

    `lower` says of both figures whether lower is better; there is no front if neither direction of one is better.
    """
    if None in lower:
        return ()
    x_sign, y_sign = (1 if is_lower else -1 for is_lower in lower)
    front, best_y = [], float("inf")
    for _, y, position in sorted((x_sign * x, y_sign * y, position) for position, (x, y) in enumerate(points)):
        if y < best_y:
            front.append(position)
            best_y = y
    return tuple(front)


TWO_SOURCES_MARK: Final = "•"  # no digit, which beside a figure would be read as part of it
ONE_SOURCE_MARK: Final = "◦"
_CERTAINTY_MARKS: Final = {
    "confirmed": TWO_SOURCES_MARK,
    "single-source": ONE_SOURCE_MARK,
    "conflicting": "≠",
    "preliminary": "p",
    "yours": "y",
}
_BASIS_MARKS: Final = {"derived": "ƒ", "measured": "m"}
ASSUMED_MARK: Final = "~"
MARK_MEANINGS: Final = (
    (TWO_SOURCES_MARK, "two sources agree"),
    (ONE_SOURCE_MARK, "one source"),
    ("≠", "sources disagree"),
    ("p", "preliminary"),
    ("ƒ", "derived by a formula"),
    ("m", "measured"),
    ("~", "assumed"),
    ("y", "yours"),
)


def provenance_mark(provenance: "Provenance") -> str:
    """Return one sign for how sure a figure is; `MARK_MEANINGS` says what it stands for."""
    return _BASIS_MARKS.get(provenance.basis) or _CERTAINTY_MARKS[provenance.certainty]


def provenance_text(provenance: "Provenance") -> str:
    """Return where a figure comes from, a line each."""
    return figure("", "", provenance).tooltip


def figure(title: str, text: str, provenance: "Provenance", exact: str = "") -> Detail:
    """Return the line of a figure; what is not known needs no source."""
    if text in (fmt.UNKNOWN, fmt.NOT_PUBLISHED):
        return Detail(title, text)
    is_own = provenance.basis == "yours"
    basis = f"derived: {provenance.formula}" if provenance.formula else "" if is_own else provenance.basis
    certainty = CERTAINTY_WORDS[provenance.certainty]
    as_of = f"{'said' if is_own else 'read'} {fmt.date(provenance.as_of)}"
    return Detail(title, text, provenance.source, basis, certainty, as_of, exact, provenance_mark(provenance))


def field_detail(record: "Gpu | System", field: str, title: str, text: str) -> Detail:
    """Return the line of a field of a card's or a system's record."""
    return figure(title, text, record.provenance_of(field))


def bytes_detail(record: "Gpu | System", field: str, title: str, value: int | None) -> Detail:
    """Return the line of a field that is a size, with its exact bytes."""
    exact = "" if value is None else fmt.exact_bytes(value)
    return figure(title, fmt.size(value), record.provenance_of(field), exact)


def lacking_detail(title: str, fact: "SoftwareFact") -> Detail:
    """Return the line of a rate that a chip does not have, with who says so."""
    return Detail(title, fmt.NONE, fact.source, as_of=f"read {fmt.date(fact.as_of)}", mark=ONE_SOURCE_MARK)
