"""Cards and systems side by side, alone and with a plan: a row per figure, with the best value marked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from planner.cost.estimate import CostEstimate
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.system import System
from planner.performance.links import links_of
from planner.performance.result import TimeResult
from planner.plan.evaluate import Evaluation
from planner.plan.placement import Placement, PlacementTarget
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import GPU_COLUMNS, buying_origin, buying_text
from planner.present.catalog.gpu_row import GpuRow
from planner.present.catalog.system_row import (
    AT_LAUNCH,
    BANDWIDTH,
    BF16,
    CARDS_POWER,
    MEMORY,
    PAID,
    AcceleratorTotal,
    SystemRow,
)
from planner.present.columns import Column
from planner.present.cost.prices import months_text, price_range_text
from planner.present.cost.summary import own_sentence, rent_sentence
from planner.present.cost.time import time_answer, unknown_time_sentence
from planner.present.memory.verdict import fewest_cards_note, no_fit_sentence, verdict_phrase
from planner.units import GB

_NOT_JUDGED: Final = "The GPU's usable memory is unknown."


class ComparedFigure(NamedTuple):
    """A figure of one compared entry; without a `value` it is text only, or unknown for the reason in the tooltip."""

    text: str = fmt.UNKNOWN
    value: float | None = None
    tooltip: str = ""


TextAndValue = tuple[str, float | None]
"""A figure as text and as the number by which entries are compared; None if it is not known."""
TimeReader = Callable[[TimeResult, float], TextAndValue]
"""Function that returns a figure from a time result and the duration in seconds of its step or request."""
FigureReader = Callable[[Placement | None], ComparedFigure]
"""Function that returns a figure of the plan on some cards; None as placement means that it is being computed."""


class PlacementFigure(NamedTuple):
    """A figure of the plan on some cards: `of` reads it from a placement."""

    title: str
    of: FigureReader
    lower_is_better: bool


def _verdict_figure(placement: Placement | None) -> ComparedFigure:
    """Return the plan's memory verdict as a figure."""
    if placement is None:
        return ComparedFigure("computing…")
    if placement.evaluation is None:
        return ComparedFigure("not evaluated", tooltip=placement.reason)
    memory, plan = placement.evaluation.memory, placement.evaluation.plan
    on_each = " on each" if plan.count > 1 and memory.verdict == "does-not-fit" and not memory.unsupported else ""
    reasons = "; ".join(memory.unsupported) or "\n".join(fewest_cards_note(memory))
    return ComparedFigure(f"{verdict_phrase(memory)}{on_each}", tooltip=reasons)


def _needed_memory_figure(placement: Placement | None) -> ComparedFigure:
    """Return the memory that the plan needs per card as a figure."""
    if placement is None or placement.evaluation is None:
        return ComparedFigure(tooltip="" if placement is None else placement.reason)
    needed = placement.evaluation.memory.total_bytes
    return ComparedFigure(fmt.size(needed), float(needed), fmt.exact_bytes(needed))


def _time_figure_reader(read: TimeReader) -> FigureReader:
    """Return a reader of the time figure that `read` takes from a plan's time result, if the plan can run."""

    def time_figure(placement: Placement | None) -> ComparedFigure:
        if placement is None or placement.evaluation is None:
            return ComparedFigure()
        if not is_feasible(placement.evaluation):
            return ComparedFigure(tooltip=infeasible_reason(placement.evaluation))
        time = placement.evaluation.time
        if time is None or time.seconds is None:
            return ComparedFigure(tooltip="" if time is None else unknown_time_sentence(time))
        return ComparedFigure(*read(time, time.seconds), time_answer(time))

    return time_figure


def _seconds_text_and_value(time: TimeResult, seconds: float) -> TextAndValue:
    """Return the duration of a step or request as text and in seconds."""
    return f"{fmt.duration(seconds)} per {'step' if time.kind == 'step' else 'request'}", seconds


def _pace_text_and_value(time: TimeResult, _seconds: float) -> TextAndValue:
    """Return the pace in tokens or samples per second, as text and as a number."""
    tokens = time.tokens_per_second
    pace, unit = (tokens, "tokens/s") if tokens else (time.samples_per_second, f"{time.samples}/s")
    return fmt.UNKNOWN if pace is None else f"{fmt.rounded(pace)}{fmt.THIN}{unit}", pace


def is_feasible(evaluation: Evaluation) -> bool:
    """Return whether the plan fits, if only tightly; only then do its time and cost mean anything."""
    return evaluation.memory.verdict in ("fits", "tight")


def infeasible_reason(evaluation: Evaluation) -> str:
    """Return why the plan does not run on the cards."""
    memory = evaluation.memory
    if memory.unsupported:
        return "; ".join(memory.unsupported)
    return no_fit_sentence() if memory.verdict == "does-not-fit" else _NOT_JUDGED


def _cost_figure_reader(read: Callable[[CostEstimate], ComparedFigure | None], unknown: str) -> FigureReader:
    """Return a reader of a cost figure, which `read` takes from an estimate; `unknown` says why there is none."""

    def cost_figure(placement: Placement | None) -> ComparedFigure:
        if placement is None:
            return ComparedFigure()
        if placement.evaluation is None or placement.cost is None:
            return ComparedFigure(tooltip=placement.reason or unknown)
        if not is_feasible(placement.evaluation):
            return ComparedFigure(tooltip=infeasible_reason(placement.evaluation))
        estimate = placement.cost.estimate
        return (None if estimate is None else read(estimate)) or ComparedFigure(
            tooltip=placement.cost.reason or unknown
        )

    return cost_figure


def _rent_figure(estimate: CostEstimate) -> ComparedFigure | None:
    """Return the rent for a run or month as a figure."""
    rent = estimate.result.rent
    if rent is None:
        return None
    return ComparedFigure(f"{fmt.money(rent.usd)} per {estimate.demand.period}", rent.usd, rent_sentence(rent))


def _hourly_rent_figure(estimate: CostEstimate) -> ComparedFigure | None:
    rent = estimate.result.rent
    if rent is None:
        return None
    usd = rent.usd_per_gpu_hour * rent.gpu_count
    each = f"{rent.gpu_count:g} × {fmt.money(rent.usd_per_gpu_hour)} per GPU and hour"
    return ComparedFigure(f"{fmt.money(usd)} per hour", usd, f"{each}\n{rent_sentence(rent)}")


def _rent_per_tokens_figure(estimate: CostEstimate) -> ComparedFigure | None:
    rent = estimate.result.rent
    return None if rent is None else _usd_per_million_figure(rent.usd_per_million_tokens, rent_sentence(rent))


def _owning_figure(estimate: CostEstimate) -> ComparedFigure | None:
    """Return the cost of owning for a run or month as a figure."""
    own = estimate.result.own
    if own is None:
        return None
    text = f"{fmt.money(own.usd_per_period)} per {estimate.demand.period}"
    return ComparedFigure(text, own.usd_per_period, own_sentence(own, estimate.demand))


def _owning_per_tokens_figure(estimate: CostEstimate) -> ComparedFigure | None:
    own = estimate.result.own
    return (
        None if own is None else _usd_per_million_figure(own.usd_per_million_tokens, own_sentence(own, estimate.demand))
    )


def _usd_per_million_figure(usd: float | None, how: str) -> ComparedFigure:
    """Return a cost in US dollars per million tokens as a figure; `how` explains it."""
    return ComparedFigure(fmt.money(usd, fmt.UNKNOWN), usd, how)


_NO_OFFER: Final = "No offer for these GPUs is known."
_NO_PRICE: Final = "The price of these GPUs is unknown."
PLACEMENT_FIGURES: Final = (
    PlacementFigure("Fits", _verdict_figure, lower_is_better=False),
    PlacementFigure("Memory needed per GPU", _needed_memory_figure, lower_is_better=True),
    PlacementFigure("Time", _time_figure_reader(_seconds_text_and_value), lower_is_better=True),
    PlacementFigure("Speed", _time_figure_reader(_pace_text_and_value), lower_is_better=False),
    PlacementFigure("Rented", _cost_figure_reader(_rent_figure, _NO_OFFER), lower_is_better=True),
    PlacementFigure("Rented, per hour", _cost_figure_reader(_hourly_rent_figure, _NO_OFFER), lower_is_better=True),
    PlacementFigure(
        "Rented, per million tokens", _cost_figure_reader(_rent_per_tokens_figure, _NO_OFFER), lower_is_better=True
    ),
    PlacementFigure("Owned", _cost_figure_reader(_owning_figure, _NO_PRICE), lower_is_better=True),
    PlacementFigure(
        "Owned, per million tokens", _cost_figure_reader(_owning_per_tokens_figure, _NO_PRICE), lower_is_better=True
    ),
)


MAX_COMPARED: Final = 6
"""Maximum number of entries in a comparison."""
_LEFT_OUT: Final = ("name", "fits", "job_time", "job_cost", "job_cost_tokens", "buy")


@dataclass(frozen=True, slots=True)
class ComparisonEntry:
    """One column of a comparison: `count` equal cards, or one or several `machines` of a system.

    For a system, `count` is the number of accelerators in all machines together.
    """

    id: str
    name: str
    count: int
    row: GpuRow | None
    system: SystemRow | None = None
    machines: int = 1

    @property
    def title(self) -> str:
        """Return the heading of the entry's column."""
        if self.system is None:
            return fmt.count_of(self.count, self.name)
        return fmt.count_of(self.machines, self.name) if self.machines > 1 else self.name

    @property
    def cards(self) -> PlacementTarget | None:
        """Return the cards on which to place the plan, or None if the system's accelerators are not known."""
        if self.row is None:
            return None
        return PlacementTarget(self.row.id, self.count, self.count // self.machines if self.machines > 1 else None)


def card_entry(name: str, row: GpuRow, count: int) -> ComparisonEntry:
    """Return the entry of `count` equal cards."""
    return ComparisonEntry(name, row.gpu.name, count, row)


def system_entry(
    name: str, system: System, hardware: HardwareCatalog, row_of: Callable[[Gpu], GpuRow], machines: int = 1
) -> ComparisonEntry:
    """Return the entry of `machines` machines of a system; `row_of` returns the row of its accelerator.

    The entry has no row if the system's accelerators are not known.
    """
    gpu = hardware.machine(system).gpu
    row = None if gpu is None else row_of(gpu)
    return ComparisonEntry(name, system.name, machines * (system.gpu_count or 1), row, SystemRow(system, gpu), machines)


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """One figure of one compared entry; `share` is its fraction of the row's largest, None if it is not a number."""

    text: str
    value: float | None = None
    share: float | None = None
    is_best: bool = False
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class ComparedFigureRow:
    """One figure for all compared entries."""

    group: str
    title: str
    cells: tuple[ComparedCell, ...]

    @property
    def differs(self) -> bool:
        """Return whether the entries differ in this figure."""
        return len({cell.text for cell in self.cells}) > 1

    @property
    def is_known(self) -> bool:
        """Return whether the figure is known for at least one entry."""
        return any(cell.text not in fmt.NO_FIGURES for cell in self.cells)


def side_by_side(
    entries: Sequence[ComparisonEntry], placements: Mapping[str, Placement]
) -> tuple[ComparedFigureRow, ...]:
    """Return the rows that compare `entries`: the plan's figures, then totals, then figures of one accelerator.

    `placements` holds the placements of the plan that were evaluated, by entry id. Figures unknown for all entries are
    left out.
    """
    outcomes = [placements.get(entry.id) for entry in entries]
    plan = [
        _figure_row("Your plan", figure.title, [figure.of(found) for found in outcomes], figure.lower_is_better)
        for figure in PLACEMENT_FIGURES
        if any(outcomes)
    ]
    several = any(entry.system is not None or entry.count > 1 for entry in entries)
    together = [_figure_row("All together", title, total(entries), lower) for title, total, lower in _TOTALS if several]
    one = [
        _figure_row(
            "One accelerator",
            column.header,
            [_column_figure(column, entry) for entry in entries],
            column.lower_is_better,
        )
        for column in GPU_COLUMNS
        if column.key not in _LEFT_OUT
    ]
    return tuple(row for row in (*plan, *together, *one) if row.is_known)


def best_value(values: Sequence[float | None], *, lower_is_better: bool | None) -> float | None:
    """Return the best of `values`; None if neither direction is better, or fewer than two known values differ."""
    known = {value for value in values if value is not None}
    if lower_is_better is None or len(known) < 2:
        return None
    return min(known) if lower_is_better else max(known)


def _figure_row(
    group: str, title: str, figures: Sequence[ComparedFigure], lower_is_better: bool | None
) -> ComparedFigureRow:
    """Return the row of one figure, with the best value marked."""
    values = [figure.value for figure in figures]
    winner = best_value(values, lower_is_better=lower_is_better)
    best_texts = {text for text, value, _ in figures if value is not None and value == winner}
    has_bars = lower_is_better is not None
    differs = len({text for text, _, _ in figures}) > 1
    largest = max((value for value in values if value is not None), default=0.0)
    return ComparedFigureRow(
        group,
        title,
        tuple(
            ComparedCell(
                text=text,
                value=value,
                share=value / largest if has_bars and value is not None and largest > 0 else None,
                is_best=differs and value is not None and text in best_texts,
                tooltip=tooltip,
            )
            for text, value, tooltip in figures
        ),
    )


def _column_figure(column: Column[GpuRow], entry: ComparisonEntry) -> ComparedFigure:
    """Return the value of a table column for an entry's accelerator as a figure."""
    if entry.row is None:
        return ComparedFigure()
    tooltip = column.tooltip(entry.row) if column.tooltip else ""
    return ComparedFigure(column.text(entry.row), column.number(entry.row) if column.is_number else None, tooltip)


def _total_figure(total: AcceleratorTotal, entry: ComparisonEntry, *, small: bool = False) -> ComparedFigure:
    """Return the total of one entry as a figure, in a single accelerator's unit if `small`."""
    gpu, lacks = (None, {}) if entry.row is None else (entry.row.gpu, entry.row.lacks)
    value = total.value(gpu, entry.count)
    if value is None:
        return ComparedFigure(fmt.NOT_SUPPORTED if total.key in lacks else fmt.UNKNOWN)
    return ComparedFigure(total.one(value) if small else total.text(value), value, total.formula(gpu, entry.count))


def _total_figures_reader(total: AcceleratorTotal) -> "_Totals":
    """Return a function that gives the totals of all entries in one unit.

    That is the total's unit, or the unit of a single accelerator if even the largest total is below one unit.
    """

    def total_figures(entries: Sequence[ComparisonEntry]) -> list[ComparedFigure]:
        known = (total.value(entry.row.gpu, entry.count) for entry in entries if entry.row is not None)
        small = max((value for value in known if value is not None), default=0.0) < total.per_unit
        return [_total_figure(total, entry, small=small) for entry in entries]

    return total_figures


def _figures_reader(figure: Callable[[ComparisonEntry], ComparedFigure]) -> "_Totals":
    """Return a function that applies `figure` to each entry."""
    return lambda entries: [figure(entry) for entry in entries]


def _power_figure(entry: ComparisonEntry) -> ComparedFigure:
    """Return the maximum power of an entry's cards or machines."""
    if entry.system is None:
        power = _total_figure(CARDS_POWER, entry)
        if power.value is None:
            return power
        limited = entry.row is not None and entry.row.gpu.power_limit_watts is not None
        text = f"{power.text}, GPUs{' at your limit' if limited else ''}"
        return ComparedFigure(text, power.value, f"{power.tooltip}, without a host")
    one_machine = entry.system.system.max_power_watts
    if one_machine is None:
        return ComparedFigure()
    watts, origin = one_machine * entry.machines, "maximum power of the whole machine"
    return ComparedFigure(
        f"{fmt.power(watts)}, whole machine", watts, _per_machine_text(entry, fmt.power(one_machine), origin)
    )


def _price_figure(entry: ComparisonEntry) -> ComparedFigure:
    """Return the price of an entry's cards or machines."""
    if entry.system is None:
        return _card_price_figure(entry)
    system = entry.system.system
    if system.price_usd is None:
        return ComparedFigure()
    text = ", ".join(part for part in (system.price_kind or "", fmt.date(system.price_date, "")) if part)
    kind, usd = f" ({text})" if text else "", system.price_usd * entry.machines
    return ComparedFigure(f"{fmt.money(usd)}{kind}", usd, _per_machine_text(entry, fmt.money(system.price_usd), text))


def _per_machine_text(entry: ComparisonEntry, one_machine: str, origin: str) -> str:
    """Return how the figure of all machines follows from that of one: `2 × 10,200 W, maximum power of …`."""
    return f"{fmt.count_of(entry.machines, one_machine)}, {origin}" if entry.machines > 1 else origin


def _card_price_figure(entry: ComparisonEntry) -> ComparedFigure:
    """Return the cards' price: what was paid, else the price of the cards' table, else launch, street or used."""
    paid, launch = (_total_figure(total, entry) for total in (PAID, AT_LAUNCH))
    if paid.value is not None:
        return ComparedFigure(f"{paid.text} as you paid", paid.value, f"{paid.tooltip}, without a host")
    if entry.row is not None and (price := entry.row.buying) is not None:
        text = buying_text(price, entry.row.gpu, entry.count)
        when = " at launch" if price.certainty == "assumed" else ""
        phrase = f"{entry.count} × {fmt.money(price.value)}, without a host\n{buying_origin(entry.row)}"
        return ComparedFigure(f"{text}{when}", entry.count * price.value, phrase)
    if launch.value is not None:
        return ComparedFigure(f"{launch.text} at launch", launch.value, f"{launch.tooltip}, without a host")
    bought = entry.row.prices.bought if entry.row is not None and entry.row.prices is not None else {}
    for kind in ("street", "used"):
        if spread := bought.get(kind):
            usd = entry.count * spread.median_usd
            phrase = f"{entry.count} × {fmt.money(spread.median_usd)}, {price_range_text(spread)}, without a host"
            text = f"{fmt.money(usd)} ({kind}, {months_text(spread.current)})"
            return ComparedFigure(text, usd, f"{phrase}\n{spread.latest.source}")
    return ComparedFigure()


def _accelerators_figure(entry: ComparisonEntry) -> ComparedFigure:
    """Return the number and name of an entry's accelerators."""
    if entry.row is None:
        return ComparedFigure()
    return ComparedFigure(fmt.count_of(entry.count, entry.row.gpu.name))


def _links_figure(entry: ComparisonEntry) -> ComparedFigure:
    """Return the links between an entry's accelerators."""
    source = entry.system.system if entry.system is not None else entry.row.gpu if entry.row is not None else None
    links = (source.interconnect if source is not None else None) or fmt.UNKNOWN
    if entry.machines == 1:
        return ComparedFigure(links)
    text = f"{links} inside each; between machines {fmt.UNKNOWN}"
    return ComparedFigure(text, tooltip="the catalog does not list the network between the machines")


_Totals = Callable[[Sequence[ComparisonEntry]], list[ComparedFigure]]
_TOTALS: Final[tuple[tuple[str, _Totals, bool | None], ...]] = (
    ("Accelerators", _figures_reader(_accelerators_figure), None),
    *((total.title, _total_figures_reader(total), False) for total in (MEMORY, BANDWIDTH, BF16)),
    (CARDS_POWER.title, _figures_reader(_power_figure), None),
    (AT_LAUNCH.title, _figures_reader(_price_figure), None),
    ("Links", _figures_reader(_links_figure), None),
)
"""Rows of totals: title, figures, and whether lower is better (None if neither direction is better)."""


_DECIDING: Final = (
    {"Speed": "Highest throughput", "Time": "Fastest"},
    {"Rented, per million tokens": "Cheapest to rent", "Rented": "Cheapest to rent"},
    {"Owned, per million tokens": "Cheapest to own", "Owned": "Cheapest to own"},
)
"""What decides between entries: the rows that say it, of which the first that is known counts."""


def comparison_answer(entries: Sequence[ComparisonEntry], rows: Sequence[ComparedFigureRow]) -> str:
    """Return which entries are the best for the plan: `Highest throughput: 8 × L40S (322 tokens/s). …`.

    A figure in which all agree, or that is not known, is left out.
    """
    by_title = {row.title: row for row in rows if row.group == "Your plan"}
    answers = []
    for labels in _DECIDING:
        row = next((by_title[title] for title in labels if title in by_title), None)
        best = [] if row is None else [cell for cell in row.cells if cell.is_best]
        if row is not None and best:
            names = fmt.listing(
                tuple(entry.title for entry, cell in zip(entries, row.cells, strict=True) if cell.is_best)
            )
            _, _, per = row.title.partition(", ")
            answers.append(f"{labels[row.title]}: {names} ({best[0].text}{f' {per}' if per else ''}).")
    return " ".join(answers)


def comparison_markdown(entries: Sequence[ComparisonEntry], rows: Sequence[ComparedFigureRow]) -> str:
    """Return the comparison as a Markdown table, with the best value of each row in bold."""
    lines = [
        _markdown_line(["", *(entry.title for entry in entries)]),
        _markdown_line(["---", *("---:" for _ in entries)]),
    ]
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            lines.append(_markdown_line([f"**{group}**", *("" for _ in entries)]))
        lines.append(
            _markdown_line([row.title, *(f"**{cell.text}**" if cell.is_best else cell.text for cell in row.cells)])
        )
    return "\n".join(lines) + "\n"


def comparison_rows(
    entries: Sequence[ComparisonEntry], rows: Sequence[ComparedFigureRow]
) -> tuple[tuple[str, ...], ...]:
    """Return the comparison as a header and one row per figure, for export."""
    head = ("group", "figure", *(entry.title for entry in entries))
    return (head, *((row.group, row.title, *(cell.text for cell in row.cells)) for row in rows))


def _markdown_line(cells: Sequence[str]) -> str:
    """Return one line of a Markdown table."""
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def compared_notes(entries: Sequence[ComparisonEntry], placements: Mapping[str, Placement]) -> tuple[str, ...]:
    """Return the notes below a comparison: even splits, entries without an evaluation, and unknown networks."""
    unplanned = (
        f"{entry.title} is not evaluated: {found.reason}."
        for entry in entries
        if (found := placements.get(entry.id)) is not None and found.evaluation is None
    )
    return (*even_split_notes(entries, placements), *unplanned, *_machine_notes(entries, placements))


def even_split_notes(entries: Sequence[ComparisonEntry], placements: Mapping[str, Placement]) -> tuple[str, ...]:
    """Return a note for each entry on which the plan fits only if split evenly over the cards."""
    return tuple(
        f"{entry.title}: the plan puts the whole model on each GPU. Split evenly, it needs at least "
        f"{fmt.plural(cards, 'GPU')} (a lower bound, not an estimate): choose a form of parallelism."
        for entry in entries
        if (cards := _fewest_cards_if_split(placements.get(entry.id))) is not None and cards <= entry.count
    )


def _fewest_cards_if_split(placement: Placement | None) -> int | None:
    """Return how many cards could hold the plan, split evenly, if it has the whole model on each and does not fit."""
    evaluation = None if placement is None else placement.evaluation
    if evaluation is None or evaluation.memory.verdict != "does-not-fit":
        return None
    parallel = evaluation.workload.parallel
    is_whole = parallel.model_shards == 1 and not parallel.zero
    return evaluation.memory.at_least_cards if is_whole else None


def _machine_notes(entries: Sequence[ComparisonEntry], placements: Mapping[str, Placement]) -> Iterator[str]:
    """Yield a note for each entry of several machines: their network is unknown, and which one the time assumes."""
    for entry in entries:
        found = placements.get(entry.id)
        if entry.machines > 1 and (found is None or found.evaluation is not None):
            assumed = _assumed_network_sentence(entry, found)
            yield f"{entry.title}: the catalog does not list the network between the machines.{assumed}"


def _assumed_network_sentence(entry: ComparisonEntry, placement: Placement | None) -> str:
    """Return a sentence on the network that the time assumes, or an empty text if there is no time."""
    evaluation = None if placement is None else placement.evaluation
    if evaluation is None or entry.row is None or not is_feasible(evaluation):
        return ""
    links, stated_network = links_of(entry.row.gpu, evaluation.plan.timing), evaluation.plan.timing.network_bytes_per_s
    speed = fmt.quantity(links.network_bytes_per_s / GB, "GB/s")
    origin = "as the plan specifies" if stated_network is not None else "which is assumed"
    return (
        f" The time is computed with {fmt.plural(links.cards_per_node, 'GPU')} per machine and {speed} from each GPU "
        f"to other machines, {origin}."
    )
