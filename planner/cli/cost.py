"""`gpu-planner cost`: report on the duration of a job and whether to rent or buy, with the evidence below."""

import argparse
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, NamedTuple

from pydantic_core import to_json

from planner.cli.money_options import add_money_options, option_of, plan_with_money, whole_number
from planner.cli.parser import Parser
from planner.cli.plan_arguments import add_plan_options, save_plan_as
from planner.cli.report import prose_width, wrap
from planner.cli.table import TableColumn, table, terminal_width
from planner.cli.user_catalog import user_catalog
from planner.cost.carbon import carbon_by_region
from planner.cost.estimate import CostEstimate, hybrid_of_plan
from planner.cost.rent_or_buy.hybrid import Hybrid
from planner.cost.rent_or_buy.uncertainty import simulate, tornado
from planner.cost.result import CostResult, Footprint
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.money import PlanCost, evaluate_cost, plan_throughput
from planner.plan.plan import Plan
from planner.present import format as fmt
from planner.present.cost.amounts import MoneyRow, money_rows, short_source, swing_rows
from planner.present.cost.offers import JOB_OFFER_COLUMNS
from planner.present.cost.rent_or_buy import ComparedPlan, scenario_rows
from planner.present.cost.summary import (
    carbon_sentence,
    chance_sentence,
    hybrid_sentence,
    own_sentence,
    rent_sentence,
    result_sentences,
)
from planner.present.cost.time import time_view
from planner.present.memory.verdict import hypothetical_note
from planner.present.plan.phrase import plan_phrase

_OFFER_KEYS: Final = ("provider", "instance", "instances", "region", "hours", "usd", "gpu_hour", "age", "remarks")
_FLEXIBLE: Final = ("provider", "instance", "region", "remarks")
_REGIONS: Final = 10
_SOURCE: Final = TableColumn("Source", flexible=True, narrowest=12)
_MONEY_HEADS: Final = (
    TableColumn("", flexible=True),
    TableColumn("Amount", "right"),
    TableColumn("Range"),
    TableColumn("Certainty"),
    TableColumn("Oldest figure"),
    _SOURCE,
)


class DatedCostEstimate(NamedTuple):
    """A plan with its cost estimate as of the day `today`."""

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
        """Return the best mix of owned and rented cards of a service, or None if no mix makes sense."""
        return hybrid_of_plan(self.estimate, self.evaluation.plan.cost, plan_throughput(self.evaluation))

    @property
    def energy_kwh(self) -> float | None:
        """Return the electricity of a run or month on rented cards if their region is known, else on owned ones."""
        rent, own = self.estimate.result.rent, self.estimate.result.own
        if rent is not None and rent.carbon is not None:
            return rent.carbon.energy_kwh
        return None if own is None else own.carbon.energy_kwh


class ReportOptions(NamedTuple):
    """Width and optional parts of the report."""

    width: int | None
    explain: bool
    offers: int
    tornado: bool
    carbon: bool


def cost_blocks(answer: DatedCostEstimate, shown: ReportOptions) -> Iterator[str]:
    """Yield the blocks of the report; some may be empty."""
    prose, result = prose_width(shown.width), answer.estimate.result
    yield _prose(result_sentences(result, answer.card, answer.today), prose)
    yield wrap(plan_phrase(answer.evaluation, answer.catalog), prose)
    yield _prose(hypothetical_note(answer.evaluation.memory), prose)
    if answer.evaluation.time is not None:
        view = time_view(answer.evaluation.time)
        yield _prose((view.answer, view.reason), prose)
    yield from _amounts(result, answer, shown)
    hybrid = answer.hybrid
    yield wrap(hybrid_sentence(hybrid, answer.evaluation.plan.cost.horizon_years), prose) if hybrid else ""
    yield _prose(_carbon_sentences(answer), prose)
    if shown.carbon:
        yield _carbon_table(answer, shown.width)
    if shown.tornado:
        yield _tornado(answer.estimate, shown.width)
    if shown.offers:
        yield _offers(answer.estimate, shown)
    yield "\n".join(wrap(note, prose, "- ") for note in _notes(answer))


def _prose(sentences: Iterable[str], width: int) -> str:
    return "\n".join(wrap(sentence, width) for sentence in sentences if sentence)


def _amounts(result: CostResult, answer: DatedCostEstimate, shown: ReportOptions) -> Iterator[str]:
    """Yield the costs of renting and of owning, each as a sentence and a table of its terms."""
    prose = prose_width(shown.width)
    if result.rent is not None:
        yield f"{wrap(rent_sentence(result.rent), prose)}\n\n{_terms(money_rows(result.rent.terms), shown)}"
    if result.own is not None:
        yield wrap(own_sentence(result.own, answer.estimate.demand), prose)
        yield f"Upfront:\n{_terms(money_rows(result.own.upfront), shown)}"
        yield f"Monthly:\n{_terms(money_rows(result.own.monthly), shown)}" if result.own.monthly else ""


def _terms(rows: tuple[MoneyRow, ...], shown: ReportOptions) -> str:
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
    return "\n".join([head, *(wrap(line, width, "    ", "      ") for line in lines)])


def _carbon_sentences(answer: DatedCostEstimate) -> Iterator[str]:
    """Yield the electricity and carbon emissions of a run or month, rented and owned."""
    result = answer.estimate.result
    if result.rent is not None and result.rent.carbon is not None:
        where = f"Rented in {_named(result.rent.carbon, answer)}"
        yield carbon_sentence(result.rent.carbon, where, answer.estimate.demand.period)
    if result.own is not None:
        yield carbon_sentence(result.own.carbon, f"Owned in {_named(result.own.carbon, answer)}", "month")


def _named(carbon: Footprint, answer: DatedCostEstimate) -> str:
    return answer.catalog.cost.region(carbon.region).name


def _carbon_table(answer: DatedCostEstimate, width: int | None) -> str:
    """Return a table of the carbon emissions of the same electricity in the regions with the lowest."""
    energy = answer.energy_kwh
    if energy is None:
        return ""
    heads = (
        TableColumn("Region", flexible=True),
        TableColumn("g/kWh", "right"),
        TableColumn("CO₂, kg", "right"),
        TableColumn("Date"),
        _SOURCE,
    )
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
        f"{len(rows):,} of {len(everywhere):,} regions, lowest first; "
        f"highest: {fmt.quantity(last.carbon_kg, 'kg')} in {last.name}"
    )
    return f"{table(heads, rows, width)}\n\n{wrap(counted, prose_width(width))}"


def _tornado(estimate: CostEstimate, width: int | None) -> str:
    if estimate.case is None or estimate.result.rent is None:
        return ""
    heads = (
        TableColumn("Input", flexible=True),
        TableColumn("Low", "right"),
        TableColumn("High", "right"),
        TableColumn("Owning saves at low", "right"),
        TableColumn("at high", "right"),
        TableColumn(""),
    )
    rows = [
        [
            *(row.title, row.low_value, row.high_value, fmt.money(row.low_saving_usd), fmt.money(row.high_saving_usd)),
            "flips the decision" if row.flips else "",
        ]
        for row in swing_rows(tornado(estimate.case))
    ]
    simulation = simulate(estimate.case)
    told = wrap(chance_sentence(simulation), prose_width(width)) if simulation else ""
    return "\n\n".join(part for part in (table(heads, rows, width), told) if part)


def _offers(estimate: CostEstimate, shown: ReportOptions) -> str:
    rows = estimate.rows[: shown.offers]
    if not rows:
        return ""
    saying = {
        "instances": any(row.instances > 1 for row in rows),
        "remarks": any(row.remarks for row in rows),
    }
    wanted = [key for key in _OFFER_KEYS if saying.get(key, True)]
    columns = [column for column in JOB_OFFER_COLUMNS if column.key in wanted]
    heads = [TableColumn(column.title, column.align, column.key in _FLEXIBLE, narrowest=6) for column in columns]
    cells = [[column.text(row) for column in columns] for row in rows]
    return f"{table(heads, cells, shown.width)}\n\n{len(rows):,} of {len(estimate.rows):,} offers for this job"


def _notes(answer: DatedCostEstimate) -> tuple[str, ...]:
    time, result = answer.evaluation.time, answer.estimate.result
    parts = (time, result if result.answer else None, result.rent, result.own)
    return tuple(dict.fromkeys(fmt.sentence(note) for part in parts if part is not None for note in part.notes))


_DESCRIPTION: Final = """\
Estimate how long the plan's job takes on its cards, the costs of renting and of owning them, and the break-even: the
decision first, then what would change it, and every figure with its source and date."""

_EPILOG: Final = """\
examples:
  gpu-planner cost meta-llama/Llama-3.1-8B --task training --method qlora --gpu "RTX 4090" --tokens 50e6
  gpu-planner cost plan.json --hours-per-day 12 --card-price 1900 --electricity DE --place desk
  gpu-planner cost meta-llama/Llama-3.1-8B --profile vllm --batch 32 --gpu l40s --requests-per-day 20000
  gpu-planner cost plan.json --mode spot --explain
  gpu-planner cost plan.json --versus "2 x L40S"
  gpu-planner cost plan.json --tornado --carbon --json

Without a job, the cards are assumed to be in use for eight hours on working days. The bundled prices are dated and
need no network; `gpu-planner prices --refresh` fetches new ones.

--json prints one object: plan, time, cost (rent, own, break_even, curve, answer, notes), demand, offers and hybrid;
with --tornado also tornado and simulation, with --carbon carbon_by_region, with --versus other, an object with the same
fields. The name of every numeric field ends in its unit; unknown values are null.

exit codes: 0 done, 2 wrong input"""
_OFFERS: Final = 8


def run(argv: list[str], today: date | None = None) -> int:
    """Run the command with prices as of `today`, by default the current day, and return the exit code."""
    arguments = _parser().parse_args(argv)
    catalog = user_catalog()
    plan = plan_with_money(arguments, catalog)
    day = today or datetime.now(UTC).date()
    answer = _answer(plan, catalog, day)
    other = _answer(_versus_plan(arguments.versus, plan, catalog), catalog, day) if arguments.versus else None
    if arguments.save:
        save_plan_as(arguments.save, plan)
    if arguments.json:
        fields = _fields(answer, arguments) | ({} if other is None else {"other": _fields(other, arguments)})
        print(to_json(fields, indent=2).decode())
    else:
        shown = ReportOptions(
            terminal_width(), arguments.explain, arguments.offers, arguments.tornado, arguments.carbon
        )
        beside = () if other is None else (_versus(answer, other, shown.width),)
        print("\n\n".join(block for block in (*cost_blocks(answer, shown), *beside) if block))
    return 0


def _parser() -> Parser:
    parser = Parser("gpu-planner cost", _DESCRIPTION, _EPILOG)
    add_plan_options(parser)
    add_money_options(parser)
    answer = parser.add_argument_group("the answer")
    answer.add_argument("--explain", action="store_true", help="show formula, numbers, sources and dates of each term")
    answer.add_argument(
        "--offers", metavar="N", type=whole_number, default=_OFFERS, help=f"list N offers [{_OFFERS}]; 0: none"
    )
    answer.add_argument(
        "--tornado", action="store_true", help="show the sensitivity to each input, and a Monte Carlo simulation"
    )
    answer.add_argument("--carbon", action="store_true", help="show the carbon emissions in other regions")
    answer.add_argument("--versus", metavar="OTHER", help="compare with a PLAN.json, with other cards or another model")
    answer.add_argument("--save", metavar="PLAN.json", type=Path, help="write the plan to a file")
    parser.add_general_options()
    return parser


def _answer(plan: Plan, catalog: Catalog, today: date) -> DatedCostEstimate:
    """Return the cost of `plan`.

    Raises:
        SpecError: If it cannot be estimated; it names the option.
    """
    evaluation = evaluate(plan, catalog)
    cost = evaluate_cost(evaluation, catalog, today)
    if cost.estimate is None:
        raise _no_cost(cost)
    return DatedCostEstimate(evaluation, cost.estimate, catalog, today)


def _no_cost(cost: PlanCost) -> SpecError:
    if cost.error is not None:
        return SpecError(option_of(cost.field), cost.error.reason, cost.error.hint)
    reason = f"{cost.reason[:1].lower()}{cost.reason[1:].removesuffix('.')}"
    return SpecError("--gpu", reason, "Name one card." if cost.field == "gpu" else "Name one kind of card.")


def _versus_plan(word: str, plan: Plan, catalog: Catalog) -> Plan:
    from planner.cli.comparisons import other_plan

    return other_plan(word, plan, catalog)


def _fields(answer: DatedCostEstimate, arguments: argparse.Namespace) -> dict[str, object]:
    """Return the fields of the JSON output."""
    estimate, energy = answer.estimate, answer.energy_kwh
    found: dict[str, object] = {
        "plan": answer.evaluation.plan,
        "time": answer.evaluation.time,
        "cost": estimate.result,
        "demand": estimate.demand,
        "offers": estimate.rows,
        "hybrid": answer.hybrid,
    }
    if arguments.tornado:
        case = estimate.case
        found |= {"tornado": tornado(case) if case else None, "simulation": simulate(case) if case else None}
    if arguments.carbon:
        found["carbon_by_region"] = None if energy is None else carbon_by_region(energy, answer.catalog.cost)
    return found


def _versus(first: DatedCostEstimate, second: DatedCostEstimate, width: int | None) -> str:
    """Return the headline of the second plan, and the figures of both side by side."""
    prose = prose_width(width)
    words = (f"Other: {plan_phrase(second.evaluation, second.catalog)}",)
    told = (*words, *result_sentences(second.estimate.result, second.card, second.today))
    heads = (
        TableColumn("", flexible=True),
        TableColumn("Plan", "right"),
        TableColumn("Other", "right"),
        TableColumn("Difference", "right"),
    )
    both = (ComparedPlan(answer.evaluation.time, answer.estimate) for answer in (first, second))
    rows = [[row.title, *(cell.text for cell in row.cells)] for row in scenario_rows(*both)]
    return "\n".join(wrap(line, prose) for line in told) + f"\n\n{table(heads, rows, width)}"
