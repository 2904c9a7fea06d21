"""Cards and systems side by side: a row a figure, with what is best and what differs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.system import System
from planner.plan.placement import Cards, Placement
from planner.present import format as fmt
from planner.present.better import best, lower_is_better
from planner.present.columns import Column
from planner.present.gpu_figures import month_words, spread_words
from planner.present.gpus import GPU_COLUMNS, GpuRow
from planner.present.system_row import SystemRow
from planner.present.system_totals import AT_LAUNCH, BANDWIDTH, BF16, CARDS_POWER, MEMORY, PAID, Total
from planner.present.tried import TRIED_FIGURES

MOST: Final = 6
"""How many are put side by side."""
_LEFT_OUT: Final = ("name", "fits", "job_time", "job_cost", "job_cost_tokens")


@dataclass(frozen=True, slots=True)
class Entry:
    """A card, `count` of which the plan would have, or one or several `machines` of a system with their accelerators.

    `count` is then of all machines together.
    """

    id: str
    name: str
    count: int
    row: GpuRow | None
    system: SystemRow | None = None
    machines: int = 1

    @property
    def title(self) -> str:
        """Return what stands at the head of its column."""
        if self.system is None:
            return fmt.count_of(self.count, self.name)
        return fmt.count_of(self.machines, self.name) if self.machines > 1 else self.name

    @property
    def cards(self) -> Cards | None:
        """Return the cards that the plan is tried on; none where nobody says which they are."""
        if self.row is None:
            return None
        return Cards(self.row.id, self.count, self.count // self.machines if self.machines > 1 else None)


def card_entry(name: str, row: GpuRow, count: int) -> Entry:
    """Return `count` of a card."""
    return Entry(name, row.gpu.name, count, row)


def system_entry(
    name: str, system: System, hardware: HardwareCatalog, row_of: Callable[[Gpu], GpuRow], machines: int = 1
) -> Entry:
    """Return `machines` of a system with their accelerators, whose row `row_of` makes.

    Without a row where nobody says which the accelerators are.
    """
    gpu = hardware.machine(system).gpu
    row = None if gpu is None else row_of(gpu)
    return Entry(name, system.name, machines * (system.gpu_count or 1), row, SystemRow(system, gpu), machines)


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of one entry; `share` is of the largest in its row, none where there is no number."""

    text: str
    value: float | None = None
    share: float | None = None
    is_best: bool = False
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One figure of all entries."""

    group: str
    title: str
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        """Return whether the entries are not all alike in it."""
        return len({cell.text for cell in self.cells}) > 1

    @property
    def is_known(self) -> bool:
        """Return whether any entry has the figure."""
        return any(cell.text not in fmt.NO_FIGURES for cell in self.cells)


def side_by_side(entries: Sequence[Entry], tried: Mapping[str, Placement]) -> tuple[ComparedRow, ...]:
    """Return the rows of `entries`: the plan on each, as far as it was tried, all accelerators together, one of them.

    What nobody publishes of any of them is left out.
    """
    outcomes = [tried.get(entry.id) for entry in entries]
    plan = [
        _row("Your plan", figure.title, figure.key, [figure.of(found) for found in outcomes])
        for figure in TRIED_FIGURES
        if any(outcomes)
    ]
    several = any(entry.system is not None or entry.count > 1 for entry in entries)
    together = [_row("All together", title, key, total(entries)) for key, title, total in _TOTALS if several]
    one = [
        _row("One accelerator", column.header, column.key, [_figure(column, entry) for entry in entries])
        for column in GPU_COLUMNS
        if column.key not in _LEFT_OUT
    ]
    return tuple(row for row in (*plan, *together, *one) if row.is_known)


def _row(group: str, title: str, key: str, figures: Sequence[tuple[str, float | None, str]]) -> ComparedRow:
    values = [value for _, value, _ in figures]
    winner = best(key, values)
    best_texts = {text for text, value, _ in figures if value is not None and value == winner}
    has_bars = lower_is_better(key) is not None
    differs = len({text for text, _, _ in figures}) > 1
    largest = max((value for value in values if value is not None), default=0.0)
    return ComparedRow(
        group,
        title,
        tuple(
            Cell(
                text=text,
                value=value,
                share=value / largest if has_bars and value is not None and largest > 0 else None,
                is_best=differs and value is not None and text in best_texts,
                tooltip=tooltip,
            )
            for text, value, tooltip in figures
        ),
    )


def _figure(column: Column[GpuRow], entry: Entry) -> tuple[str, float | None, str]:
    if entry.row is None:
        return fmt.UNKNOWN, None, ""
    tooltip = column.tooltip(entry.row) if column.tooltip else ""
    return column.text(entry.row), column.number(entry.row) if column.is_number else None, tooltip


_Figure = tuple[str, float | None, str]


def _of(total: Total, entry: Entry, *, small: bool = False) -> _Figure:
    """Return a total of one entry; among `small` ones it is told as that of one accelerator is."""
    gpu, lacks = (None, {}) if entry.row is None else (entry.row.gpu, entry.row.lacks)
    value = total.value(gpu, entry.count)
    if value is None:
        return fmt.NONE if total.key in lacks else fmt.UNKNOWN, None, ""
    return total.one(value) if small else total.text(value), value, total.formula(gpu, entry.count)


def _all(total: Total) -> "_Totals":
    """Return the totals of all entries in one unit: of machines as everywhere, of a few small cards as of one."""

    def figures(entries: Sequence[Entry]) -> list[_Figure]:
        known = (total.value(entry.row.gpu, entry.count) for entry in entries if entry.row is not None)
        small = max((value for value in known if value is not None), default=0.0) < total.per_unit
        return [_of(total, entry, small=small) for entry in entries]

    return figures


def _each(figure: Callable[[Entry], _Figure]) -> "_Totals":
    return lambda entries: [figure(entry) for entry in entries]


def _power(entry: Entry) -> _Figure:
    if entry.system is None:
        text, value, how = _of(CARDS_POWER, entry)
        if value is None:
            return text, value, how
        limited = entry.row is not None and entry.row.gpu.power_limit_watts is not None
        return f"{text}, cards{' at your limit' if limited else ''}", value, f"{how}, without a host"
    each = entry.system.system.max_power_watts
    if each is None:
        return fmt.UNKNOWN, None, ""
    watts, how = each * entry.machines, "the most that the whole machine draws"
    return f"{fmt.power(watts)}, all of it", watts, _times(entry, fmt.power(each), how)


def _price(entry: Entry) -> _Figure:
    if entry.system is None:
        return _price_of_cards(entry)
    system = entry.system.system
    if system.price_usd is None:
        return fmt.UNKNOWN, None, ""
    told = ", ".join(part for part in (system.price_kind or "", fmt.date(system.price_date, "")) if part)
    kind, usd = f" ({told})" if told else "", system.price_usd * entry.machines
    return f"{fmt.money(usd)}{kind}", usd, _times(entry, fmt.money(system.price_usd), told)


def _times(entry: Entry, each: str, how: str) -> str:
    """Return `how` a figure of all machines comes from that of one: `2 × 10,200 W, the most that …`."""
    return f"{fmt.count_of(entry.machines, each)}, {how}" if entry.machines > 1 else how


def _price_of_cards(entry: Entry) -> _Figure:
    """Return what the cards cost by the first price that is known: as paid, at launch, in shops, second hand."""
    text, value, how = _of(PAID, entry)
    if value is not None:
        return f"{text} as you paid", value, f"{how}, without a host"
    text, value, how = _of(AT_LAUNCH, entry)
    if value is not None:
        return f"{text} at launch", value, f"{how}, without a host"
    bought = entry.row.prices.bought if entry.row is not None and entry.row.prices is not None else {}
    for kind in ("street", "used"):
        if spread := bought.get(kind):
            usd = entry.count * spread.median_usd
            told = f"{entry.count} × {fmt.money(spread.median_usd)}, {spread_words(spread)}, without a host"
            return f"{fmt.money(usd)} ({kind}, {month_words(spread.current)})", usd, f"{told}\n{spread.latest.source}"
    return fmt.UNKNOWN, None, ""


def _kind(entry: Entry) -> _Figure:
    if entry.row is None:
        return fmt.UNKNOWN, None, ""
    return fmt.count_of(entry.count, entry.row.gpu.name), None, ""


def _links(entry: Entry) -> _Figure:
    source = entry.system.system if entry.system is not None else entry.row.gpu if entry.row is not None else None
    links = (source.interconnect if source is not None else None) or fmt.UNKNOWN
    if entry.machines == 1:
        return links, None, ""
    return f"{links}, in each; between machines {fmt.UNKNOWN}", None, "what joins the machines is not in the catalog"


_Totals = Callable[[Sequence[Entry]], list[_Figure]]
_TOTALS: Final[tuple[tuple[str, str, _Totals], ...]] = (
    ("kind", "Accelerators", _each(_kind)),
    *((total.key, total.title, _all(total)) for total in (MEMORY, BANDWIDTH, BF16)),
    (CARDS_POWER.key, CARDS_POWER.title, _each(_power)),
    (AT_LAUNCH.key, AT_LAUNCH.title, _each(_price)),
    ("links", "Links", _each(_links)),
)


def to_markdown(entries: Sequence[Entry], rows: Sequence[ComparedRow]) -> str:
    """Return the comparison as a table in Markdown, the best of a row in bold."""
    lines = [_line(["", *(entry.title for entry in entries)]), _line(["---", *("---:" for _ in entries)])]
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            lines.append(_line([f"**{group}**", *("" for _ in entries)]))
        lines.append(_line([row.title, *(f"**{cell.text}**" if cell.is_best else cell.text for cell in row.cells)]))
    return "\n".join(lines) + "\n"


def comparison_rows(entries: Sequence[Entry], rows: Sequence[ComparedRow]) -> tuple[tuple[str, ...], ...]:
    """Return a header and a row a figure, for other programs."""
    head = ("group", "figure", *(entry.title for entry in entries))
    return (head, *((row.group, row.title, *(cell.text for cell in row.cells)) for row in rows))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
