"""`gpu-planner cost`: whether to rent or to buy for a job, how sure that is, and the evidence on request."""

import argparse
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, NamedTuple

from pydantic_core import to_json

from planner.cli.money_options import add_money_options, option_of, plan_with_money
from planner.cli.parser import Parser, row_limit_or_none
from planner.cli.plan_arguments import add_plan_options, save_plan_as
from planner.cli.table import TableColumn, column_table, prose_width, table, terminal_width, wrap, wrap_phrase
from planner.cli.user_catalog import user_catalog
from planner.cost.carbon import carbon_by_region
from planner.cost.demand import Demand
from planner.cost.estimate import CostEstimate, hybrid_of_plan
from planner.cost.rent_or_buy.decision import Hybrid
from planner.cost.rent_or_buy.uncertainty import simulate, tornado
from planner.cost.result import CostResult, Decision, Footprint
from planner.cost.terms import Service
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.cost import PlanCost, evaluate_cost, plan_throughput
from planner.plan.cost_alternatives import BatchedService, FasterRental, find_batched_service, find_faster_rental
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import Plan
from planner.present import format as fmt
from planner.present.cost.amounts import MoneyRow, money_rows, short_source, swing_rows
from planner.present.cost.decision import (
    batched_service_sentence,
    buying_title,
    faster_rental_sentence,
    machines_sentence,
    modes_sentence,
    result_lines,
    side_rows,
)
from planner.present.cost.offers import JOB_OFFER_COLUMNS
from planner.present.cost.rent_or_buy import ComparedPlan, scenario_rows
from planner.present.cost.summary import (
    carbon_sentence,
    chance_sentence,
    hybrid_sentence,
    own_sentence,
    rent_sentence,
    running_period,
)
from planner.present.cost.time import time_view
from planner.present.plan.phrase import plan_phrase

_NAME_A_CARD: Final = 'Name one GPU, such as --gpu "RTX 4090", or let `gpu-planner recommend` choose it.'
_DESCRIPTION: Final = """\
Estimate how long the plan's job takes, and decide whether to rent or to buy its GPUs: the verdict with how sure it is,
the figures of both sides, what would change it, and on request every cost with its source and date."""
_EPILOG: Final = """\
examples:
  gpu-planner cost --preset unsloth-llama-3.1-8b --gpu "RTX 4090" --tokens 50e6
  gpu-planner cost plan.json --hours-per-day 12 --card-price 1900 --electricity DE --place desk
  gpu-planner cost meta-llama/Llama-3.1-8B --profile vllm --batch 32 --gpu l40s --requests-per-day 20000
  gpu-planner cost plan.json --own --place desk --electricity DE
  gpu-planner cost plan.json --mode spot --explain
  gpu-planner cost plan.json --versus "2 x L40S"
  gpu-planner cost plan.json --tornado --carbon --json

Without a job, the GPUs are assumed to be in use for eight hours on working days. The bundled prices are dated and
need no network; `gpu-planner prices --refresh` fetches new ones.

The verdict names a side if it is cheaper in at least 65 % of the draws of a Monte Carlo simulation with a fixed seed;
else it is too close to call. A plan that does not fit, or whose speed is unknown, gets no verdict.

--json prints one object: plan, time, cost (rent, own, break_even, curve, answer, blocked, machines, notes), demand,
offers and hybrid; for a service also batched_service, with --own also faster_rental, with --tornado tornado and
simulation, with --carbon carbon_by_region, with --versus other, an object with the same fields. cost.answer has the
verdict, its confidence, rent_figures, own_figures and flips. The name of every numeric field ends in its unit; unknown
values are null.

exit codes: 0 done, 2 invalid input"""
_OFFERS: Final = 8
_SECONDS_PER_HOUR: Final = 3_600
_REPORT_FLAGS: Final = ("--explain", "--details", "--tornado", "--carbon")
_ONLY_HERE: Final = ("--gpu", "--count", "--offers", "--versus", "--save")
"""Options with a value that `recommend` does not need."""
_OFFER_KEYS: Final = ("provider", "instance", "instances", "region", "hours", "usd", "gpu_hour", "age", "remarks")
_REGIONS: Final = 10
_MORE: Final = (
    "--details shows every cost with its source and date, electricity and carbon; --explain also the formulas."
)
_SOURCE: Final = TableColumn("Source", flexible=True, narrowest=12)
_MONEY_HEADS: Final = (
    TableColumn("", flexible=True),
    TableColumn("Amount", "right"),
    TableColumn("Range"),
    TableColumn("Certainty"),
    TableColumn("Date"),
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
        """Return the best mix of owned and rented cards for a service, or None if no mix makes sense."""
        return hybrid_of_plan(self.estimate, self.evaluation.plan.cost, plan_throughput(self.evaluation))

    @property
    def faster_rental(self) -> FasterRental | None:
        """Return the cheapest rental that is faster than the owned cards; None without owned cards or such a rental."""
        if not self.evaluation.plan.cost.buy.owned or self.estimate.result.blocked is not None:
            return None
        return find_faster_rental(self.evaluation, self.estimate, self.catalog, self.today)

    @property
    def batched_service(self) -> BatchedService | None:
        """Return the program that serves the requests with fewer cards; None without a service or such a program."""
        if self.estimate.result.blocked is not None:
            return None
        return find_batched_service(self.evaluation, self.estimate, self.catalog, self.today)

    @property
    def energy_kwh(self) -> float | None:
        """Return the kWh of a run or month, on rented cards if their region is known, else on owned cards."""
        rent, own = self.estimate.result.rent, self.estimate.result.own
        if rent is not None and rent.carbon is not None:
            return rent.carbon.energy_kwh
        return None if own is None else own.carbon.energy_kwh


class ReportOptions(NamedTuple):
    """Width and optional parts of the report."""

    width: int | None
    details: bool
    explain: bool
    offers: int
    tornado: bool
    carbon: bool


def run(argv: list[str], today: date | None = None) -> int:
    """Run the command with prices as of `today`, by default the current day, and return the exit code."""
    arguments = make_parser().parse_args(argv)
    catalog = user_catalog()
    plan = _with_owned_cards(plan_with_money(arguments, catalog), owned=arguments.own)
    day = today or datetime.now(UTC).date()
    answer = _answer(plan, catalog, day)
    other = _answer(_versus_plan(arguments.versus, plan, catalog), catalog, day) if arguments.versus else None
    if arguments.save:
        save_plan_as(arguments.save, plan)
    if arguments.json:
        fields = _fields(answer, arguments) | ({} if other is None else {"other": _fields(other, arguments)})
        print(to_json(fields, indent=2).decode())
    else:
        shown = _shown(arguments)
        beside = () if other is None else (beside_block(answer, other, shown.width),)
        ways = (_recommendation_hint(argv, shown.width),) if answer.estimate.result.blocked else ()
        print("\n\n".join(block for block in (*cost_blocks(answer, shown), *beside, *ways) if block))
    return 0


def _with_owned_cards(plan: Plan, *, owned: bool) -> Plan:
    """Return the plan, with its cards as owned already if `--own` is given."""
    return plan.evolve(cost=plan.cost.evolve(buy=plan.cost.buy.evolve(owned=True))) if owned else plan


def _shown(arguments: argparse.Namespace) -> ReportOptions:
    return ReportOptions(
        width=terminal_width(),
        details=arguments.details or arguments.explain,
        explain=arguments.explain,
        offers=arguments.offers,
        tornado=arguments.tornado,
        carbon=arguments.carbon,
    )


def _recommendation_hint(argv: list[str], width: int | None) -> str:
    """Return the command that finds hardware for the same job: the same words without cards and options of the report.

    A command is never wrapped, so that it can be copied.
    """
    words = iter(argv)
    kept = []
    for word in words:
        if word in _ONLY_HERE:
            next(words, None)
        elif word not in _REPORT_FLAGS and word.partition("=")[0] not in _ONLY_HERE:
            kept.append(word)
    command = shlex.join(("gpu-planner", "recommend", *kept))
    return f"{wrap('Hardware that the plan runs on:', prose_width(width))}\n  {command}"


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner cost", _DESCRIPTION, _EPILOG)
    add_plan_options(parser)
    add_money_options(parser)
    parser.add_argument_group("GPUs of your own").add_argument(
        "--own", action="store_true", help="you own these GPUs: only their electricity is counted"
    )
    answer = parser.add_argument_group("the answer")
    answer.add_argument(
        "--details", action="store_true", help="show every cost with its source and date, electricity and carbon"
    )
    answer.add_argument("--explain", action="store_true", help="--details with formula and numbers of each cost")
    answer.add_argument(
        "--offers", metavar="N", type=row_limit_or_none, default=_OFFERS, help=f"list N offers [{_OFFERS}]; 0: none"
    )
    answer.add_argument(
        "--tornado", action="store_true", help="show the sensitivity to each input, and a Monte Carlo simulation"
    )
    answer.add_argument("--carbon", action="store_true", help="show the carbon emissions in other regions")
    answer.add_argument("--versus", metavar="OTHER", help="compare with a PLAN.json, with other GPUs or another model")
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
    return SpecError("--gpu", reason, _NAME_A_CARD if cost.field == "gpu" else "Name one kind of GPU.")


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
    if isinstance(answer.evaluation.plan.cost.job, Service):
        found["batched_service"] = answer.batched_service
    if answer.evaluation.plan.cost.buy.owned:
        found["faster_rental"] = answer.faster_rental
    if arguments.tornado:
        case = estimate.case
        found |= {"tornado": tornado(case) if case else None, "simulation": simulate(case) if case else None}
    if arguments.carbon:
        found["carbon_by_region"] = None if energy is None else carbon_by_region(energy, answer.catalog.cost)
    return found


def cost_blocks(answer: DatedCostEstimate, shown: ReportOptions) -> Iterator[str]:
    """Yield the blocks of the report as texts; a block without content is empty."""
    prose, result = prose_width(shown.width), answer.estimate.result
    headline, *lines = result_lines(result, answer.card, answer.today)
    duration = "" if result.blocked else _run_sentence(answer.estimate.demand)
    yield _wrapped_sentences((headline, duration, *lines), prose)
    if result.blocked is not None:
        yield wrap_phrase(plan_phrase(answer.evaluation, answer.catalog), prose)
        yield _memory_advice_block(answer, shown.width)
        return
    yield _decision_table(result.answer, shown.width)
    yield _wrapped_sentences(
        (machines_sentence(result.machines, answer.card), _batched_service_sentence(answer)), prose
    )
    yield _wrapped_sentences(_hybrid_sentences(answer), prose)
    yield _wrapped_sentences((modes_sentence(result), _faster_rental_sentence(answer)), prose)
    yield wrap_phrase(plan_phrase(answer.evaluation, answer.catalog), prose)
    if answer.evaluation.time is not None:
        view = time_view(answer.evaluation.time)
        yield _wrapped_sentences((view.answer, view.reason), prose)
    if shown.details or result.answer is None:
        yield from _cost_tables(result, answer, shown)
        yield _wrapped_sentences(_carbon_sentences(answer), prose)
    if shown.carbon:
        yield _carbon_table(answer, shown.width)
    if shown.tornado:
        yield _sensitivity_table(answer.estimate, shown.width)
    if shown.offers:
        yield _offers_table(answer.estimate, shown)
    yield "\n".join(wrap(note, prose, "- ") for note in _notes_on_decision(answer, all_notes=shown.details))
    if not shown.details:
        yield wrap(_MORE, prose)


def _run_sentence(demand: Demand) -> str:
    """Return how long the job takes; empty for a job without an end."""
    if demand.period != "run":
        return ""
    hours = (demand.busy_hours, demand.low_busy_hours, demand.high_busy_hours)
    return f"The run takes {fmt.duration_with_range(*(each * _SECONDS_PER_HOUR for each in hours))}."


def _memory_advice_block(answer: DatedCostEstimate, width: int | None) -> str:
    """Return a table of plan changes that would save memory, if the plan has no cost because it does not fit."""
    blocked = answer.estimate.result.blocked
    if blocked is None or blocked.code == "speed-unknown":
        return ""
    from planner.cli.advice import advice_block  # slow to load, and rarely needed
    from planner.plan.advice.advise import advise

    evaluation = answer.evaluation
    return advice_block(evaluation, advise(evaluation.plan, answer.catalog), width, all_with="gpu-planner fit --advise")


def _decision_table(decision: Decision | None, width: int | None) -> str:
    """Return a table with the figures of renting and of buying side by side."""
    if decision is None:
        return ""
    heads = (TableColumn(""), TableColumn("Renting", "right"), TableColumn(buying_title(decision), "right"))
    return table(heads, [list(row) for row in side_rows(decision)], width)


def _faster_rental_sentence(answer: DatedCostEstimate) -> str:
    found = answer.faster_rental
    return "" if found is None else faster_rental_sentence(found, answer.catalog.hardware.gpu(found.gpu).name)


def _batched_service_sentence(answer: DatedCostEstimate) -> str:
    found = answer.batched_service
    return (
        "" if found is None else batched_service_sentence(found, answer.card, answer.evaluation.workload.profile or "")
    )


def _hybrid_sentences(answer: DatedCostEstimate) -> Iterator[str]:
    hybrid = answer.hybrid
    if hybrid is not None:
        yield hybrid_sentence(hybrid, answer.evaluation.plan.cost.horizon_years)


def _wrapped_sentences(sentences: Iterable[str], width: int) -> str:
    return "\n".join(wrap(sentence, width) for sentence in sentences if sentence)


def _cost_tables(result: CostResult, answer: DatedCostEstimate, shown: ReportOptions) -> Iterator[str]:
    """Yield the costs of renting and of owning as texts, each a sentence and a table of the cost terms."""
    prose = prose_width(shown.width)
    if result.rent is not None:
        yield f"{wrap(rent_sentence(result.rent), prose)}\n\n{_cost_terms_text(money_rows(result.rent.terms), shown)}"
    if result.own is not None:
        yield wrap(own_sentence(result.own, answer.estimate.demand), prose)
        yield f"Upfront:\n{_cost_terms_text(money_rows(result.own.upfront), shown)}" if result.own.upfront else ""
        running = "Running costs of the run" if running_period(answer.estimate.demand) == "run" else "Monthly"
        yield f"{running}:\n{_cost_terms_text(money_rows(result.own.monthly), shown)}" if result.own.monthly else ""


def _cost_terms_text(rows: tuple[MoneyRow, ...], shown: ReportOptions) -> str:
    if shown.explain:
        return "\n".join(_explained_cost_term(row, prose_width(shown.width)) for row in rows)
    cells = [[row.title, row.text, row.range_text, row.certainty, row.date, row.short_source] for row in rows]
    return table(_MONEY_HEADS, cells, shown.width)


def _explained_cost_term(row: MoneyRow, width: int) -> str:
    ends = f" ({row.range_text})" if row.range_text else ""
    lines = [
        f"= {row.how}",
        *(f"{name} = {value}: {meaning} [{source}]" for name, value, meaning, source in row.symbols),
        *(() if any(row.source in symbol[3] for symbol in row.symbols) else (f"source: {row.source}",)),
    ]
    head = f"{row.title}: {row.text}{ends}, {row.certainty}"
    return "\n".join([head, *(wrap(line, width, "    ", "      ") for line in lines)])


def _carbon_sentences(answer: DatedCostEstimate) -> Iterator[str]:
    """Yield a sentence on the electricity and carbon emissions of rented cards, and one on owned cards."""
    result = answer.estimate.result
    if result.rent is not None and result.rent.carbon is not None:
        where = f"Rented in {_region_name(result.rent.carbon, answer)}"
        yield carbon_sentence(result.rent.carbon, where, answer.estimate.demand.period)
    if result.own is not None:
        where, period = f"Owned in {_region_name(result.own.carbon, answer)}", running_period(answer.estimate.demand)
        yield carbon_sentence(result.own.carbon, where, period)


def _region_name(carbon: Footprint, answer: DatedCostEstimate) -> str:
    return answer.catalog.cost.region(carbon.region).name


def _carbon_table(answer: DatedCostEstimate, width: int | None) -> str:
    """Return a table of the regions in which the same electricity causes the lowest carbon emissions."""
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


def _sensitivity_table(estimate: CostEstimate, width: int | None) -> str:
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
    text = wrap(chance_sentence(simulation), prose_width(width)) if simulation else ""
    return "\n\n".join(part for part in (table(heads, rows, width), text) if part)


def _offers_table(estimate: CostEstimate, shown: ReportOptions) -> str:
    rows = estimate.rows[: shown.offers]
    if not rows:
        return ""
    informative = {
        "instances": any(row.instances > 1 for row in rows),
        "remarks": any(row.remarks for row in rows),
    }
    wanted = [key for key in _OFFER_KEYS if informative.get(key, True)]
    columns = [column for column in JOB_OFFER_COLUMNS if column.key in wanted]
    count = f"{len(rows):,} of {len(estimate.rows):,} offers"
    order = "comparable and current ones first, then by cost"
    listed = column_table(columns, rows, dispensable=("region", "hours"))
    return f"{listed}\n\n{wrap(f'{count}; {order}', prose_width(shown.width))}"


def _notes_on_decision(answer: DatedCostEstimate, *, all_notes: bool) -> tuple[str, ...]:
    """Return the notes on the decision; `all_notes` adds notes on the time and on the costs of renting and owning."""
    time, result = answer.evaluation.time, answer.estimate.result
    noted = (
        (time, all_notes),
        (result, result.answer is not None),
        (result.rent, all_notes or result.answer is None),
        (result.own, all_notes or result.answer is None),
    )
    notes = (note for part, shown in noted if part is not None and shown for note in part.notes)
    return tuple(dict.fromkeys(map(fmt.sentence, notes)))


def beside_block(first: DatedCostEstimate, second: DatedCostEstimate, width: int | None) -> str:
    """Return the second plan's decision, and the figures of both plans side by side."""
    prose = prose_width(width)
    words = (f"Other: {plan_phrase(second.evaluation, second.catalog)}",)
    texts = (*words, *result_lines(second.estimate.result, second.card, second.today))
    heads = (
        TableColumn("", flexible=True),
        TableColumn("Plan", "right"),
        TableColumn("Other", "right"),
        TableColumn("Difference", "right"),
    )
    both = (ComparedPlan(answer.evaluation.time, answer.estimate) for answer in (first, second))
    rows = [[row.title, *(cell.text for cell in row.cells)] for row in scenario_rows(*both)]
    return "\n".join(wrap(line, prose) for line in texts) + f"\n\n{table(heads, rows, width)}"
