"""`gpu-planner cost`: how long it takes, and whether to rent or to buy."""

import argparse
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from pydantic_core import to_json

from planner.cli.asked import add_plan_options, save_asked
from planner.cli.cost_report import CostAnswer, Shown, cost_blocks
from planner.cli.money_options import add_money_options, option_of, plan_with_money, whole_number
from planner.cli.parser import Parser
from planner.cli.people import persons_catalog
from planner.cli.report import prose_width, wrapped
from planner.cli.table import Head, table, terminal_width
from planner.cost.carbon import carbon_by_region
from planner.cost.rent_or_buy.uncertainty import simulate, tornado
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.money import PlanCost, evaluate_cost
from planner.plan.plan import Plan
from planner.present.money import result_sentences
from planner.present.plan import plan_phrase
from planner.present.ways import Scenario, scenario_rows

_DESCRIPTION: Final = """\
Say how long the plan's job takes on its cards, what renting them costs, what owning them costs, and from when on
owning is cheaper: the answer first, then what would change it, every figure with its source and date."""

_EPILOG: Final = """\
examples:
  gpu-planner cost meta-llama/Llama-3.1-8B --task training --method qlora --gpu "RTX 4090" --tokens 50e6
  gpu-planner cost plan.json --hours-per-day 12 --card-price 1900 --electricity DE --place desk
  gpu-planner cost meta-llama/Llama-3.1-8B --profile vllm --batch 32 --gpu l40s --requests-per-day 20000
  gpu-planner cost plan.json --mode spot --explain
  gpu-planner cost plan.json --versus "2 x L40S"
  gpu-planner cost plan.json --tornado --carbon --json

Without a job, cards are taken to be in use for eight hours of working days. Prices are dated and come without a
network; `gpu-planner prices --refresh` fetches new ones.

--json prints one object: plan, time, cost (rent, own, break_even, curve, answer, notes), demand, offers and hybrid;
with --tornado also tornado and simulation, with --carbon carbon_by_region, with --versus other, an object of the same
kind. Every number's field ends in its unit; what is not known is null.

exit codes: 0 done, 2 wrong input"""
_OFFERS: Final = 8


def run(argv: list[str], today: date | None = None) -> int:
    """Answer as of `today`, by default the day that it is, and return the exit code."""
    arguments = _parser().parse_args(argv)
    catalog = persons_catalog()
    plan = plan_with_money(arguments, catalog)
    day = today or datetime.now(UTC).date()
    answer = _answer(plan, catalog, day)
    other = _answer(_other(arguments.versus, plan, catalog), catalog, day) if arguments.versus else None
    if arguments.save:
        save_asked(arguments.save, plan)
    if arguments.json:
        fields = _fields(answer, arguments) | ({} if other is None else {"other": _fields(other, arguments)})
        print(to_json(fields, indent=2).decode())
    else:
        shown = Shown(terminal_width(), arguments.explain, arguments.offers, arguments.tornado, arguments.carbon)
        beside = () if other is None else (_versus(answer, other, shown.width),)
        print("\n\n".join(block for block in (*cost_blocks(answer, shown), *beside) if block))
    return 0


def _parser() -> Parser:
    parser = Parser("gpu-planner cost", _DESCRIPTION, _EPILOG)
    add_plan_options(parser)
    add_money_options(parser)
    answer = parser.add_argument_group("the answer")
    answer.add_argument("--explain", action="store_true", help="open each amount: formula, numbers, sources, dates")
    answer.add_argument(
        "--offers", metavar="N", type=whole_number, default=_OFFERS, help=f"list N offers [{_OFFERS}]; 0: none"
    )
    answer.add_argument("--tornado", action="store_true", help="which input moves the decision, and how sure it is")
    answer.add_argument("--carbon", action="store_true", help="what the same electricity stands for elsewhere")
    answer.add_argument("--versus", metavar="OTHER", help="beside a PLAN.json, other cards or another model")
    answer.add_argument("--save", metavar="PLAN.json", type=Path, help="write the plan to a file")
    parser.add_general()
    return parser


def _answer(plan: Plan, catalog: Catalog, today: date) -> CostAnswer:
    """Return what `plan` costs.

    Raises:
        SpecError: If it cannot be said; it names the option.
    """
    evaluation = evaluate(plan, catalog)
    cost = evaluate_cost(evaluation, catalog, today)
    if cost.estimate is None:
        raise _no_cost(cost)
    return CostAnswer(evaluation, cost.estimate, catalog, today)


def _no_cost(cost: PlanCost) -> SpecError:
    if cost.error is not None:
        return SpecError(option_of(cost.field), cost.error.reason, cost.error.hint)
    reason = f"{cost.reason[:1].lower()}{cost.reason[1:].removesuffix('.')}"
    return SpecError("--gpu", reason, "Name one card." if cost.field == "gpu" else "Name one kind of card.")


def _other(word: str, plan: Plan, catalog: Catalog) -> Plan:
    from planner.cli.versus import other_plan

    return other_plan(word, plan, catalog)


def _fields(answer: CostAnswer, arguments: argparse.Namespace) -> dict[str, object]:
    """Return the whole answer for scripts."""
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


def _versus(first: CostAnswer, second: CostAnswer, width: int | None) -> str:
    """Return both plans' figures side by side, with what the other one comes to."""
    prose = prose_width(width)
    words = (f"Other: {plan_phrase(second.evaluation, second.catalog)}",)
    told = (*words, *result_sentences(second.estimate.result, second.card, second.today))
    heads = (Head("", flexible=True), Head("Plan", "right"), Head("Other", "right"), Head("Difference", "right"))
    both = (Scenario(answer.evaluation.time, answer.estimate) for answer in (first, second))
    rows = [[row.title, *(cell.text for cell in row.cells)] for row in scenario_rows(*both)]
    return "\n".join(wrapped(line, prose) for line in told) + f"\n\n{table(heads, rows, width)}"
