"""Renting beside owning as text: the answer first, the evidence below."""

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Final, NamedTuple

from planner.cli.report import prose_width, wrapped
from planner.cli.table import Head, table
from planner.cost.carbon import carbon_by_region
from planner.cost.estimate import CostEstimate, hybrid_of_plan
from planner.cost.rent_or_buy.hybrid import Hybrid
from planner.cost.rent_or_buy.uncertainty import simulate, tornado
from planner.cost.result import CostResult, Footprint
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.money import pace_of
from planner.present import format as fmt
from planner.present.job_offers import JOB_OFFER_COLUMNS
from planner.present.money import chance_sentence, own_sentence, rent_sentence, result_sentences
from planner.present.money_asides import carbon_sentence, hybrid_sentence
from planner.present.money_rows import MoneyRow, money_rows, swing_rows
from planner.present.plan import plan_phrase
from planner.present.sources import short_source
from planner.present.time import time_view
from planner.present.verdict import if_it_ran

_OFFER_KEYS: Final = ("provider", "instance", "instances", "region", "hours", "usd", "gpu_hour", "age", "remarks")
_FLEXIBLE: Final = ("provider", "instance", "region", "remarks")
_REGIONS: Final = 10
_SOURCE: Final = Head("Source", flexible=True, narrowest=12)
_MONEY_HEADS: Final = (
    Head("", flexible=True),
    Head("Amount", "right"),
    Head("Range"),
    Head("Certainty"),
    Head("Oldest figure"),
    _SOURCE,
)


class CostAnswer(NamedTuple):
    """A plan with what it costs on a day; the card by its name."""

    evaluation: Evaluation
    estimate: CostEstimate
    catalog: Catalog
    today: date

    @property
    def card(self) -> str:
        """Return the name of the plan's card."""
        return self.catalog.hardware.gpu(str(self.evaluation.plan.gpu)).name

    @property
    def hybrid(self) -> Hybrid | None:
        """Return what to own and what to rent of a service; none where that is no question."""
        return hybrid_of_plan(self.estimate, self.evaluation.plan.cost, pace_of(self.evaluation))

    @property
    def energy_kwh(self) -> float | None:
        """Return the electricity of a run or month on owned cards, else on rented ones whose place is known."""
        rent, own = self.estimate.result.rent, self.estimate.result.own
        if rent is not None and rent.carbon is not None:
            return rent.carbon.energy_kwh
        return None if own is None else own.carbon.energy_kwh


class Shown(NamedTuple):
    """How much of an answer is shown."""

    width: int | None
    explain: bool
    offers: int
    tornado: bool
    carbon: bool


def cost_blocks(answer: CostAnswer, shown: Shown) -> Iterator[str]:
    """Yield the blocks of the answer; some may be empty."""
    prose, result = prose_width(shown.width), answer.estimate.result
    yield _prose(result_sentences(result, answer.card, answer.today), prose)
    yield wrapped(plan_phrase(answer.evaluation, answer.catalog), prose)
    yield _prose(if_it_ran(answer.evaluation.memory), prose)
    if answer.evaluation.time is not None:
        view = time_view(answer.evaluation.time)
        yield _prose((view.answer, view.reason), prose)
    yield from _amounts(result, answer, shown)
    hybrid = answer.hybrid
    yield wrapped(hybrid_sentence(hybrid, answer.evaluation.plan.cost.horizon_years), prose) if hybrid else ""
    yield _prose(_carbon_sentences(answer), prose)
    if shown.carbon:
        yield _carbon_table(answer, shown.width)
    if shown.tornado:
        yield _tornado(answer.estimate, shown.width)
    if shown.offers:
        yield _offers(answer.estimate, shown)
    yield "\n".join(wrapped(note, prose, "- ") for note in _notes(answer))


def _prose(sentences: Iterable[str], width: int) -> str:
    return "\n".join(wrapped(sentence, width) for sentence in sentences if sentence)


def _amounts(result: CostResult, answer: CostAnswer, shown: Shown) -> Iterator[str]:
    """Yield what renting and owning cost, each as a sentence and its parts."""
    prose = prose_width(shown.width)
    if result.rent is not None:
        yield f"{wrapped(rent_sentence(result.rent), prose)}\n\n{_terms(money_rows(result.rent.terms), shown)}"
    if result.own is not None:
        yield wrapped(own_sentence(result.own, answer.estimate.demand), prose)
        yield f"At the start:\n{_terms(money_rows(result.own.upfront), shown)}"
        yield f"Each month:\n{_terms(money_rows(result.own.monthly), shown)}" if result.own.monthly else ""


def _terms(rows: tuple[MoneyRow, ...], shown: Shown) -> str:
    if shown.explain:
        return "\n".join(_explained(row, prose_width(shown.width)) for row in rows)
    cells = [[row.title, row.text, row.range_text, row.certainty, row.date, row.short_source] for row in rows]
    return table(_MONEY_HEADS, cells, shown.width)


def _explained(row: MoneyRow, width: int) -> str:
    ends = f" ({row.range_text})" if row.range_text else ""
    lines = [
        f"= {row.how}",
        *(f"{name} = {value}: {meaning} [{source}]" for name, value, meaning, source in row.symbols),
        *(() if any(row.source in symbol[3] for symbol in row.symbols) else (f"source: {row.source}",)),
    ]
    head = f"{row.title}: {row.text}{ends}, {row.certainty}"
    return "\n".join([head, *(wrapped(line, width, "    ", "      ") for line in lines)])


def _carbon_sentences(answer: CostAnswer) -> Iterator[str]:
    """Yield the electricity and carbon of a run or month where it is rented, and where it is owned."""
    result = answer.estimate.result
    if result.rent is not None and result.rent.carbon is not None:
        where = f"Rented in {_named(result.rent.carbon, answer)}"
        yield carbon_sentence(result.rent.carbon, where, answer.estimate.demand.period)
    if result.own is not None:
        yield carbon_sentence(result.own.carbon, f"Owned in {_named(result.own.carbon, answer)}", "month")


def _named(carbon: Footprint, answer: CostAnswer) -> str:
    return answer.catalog.cost.region(carbon.region).name


def _carbon_table(answer: CostAnswer, width: int | None) -> str:
    """Return what the same electricity would stand for in the regions with the least, and in the most."""
    energy = answer.energy_kwh
    if energy is None:
        return ""
    heads = (Head("Region", flexible=True), Head("g/kWh", "right"), Head("CO₂, kg", "right"), Head("Date"), _SOURCE)
    everywhere = carbon_by_region(energy, answer.catalog.cost)
    rows = [
        [
            *(row.name, fmt.plain(row.grams_per_kwh.value), fmt.plain(row.carbon_kg), row.grams_per_kwh.date or ""),
            short_source(row.grams_per_kwh.source),
        ]
        for row in everywhere[:_REGIONS]
    ]
    last = everywhere[-1]
    counted = (
        f"{len(rows):,} of {len(everywhere):,} regions, the least first; "
        f"the most is {fmt.quantity(last.carbon_kg, 'kg')} in {last.name}"
    )
    return f"{table(heads, rows, width)}\n\n{wrapped(counted, prose_width(width))}"


def _tornado(estimate: CostEstimate, width: int | None) -> str:
    if estimate.case is None or estimate.result.rent is None:
        return ""
    heads = (
        Head("Input", flexible=True),
        Head("from", "right"),
        Head("to", "right"),
        Head("owning saves", "right"),
        Head("to", "right"),
        Head(""),
    )
    rows = [
        [
            *(row.title, row.low_value, row.high_value, fmt.money(row.low_saving_usd), fmt.money(row.high_saving_usd)),
            "flips" if row.flips else "",
        ]
        for row in swing_rows(tornado(estimate.case))
    ]
    simulation = simulate(estimate.case)
    told = wrapped(chance_sentence(simulation), prose_width(width)) if simulation else ""
    return "\n\n".join(part for part in (table(heads, rows, width), told) if part)


def _offers(estimate: CostEstimate, shown: Shown) -> str:
    rows = estimate.rows[: shown.offers]
    if not rows:
        return ""
    saying = {
        "instances": any(row.instances > 1 for row in rows),
        "remarks": any(row.remarks for row in rows),
    }
    wanted = [key for key in _OFFER_KEYS if saying.get(key, True)]
    columns = [column for column in JOB_OFFER_COLUMNS if column.key in wanted]
    heads = [Head(column.title, column.align, column.key in _FLEXIBLE, narrowest=6) for column in columns]
    cells = [[column.text(row) for column in columns] for row in rows]
    return f"{table(heads, cells, shown.width)}\n\n{len(rows):,} of {len(estimate.rows):,} offers for this job"


def _notes(answer: CostAnswer) -> tuple[str, ...]:
    time, result = answer.evaluation.time, answer.estimate.result
    parts = (time, result if result.answer else None, result.rent, result.own)
    return tuple(dict.fromkeys(fmt.sentence(note) for part in parts if part is not None for note in part.notes))
