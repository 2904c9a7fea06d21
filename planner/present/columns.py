"""Table columns and detail lines with the provenance of their figures, and records as text for export."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from planner.present import format as fmt
from planner.present.names import CERTAINTY_TITLES

if TYPE_CHECKING:
    from planner.hardware.gpu import Gpu, Provenance
    from planner.hardware.software_support import SoftwareFact
    from planner.hardware.system import System

Row = TypeVar("Row")
Sortable = str | int | float
Align = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A table column: `value` is for sorting and comparing (None if unknown), `text` for display.

    Attributes:
        unit: Shown in the header; `value` is in base units, of which one `unit` has `per_unit`.
        measure: The unit if it is shown in the cells rather than in the header, such as USD.
        meter: Whether cells are drawn as meters, full at the value `full`. By default a tenth of the shown rows reach
            that value: a single giant would otherwise leave all other meters empty.
        help: An explanation of the column, if its title needs one.
        lower_is_better: None if neither direction is better.
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
        """Return whether the column is numeric, so that it has a range and can be plotted."""
        return self.align == "right"

    def number(self, row: Row) -> float | None:
        """Return the value in `unit`, or None if it is unknown or not a number."""
        value = self.value(row)
        return value / self.per_unit if isinstance(value, int | float) else None

    def text_with_unit(self, row: Row) -> str:
        """Return the text with the unit that the header has, if the value is known: `24 GiB`; a price has its own."""
        text = self.text(row)
        has_unit = self.unit and not self.is_money and self.value(row) is not None
        return f"{text}{fmt.THIN}{self.unit}" if has_unit else text

    @property
    def is_money(self) -> bool:
        """Return whether the cells are amounts of money, which begin with the currency."""
        return self.measure == fmt.USD or self.unit == "USD/h"

    @property
    def header(self) -> str:
        """Return the title with its unit: `Memory, GiB`."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def axis_title(self) -> str:
        """Return the axis title, with the unit or measure: `Launch price, USD`."""
        return f"{self.title}, {self.measure}" if self.measure else self.header


@dataclass(frozen=True, slots=True)
class Detail:
    """One line of a record's details: a figure with its provenance.

    `exact` is the unrounded figure if `text` rounds it; `mark` is its certainty in one or two words.
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
        """Return the provenance of the figure, one line per part."""
        return "\n".join(part for part in (self.basis, self.source, self.certainty, self.as_of) if part)

    @property
    def tooltip(self) -> str:
        """Return the exact figure and its provenance, one line per part."""
        return "\n".join(part for part in (self.exact, self.origin) if part)


@dataclass(frozen=True, slots=True)
class DetailGroup:
    """Related details under a heading."""

    title: str
    details: tuple[Detail, ...]


def text_column(
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
    """Return a left-aligned text column; `about` is the help text of its header."""
    return Column(
        key, title, get, lambda row: get(row) or unknown, width=width, shown=shown, tooltip=tooltip, help=about
    )


def number_column(
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
    """Return a right-aligned column of numbers in units of `per_unit`; `unknown` stands for missing numbers.

    `text` replaces `show` and `unknown` if cells contain more than the number; `about` is the column's help.
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


def pareto_front(points: Sequence[tuple[float, float]], lower: tuple[bool | None, bool | None]) -> tuple[int, ...]:
    """Return the indices of the points on the Pareto front, ordered by the first coordinate.

    `lower` says for each coordinate whether lower is better; without a better direction in both, there is no front.
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


ONE_SOURCE_MARK: Final = "one source"
DERIVED_MARK: Final = "derived"
ASSUMED_MARK: Final = "assumed"
_CERTAINTY_MARKS: Final = {
    "confirmed": "published",
    "single-source": ONE_SOURCE_MARK,
    "conflicting": "disputed",
    "preliminary": "preliminary",
    "yours": "yours",
}
_BASIS_MARKS: Final = {"derived": DERIVED_MARK, "measured": "measured"}
MARK_MEANINGS: Final = {
    "published": "two sources agree",
    ONE_SOURCE_MARK: "one source",
    "disputed": "sources disagree",
    "preliminary": "announced, and may still change",
    DERIVED_MARK: "derived by a formula",
    "measured": "measured",
    ASSUMED_MARK: "assumed",
    "yours": "entered by you",
}
"""Meaning of each certainty mark in full."""


def provenance_mark(provenance: "Provenance") -> str:
    """Return the certainty of a figure in one or two words; `MARK_MEANINGS` has them in full."""
    return _BASIS_MARKS.get(provenance.basis) or _CERTAINTY_MARKS[provenance.certainty]


def provenance_text(provenance: "Provenance") -> str:
    """Return the provenance of a figure as text, one line per part."""
    return figure_detail("", "", provenance).tooltip


def figure_detail(title: str, text: str, provenance: "Provenance", exact: str = "") -> Detail:
    """Return the detail line of a figure, with its source unless the figure is unknown."""
    if text in (fmt.UNKNOWN, fmt.NOT_PUBLISHED):
        return Detail(title, text)
    is_own = provenance.basis == "yours"
    basis = f"derived: {provenance.formula}" if provenance.formula else "" if is_own else provenance.basis
    certainty = CERTAINTY_TITLES[provenance.certainty]
    as_of = f"{'entered' if is_own else 'read'} {fmt.date(provenance.as_of)}"
    return Detail(title, text, provenance.source, basis, certainty, as_of, exact, provenance_mark(provenance))


def field_detail(record: "Gpu | System", field: str, title: str, text: str) -> Detail:
    """Return the detail line of a field of a card's or a system's record."""
    return figure_detail(title, text, record.provenance_of(field))


def bytes_detail(record: "Gpu | System", field: str, title: str, value: int | None) -> Detail:
    """Return the detail line of a field in bytes, with the exact number."""
    exact = "" if value is None else fmt.exact_bytes(value)
    return figure_detail(title, fmt.size(value), record.provenance_of(field), exact)


def lacking_detail(title: str, fact: "SoftwareFact") -> Detail:
    """Return the detail line of a rate that a chip does not support, with the source of that fact."""
    return Detail(title, fmt.NOT_SUPPORTED, fact.source, as_of=f"read {fmt.date(fact.as_of)}", mark=ONE_SOURCE_MARK)


def to_tsv(columns: Sequence[Column[Any]], records: Sequence[Any]) -> str:
    """Return records as tab-separated text: a header and one line per record, with the texts of the table."""
    lines = [[column.header for column in columns]]
    lines += [[column.text(record) for column in columns] for record in records]
    return "\n".join("\t".join(line) for line in lines) + "\n"


def to_csv(fields: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    """Return `rows` as CSV with a header of `fields`; unknown values are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def to_json(rows: Sequence[Mapping[str, object]]) -> str:
    """Return `rows` as a JSON list of objects."""
    return json.dumps(list(rows), indent=2, ensure_ascii=False) + "\n"


def rows_to_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of texts, the header among them, as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
