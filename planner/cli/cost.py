"""`gpu-planner cost`: whether to rent or to buy for a job, how sure that is, and the evidence on request."""

import argparse
import shlex
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from pydantic_core import to_json

from planner.cli.cost_report import DatedCostEstimate, ReportOptions, beside_block, cost_blocks
from planner.cli.money_options import add_money_options, option_of, plan_with_money
from planner.cli.parser import Parser, row_limit_or_none
from planner.cli.plan_arguments import add_plan_options, save_plan_as
from planner.cli.table import prose_width, terminal_width, wrap
from planner.cli.user_catalog import user_catalog
from planner.cost.carbon import carbon_by_region
from planner.cost.rent_or_buy.uncertainty import simulate, tornado
from planner.cost.terms import Service
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.money import PlanCost, evaluate_cost
from planner.plan.plan import Plan

_NAME_A_CARD: Final = 'Name one GPU, such as --gpu "RTX 4090", or let `gpu-planner recommend` choose it.'
_DESCRIPTION: Final = """\
Decide whether to rent or to buy the plan's GPUs for its job: the verdict with how sure it is, the figures of both
sides, what would change it, and on request every cost with its source and date."""

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
_REPORT_FLAGS: Final = ("--explain", "--details", "--tornado", "--carbon")
_ONLY_HERE: Final = ("--gpu", "--count", "--offers", "--versus", "--save")
"""Options with a value that `recommend` does not need."""


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
    flags, valued = (
        ("--explain", "--details", "--tornado", "--carbon"),
        ("--gpu", "--count", "--offers", "--versus", "--save"),
    )
    words = iter(argv)
    kept = []
    for word in words:
        if word in valued:
            next(words, None)
        elif word not in flags and word.partition("=")[0] not in valued:
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
