"""`gpu-planner cost`: how long it takes, and whether to rent or to buy."""

import argparse
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from pydantic_core import to_json

from planner.cli.asked import add_plan_options, asked_plan, save_asked
from planner.cli.money_options import add_money_options, money_from
from planner.cli.options import in_options
from planner.cli.parser import Parser
from planner.cli.report import prose_width, wrapped
from planner.cli.table import Head, table, terminal_width
from planner.cost.estimate import CostEstimate
from planner.cost.montecarlo import simulate
from planner.cost.sensitivity import tornado
from planner.cost.table import OfferRow
from planner.errors import SpecError
from planner.paths import own_hardware_file, prices_dir
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.money import PlanCost, evaluate_cost
from planner.present import format as fmt
from planner.present.money import (
    MoneyRow,
    chance_sentence,
    money_rows,
    own_sentence,
    rent_sentence,
    result_sentences,
    swing_rows,
)
from planner.present.plan import plan_phrase
from planner.present.prices import MODE_WORDS, age_words
from planner.present.time import time_view

_DESCRIPTION: Final = """\
Say how long the plan's job takes on its cards, what renting them costs, what owning them costs, and from when on
owning is cheaper: the answer first, then what would change it, every figure with its source and date."""

_EPILOG: Final = """\
examples:
  gpu-planner cost meta-llama/Llama-3.1-8B --task training --method qlora --gpu "RTX 4090" --tokens 50e6
  gpu-planner cost plan.json --hours-per-day 12 --card-price 1900 --electricity DE --place desk
  gpu-planner cost meta-llama/Llama-3.1-8B --profile vllm --batch 32 --gpu l40s --requests-per-day 20000
  gpu-planner cost plan.json --mode spot --explain
  gpu-planner cost plan.json --offers 20
  gpu-planner cost plan.json --tornado --json

Prices are dated and come without a network; `gpu-planner prices --refresh` fetches new ones."""
_OFFERS: Final = 8


def run(argv: list[str]) -> int:
    """Answer and return the exit code."""
    arguments = _parser().parse_args(argv)
    catalog = load_catalog(prices=prices_dir(), own=own_hardware_file())
    try:
        asked = asked_plan(arguments, catalog)
        plan = asked.plan.evolve(cost=money_from(arguments, asked.plan.cost))
    except SpecError as error:
        raise in_options(error) from error
    evaluation = evaluate(plan, catalog)
    cost, today = evaluate_cost(evaluation, catalog, datetime.now(UTC).date()), datetime.now(UTC).date()
    if cost.estimate is None:
        raise SpecError(cost.field.removeprefix("cost."), cost.reason, _hint(cost))
    if arguments.save:
        save_asked(arguments.save, plan)
    if arguments.json:
        print(to_json(_fields(evaluation, cost.estimate, arguments), indent=2).decode())
    else:
        print("\n\n".join(block for block in _blocks(evaluation, cost.estimate, catalog, arguments, today) if block))
    return 0


def _parser() -> Parser:
    parser = Parser("gpu-planner cost", _DESCRIPTION, _EPILOG)
    add_plan_options(parser)
    add_money_options(parser)
    answer = parser.add_argument_group("the answer")
    answer.add_argument("--explain", action="store_true", help="open each amount: formula, numbers, sources, dates")
    answer.add_argument("--offers", metavar="N", type=int, default=_OFFERS, help=f"list N offers [{_OFFERS}]; 0: none")
    answer.add_argument("--tornado", action="store_true", help="which input moves the decision, and how sure it is")
    answer.add_argument("--save", metavar="PLAN.json", type=Path, help="write the plan to a file")
    parser.add_general()
    return parser


def _hint(cost: PlanCost) -> str:
    return {"gpu": "Add --gpu.", "workload.gpus": "Name one kind of card."}.get(cost.field, "")


def _fields(evaluation: Evaluation, estimate: CostEstimate, arguments: argparse.Namespace) -> dict[str, object]:
    """Return the whole answer for scripts."""
    found: dict[str, object] = {
        "plan": evaluation.plan,
        "time": evaluation.time,
        "cost": estimate.result,
        "demand": estimate.demand,
        "offers": estimate.rows,
    }
    if arguments.tornado and estimate.case is not None:
        found |= {"tornado": tornado(estimate.case), "simulation": simulate(estimate.case)}
    return found


def _blocks(
    evaluation: Evaluation, estimate: CostEstimate, catalog: Catalog, arguments: argparse.Namespace, today: date
) -> Iterator[str]:
    width = terminal_width()
    prose = prose_width(width)
    card = catalog.hardware.gpu(str(evaluation.plan.gpu)).name
    result = estimate.result
    yield "\n".join(wrapped(sentence, prose) for sentence in result_sentences(result, card, today))
    yield wrapped(plan_phrase(evaluation, catalog), prose)
    if evaluation.time is not None:
        view = time_view(evaluation.time)
        yield "\n".join(wrapped(sentence, prose) for sentence in (view.answer, view.reason) if sentence)
    if result.rent is not None:
        yield wrapped(rent_sentence(result.rent), prose)
        yield _terms(money_rows(result.rent.terms), prose, explain=arguments.explain)
    if result.own is not None:
        yield wrapped(own_sentence(result.own, estimate.demand), prose)
        yield _terms(money_rows(result.own.upfront), prose, explain=arguments.explain)
        yield "Each month:\n" + _terms(money_rows(result.own.monthly), prose, explain=arguments.explain)
    if arguments.tornado and estimate.case is not None:
        yield _tornado(estimate, width)
    if arguments.offers > 0 and estimate.rows:
        yield _offers(estimate.rows[: arguments.offers], len(estimate.rows), width)
    notes = (*(evaluation.time.notes if evaluation.time else ()), *_notes(estimate))
    yield "\n".join(wrapped(note, prose, "- ") for note in dict.fromkeys(notes))


def _notes(estimate: CostEstimate) -> tuple[str, ...]:
    result = estimate.result
    rent, own = result.rent.notes if result.rent else (), result.own.notes if result.own else ()
    return (*(result.notes if result.answer else ()), *rent, *own)


def _terms(rows: tuple[MoneyRow, ...], width: int, *, explain: bool) -> str:
    if not explain:
        heads = (Head(""), Head("USD", "right"), Head("Certainty"), Head("Source", flexible=True))
        return table(heads, [[row.title, row.text, row.certainty, row.source] for row in rows], terminal_width())
    return "\n".join(_explained(row, width) for row in rows)


def _explained(row: MoneyRow, width: int) -> str:
    ends = f" ({row.range_text})" if row.range_text else ""
    lines = [
        f"= {row.how}",
        *(f"{name} = {value}: {meaning} [{source}]" for name, value, meaning, source in row.symbols),
    ]
    head = f"{row.title}: {row.text}{ends}, {row.certainty}"
    return "\n".join([head, *(wrapped(line, width, "    ", "      ") for line in lines)])


def _tornado(estimate: CostEstimate, width: int | None) -> str:
    assert estimate.case is not None  # asked only where there is a case
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
    told = "" if simulation is None else f"\n{chance_sentence(simulation)}"
    return f"{table(heads, rows, width)}{told}"


def _offers(rows: tuple[OfferRow, ...], number: int, width: int | None) -> str:
    heads = (
        Head("Provider", flexible=True),
        Head("Instance", flexible=True),
        Head("Region", flexible=True),
        Head("How"),
        Head("Hours", "right"),
        Head("USD", "right"),
        Head("a GPU·h", "right"),
        Head("Age", "right"),
        Head("", flexible=True),
    )
    cells = [
        [
            row.offer.provider,
            f"{row.instances} × {row.offer.instance}" if row.instances > 1 else row.offer.instance,
            row.offer.region or "not said",
            MODE_WORDS[row.mode],
            fmt.significant(row.hours),
            fmt.money(row.usd),
            fmt.money(row.usd_per_gpu_hour),
            age_words(row.age_days),
            "; ".join(row.remarks),
        ]
        for row in rows
    ]
    return f"{table(heads, cells, width)}\n\n{len(rows):,} of {number:,} offers for this job"
