"""The cards and servers of a fleet as table rows, the worst first, and the values of a heat map."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatch
from typing import Final, NamedTuple

from planner.fleet.cards import FleetCard, missing_evidence
from planner.fleet.costs import FleetCosts, ServingCost
from planner.fleet.fleet import Fleet
from planner.monitor.diagnosis.verdict import Verdict, VerdictKind
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.monitor.diagnosis import Tone, severity_tone, verdict_sentence
from planner.present.monitor.readings import NO_VALUE, short_card_name
from planner.serving_runs.record import MeasuredPercentile
from planner.units import GIB

_RANKS: Final[Mapping[str, int]] = {"error": 1, "warning": 2, "note": 4, "good": 5}
_SILENT_RANK: Final = 0
_IDLE_RANK: Final = 3
_IDLE: Final = frozenset((VerdictKind.IDLE, VerdictKind.IDLE_HELD))
_WHOLE_DAY: Final = 0.98
_UNDECIDED: Final = frozenset((VerdictKind.TOO_EARLY, VerdictKind.UNKNOWN))


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A card of a fleet with its diagnosis, None before the first."""

    card: FleetCard
    verdict: Verdict | None = None

    @property
    def rank(self) -> int:
        """Return the place among all: silent cards first, then errors, warnings, idle cards, and the rest."""
        if self.card.is_silent:
            return _SILENT_RANK
        if self.card.xid is not None:
            return min(_RANKS["error"], self._verdict_rank)
        return self._verdict_rank

    @property
    def is_diagnosed(self) -> bool:
        """Return whether it is known what limits the card."""
        return self.verdict is not None and self.verdict.kind not in _UNDECIDED

    @property
    def _verdict_rank(self) -> int:
        if self.verdict is None or self.verdict.kind in _UNDECIDED:
            return _RANKS["good"]
        return _IDLE_RANK if self.verdict.kind in _IDLE else _RANKS[self.verdict.severity]

    @property
    def diagnosis(self) -> str:
        """Return the diagnosis in a few words: since when a silent card is silent, a last Xid, or the verdict."""
        if self.card.is_silent:
            return f"silent since {clock(self.card.seen_seconds)}"
        xid = f"last Xid {self.card.xid}; " if self.card.xid is not None else ""
        return f"{xid}{'–' if self.verdict is None else self.verdict.title}"

    @property
    def tone(self) -> Tone:
        """Return the color of the diagnosis."""
        if self.card.is_silent:
            return "bad"
        if self.card.xid is not None:
            return "warn"
        return "muted" if self.verdict is None else severity_tone(self.verdict)

    @property
    def explanation(self) -> str:
        """Return the diagnosis as sentences, and what the exporter could say and does not."""
        if self.card.is_silent:
            when = datetime.fromtimestamp(self.card.seen_seconds).astimezone()
            return f"Not read since {when:%Y-%m-%d %H:%M:%S}: the exporter, the machine or the GPU is down."
        parts = ["" if self.verdict is None else verdict_sentence(self.verdict), missing_evidence(self.card)]
        return "\n".join(filter(None, parts))

    @property
    def work(self) -> str:
        """Return the pods or the job on the card."""
        return ", ".join(work.title for work in self.card.work)

    @property
    def haystack(self) -> str:
        """Return all words by which the card is found."""
        card = self.card
        return " ".join((card.host, card.device.name, card.key, self.work, self.diagnosis, card.exporter)).lower()


def clock(seconds: float) -> str:
    """Return a time of day in this machine's time zone."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%H:%M}"


def fleet_rows(fleet: Fleet) -> tuple[FleetRow, ...]:
    """Return a row for each card, hosts in order."""
    return tuple(FleetRow(card, fleet.verdicts.get(card.key)) for card in fleet.cards)


def worst_first(rows: Iterable[FleetRow]) -> tuple[FleetRow, ...]:
    """Return the rows with the worst first, and of those that are as bad the least used first."""
    return tuple(sorted(rows, key=lambda row: (row.rank, 1.0 if row.card.use is None else row.card.use)))


def matching_rows(rows: Sequence[FleetRow], words: str = "", hosts: Sequence[str] = ()) -> tuple[FleetRow, ...]:
    """Return the rows that have all `words`, on a host that fits one of the patterns `hosts` if there are any."""
    wanted = words.lower().split()
    return tuple(
        row
        for row in rows
        if all(word in row.haystack for word in wanted)
        and (not hosts or any(fnmatch(row.card.host, pattern) for pattern in hosts))
    )


def _memory(row: FleetRow) -> str:
    used, total = row.card.value("memory_used_bytes"), row.card.device.fact("memory_total_bytes")
    return " / ".join(NO_VALUE if one is None else fmt.significant(one / GIB) for one in (used, total))


def card_number(card: FleetCard) -> str:
    """Return the number of a card on its host, of a MIG instance its own too."""
    return str(card.device.index) if card.device.mig_parent is None else f"MIG {card.device.index}"


def _reading(key: str, title: str, name: str, unit: str, about: str, per_unit: float = 1.0) -> Column[FleetRow]:
    return number_column(
        key,
        title,
        lambda row: row.card.value(name),
        unit=unit,
        per_unit=per_unit,
        show=lambda value: f"{value:.0f}",
        unknown=NO_VALUE,
        width=6,
        about=about,
    )


FLEET_COLUMNS: Final[tuple[Column[FleetRow], ...]] = (
    text_column("host", "Host", lambda row: row.card.host, width=14, about="Name of the machine, as its exporter says"),
    text_column("number", "GPU", lambda row: card_number(row.card), width=5, about="Number of the GPU in its machine"),
    text_column("name", "Name", lambda row: short_card_name(row.card.device), width=18, about="Name of the GPU"),
    number_column(
        "use",
        "Use",
        lambda row: row.card.use,
        unit="%",
        per_unit=0.01,
        show=lambda value: f"{value:.0f}",
        unknown=NO_VALUE,
        width=5,
        about="Share of time in which at least one kernel runs, or in which the engine is active",
    ),
    Column(
        "memory",
        "Memory",
        lambda row: row.card.value("memory_used_bytes"),
        _memory,
        "GiB",
        "right",
        11,
        help="GPU memory in use and in all",
    ),
    _reading("power", "Power", "power_watts", "W", "Power drawn now"),
    _reading("temperature", "Temp.", "temperature_celsius", "°C", "Temperature of the chip"),
    Column(
        "diagnosis",
        "Diagnosis",
        lambda row: row.rank,
        lambda row: row.diagnosis,
        width=26,
        tooltip=lambda row: row.explanation,
        help="What limits the GPU, from its last minutes; sorting puts the worst first",
    ),
    text_column("work", "Work", lambda row: row.work, unknown="", width=22, about="Pods or job on the GPU"),
)
"""Columns of the table of cards."""


class Heat(NamedTuple):
    """A quantity of the heat map: its value (None if unknown), its ends on the scale of colors, and its text.

    Without an upper end the scale goes up to the highest value of the fleet.
    """

    key: str
    title: str
    value: Callable[[FleetCard], float | None]
    text: Callable[[float], str]
    low: float = 0.0
    high: float | None = 1.0


HEATS: Final = (
    Heat("use", "Utilization", lambda card: card.use, fmt.percent),
    Heat("memory", "Memory", lambda card: card.memory_fraction, fmt.percent),
    Heat("power", "Power", lambda card: card.value("power_watts"), lambda watts: f"{watts:.0f}{fmt.THIN}W", high=None),
    Heat(
        "temperature",
        "Temperature",
        lambda card: card.value("temperature_celsius"),
        lambda celsius: f"{celsius:.0f}{fmt.THIN}°C",
        20.0,
        100.0,
    ),
    Heat("diagnosis", "Diagnosis", lambda _card: None, str),
)
"""Quantities of the heat map. The last one is colored by the tone of the diagnosis."""


def fleet_headline(fleet: Fleet, costs: FleetCosts) -> str:
    """Return the state of the fleet as a sentence: how many cards, what is wrong, and what idle ones cost."""
    if not fleet.cards:
        return "No GPU is reported here: name a Prometheus server that scrapes a GPU exporter, or the exporter itself."
    rows = fleet_rows(fleet)
    undiagnosed = sum(not (row.card.is_silent or row.is_diagnosed) for row in rows)
    number = {rank: sum(row.rank == rank for row in rows) for rank in range(6)}
    parts = [
        f"{number[0]:,} silent" if number[0] else "",
        f"{number[1]:,} with errors" if number[1] else "",
        f"{number[2]:,} with warnings" if number[2] else "",
        f"{undiagnosed:,} not diagnosed yet" if undiagnosed else "",
        _idle_part(costs) if costs.idle else "",
    ]
    wrong = fmt.listing(tuple(filter(None, parts)))
    cards = fmt.plural(len(fleet.cards), "GPU")
    return f"{cards} on {fmt.plural(len(fleet.host_names), 'host')}: {wrong or 'nothing to report'}."


def _idle_part(costs: FleetCosts) -> str:
    number = f"{len(costs.idle):,} idle"
    if not costs.is_idle_priced:
        return number
    cost = "costs" if len(costs.idle) == 1 else "cost"
    return f"{number}, which {cost} {fmt.rounded_money(costs.idle_usd_per_day)} a day to rent"


def energy_line(costs: FleetCosts) -> str:
    """Return power, energy and rent of the fleet as one line, with what they are based on."""
    parts = ["no GPU reports its power"]
    if costs.power_cards:
        parts = [
            f"{costs.power_watts / 1e3:,.1f}{fmt.THIN}kW now, reported by {fmt.plural(costs.power_cards, 'GPU')}",
            *_energy_parts(costs),
        ]
    if costs.priced:
        dated = f", oldest price of {fmt.date(costs.price_date)}" if costs.price_date else ""
        of = "" if costs.priced == costs.power_cards else f" for {fmt.plural(costs.priced, 'priced GPU')}"
        parts.append(f"renting them all: {fmt.rounded_money(costs.rent_usd_per_hour)}/h{of} (median on-demand{dated})")
    return "  ·  ".join(parts) if costs.power_cards or costs.priced else ""


def _energy_parts(costs: FleetCosts) -> list[str]:
    """Return the energy of the last day with what it cost, or else of a day at the power now."""
    if costs.kwh_last_day is None or costs.last_day_held_fraction is None:
        used, usd = f"{costs.kwh_per_day:,.0f}{fmt.THIN}kWh a day at that", costs.electricity_usd_per_day
        return [used] if usd is None else [used, f"{fmt.rounded_money(usd)} of electricity"]
    is_whole = costs.last_day_held_fraction > _WHOLE_DAY
    held = "" if is_whole else f", of which the server holds {fmt.percent(costs.last_day_held_fraction)}"
    usd = costs.electricity_usd_last_day
    bill = "" if usd is None else f" ({fmt.rounded_money(usd)} of electricity)"
    parts = [f"{fmt.significant(costs.kwh_last_day)}{fmt.THIN}kWh{bill} in the last 24{fmt.THIN}h{held}"]
    if costs.idle_usd_last_day:
        parts.append(f"GPUs idle in that time: {fmt.rounded_money(costs.idle_usd_last_day)} of rent")
    return parts


def server_line(cost: ServingCost) -> str:
    """Return an inference server as one line: tokens per second, requests, cache, latencies and cost per million."""
    server, run = cost.server, cost.server.run
    first, between = run.first_token, run.inter_token or run.output_token
    parts = [
        " ".join(filter(None, (run.engine or "", run.model or "", f"at {server.pod or server.instance}"))),
        "" if server.output_tokens_per_s is None else f"{server.output_tokens_per_s:,.1f} output tokens/s",
        "" if server.running is None else f"{server.running:.0f} running",
        "" if server.waiting is None else f"{server.waiting:.0f} waiting",
        "" if run.cache_tokens is None else f"KV cache {run.cache_tokens:,} tokens",
        ""
        if server.cache_usage_fraction is None
        else f"{fmt.percent(server.cache_usage_fraction)} of the KV cache in use",
        "" if first is None else _percentiles("first token", first.percentiles),
        "" if between is None else _percentiles("between tokens", between.percentiles),
        _cost_text(cost),
    ]
    return "  ·  ".join(filter(None, parts))


def _percentiles(title: str, percentiles: Sequence[MeasuredPercentile]) -> str:
    known = {one.percent: one.value for one in percentiles}
    shown = [f"p{percent:.0f} {fmt.duration(known[percent])}" for percent in (50.0, 95.0) if percent in known]
    return f"{title} {', '.join(shown)}" if shown else ""


def _cost_text(cost: ServingCost) -> str:
    if cost.usd_per_million_tokens is None:
        return ""
    cards = fmt.plural(cost.cards, "GPU")
    return f"{fmt.money(cost.usd_per_million_tokens)} per million output tokens (rent of {cards})"
