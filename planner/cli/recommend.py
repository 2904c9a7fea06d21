"""`gpu-planner recommend`: the best hardware for a job within a budget, a deadline and a power limit."""

import argparse
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, get_args

from pydantic import ValidationError

from planner.cli.main import DOES_NOT_FIT
from planner.cli.money_options import add_money_options, option_of, plan_with_money
from planner.cli.options import naming_options
from planner.cli.parser import Parser, comma_separated, option_value, row_limit_or_none
from planner.cli.plan_arguments import add_plan_options, save_plan_as, vendors_in_catalog
from planner.cli.table import column_table, prose_width, terminal_width, wrap
from planner.cli.user_catalog import user_catalog
from planner.cost.terms import CostTerms
from planner.dtypes import AS_STORED
from planner.errors import SpecError
from planner.numbers import COUNT, kind_at
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of
from planner.plan.plan import Plan
from planner.plan.recommend.option import Acquisition, Recommendation, Wish
from planner.plan.recommend.recommend import recommend
from planner.plan.recommend.variants import apply_option, counts_tokens
from planner.present.catalog.models import stored_format_text
from planner.present.cost.recommendation import (
    AwardView,
    Meter,
    assumed_use_sentence,
    award_views,
    excluded_sentence,
    no_option_sentence,
    option_columns,
    option_rows,
)
from planner.workload.workload import Inference

_DESCRIPTION: Final = """\
Evaluate the plan's job on every GPU, number of GPUs and offer, and recommend the cheapest, the fastest and the best
value of those that fit and are within the limits, each with its memory, time, cost and reason."""

_EPILOG: Final = """\
examples:
  gpu-planner recommend meta-llama/Llama-3.1-8B --task training --method qlora --tokens 50e6 --budget 20
  gpu-planner recommend plan.json --tokens 50e6 --deadline 24 --rent
  gpu-planner recommend meta-llama/Llama-3.1-70B --weights nf4 --hours-per-day 8 --own --place desk --min-speed 5
  gpu-planner recommend plan.json --save cheapest.json

best value: the lowest product of cost and time among the options that cost at most twice the cheapest.
Where the plan does not fit, changes that cost only speed are tried: checkpointing, an 8-bit optimizer, smaller
micro-batches; with --quantize, also weights in fewer bits, in the plan's program or in llama.cpp. --save applies
them. Families of GPUs whose speed was never measured are recommended only if there are no others. Owned modules (SXM,
OAM) come in whole servers; a desk has room for one machine with GPUs in slots, on one circuit.
--json prints one object: wish, period, options (cheapest first), cheapest, fastest, best_value, pareto, left_out,
nearest and oldest_price_date. The name of every numeric field ends in its unit; unknown values are null.

A run (--tokens, --samples, --epochs, --steps) is priced as a whole. Without a size, the GPUs are priced per month of
8 hours on 5 days a week; --hours-per-day and --days-per-week change that. A service is priced per month.

exit codes: 0 done, 1 nothing fits within the limits (only with --check), 2 invalid input"""
_LISTED: Final = ("cards", "how", "usd", "hours", "pace", "free", "power", "date", "awards")
_BAR: Final = 20
_INDENT: Final = "  "


def run(argv: list[str], today: date | None = None) -> int:
    """Run the command with prices as of `today`, by default the current day, and return the exit code."""
    arguments = make_parser().parse_args(argv)
    catalog = user_catalog()
    plan = plan_with_money(arguments, catalog)
    wish = _wish(arguments, catalog, counts_tokens=counts_tokens(plan, catalog))
    if wish.deadline_hours is not None and plan.cost.job.kind != "run":
        hint = "Add --tokens N, --samples N or --steps N."
        raise SpecError("--deadline", "a deadline needs the size of the run", hint)
    found = _recommendation(plan, catalog, today or datetime.now(UTC).date(), wish)
    if arguments.save and found.cheapest is not None:
        save_plan_as(arguments.save, apply_option(found.cheapest, plan, catalog))
    if arguments.json:
        print(found.model_dump_json(indent=2))
    else:
        print(_text(found, plan, catalog, None if arguments.all else arguments.limit))
    return DOES_NOT_FIT if arguments.check and not found.options else 0


def _recommendation(plan: Plan, catalog: Catalog, today: date, wish: Wish) -> Recommendation:
    try:
        found = recommend(plan, catalog, today, wish)
    except SpecError as error:
        if error.field.partition(".")[0] in CostTerms.model_fields:
            raise SpecError(option_of(f"cost.{error.field}"), error.reason, error.hint) from error
        raise naming_options(error) from error
    assert found is not None  # only a stopped search returns None
    return found


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner recommend", _DESCRIPTION, _EPILOG)
    add_plan_options(parser)
    add_money_options(parser)
    limits = parser.add_argument_group("limits")
    limits.add_argument("--budget", metavar="USD", help="highest cost of the run, or per month without a run")
    limits.add_argument("--max-price", metavar="USD", help="highest purchase price of all owned GPUs together")
    limits.add_argument("--deadline", metavar="HOURS", help="longest duration of a run")
    limits.add_argument("--power", metavar="WATTS", help="highest board power of all GPUs together")
    acquisition = limits.add_mutually_exclusive_group()
    acquisition.add_argument("--rent", action="store_true", help="rent only")
    acquisition.add_argument("--own", action="store_true", help="own only")
    limits.add_argument("--modes", metavar="MODES", help="rental modes, comma-separated [on-demand]")
    limits.add_argument("--counts", metavar="NUMBERS", help="numbers of GPUs, comma-separated [1,2,4,8]")
    limits.add_argument("--vendor", metavar="NAMES", help="only these vendors, comma-separated")
    limits.add_argument(
        "--min-speed",
        metavar="NUMBER",
        help="lowest tokens/s, of a run in total, otherwise of one answer; samples/s for models without tokens",
    )
    limits.add_argument(
        "--as-planned",
        action="store_true",
        help="do not try checkpointing, an 8-bit optimizer or smaller micro-batches",
    )
    limits.add_argument(
        "--quantize", action="store_true", help="also try weights in fewer bits, which can cost quality"
    )
    limits.add_argument("--tight", action="store_true", help="include tight fits (probability below 95 %%)")
    answer = parser.add_argument_group("the answer")
    answer.add_argument("--all", action="store_true", help="list all options")
    answer.add_argument("--check", action="store_true", help="exit with code 1 if nothing fits within the limits")
    answer.add_argument("--limit", metavar="N", type=row_limit_or_none, default=0, help="list the N cheapest options")
    answer.add_argument(
        "--save", metavar="PLAN.json", type=Path, help="write the plan with the cheapest option to a file"
    )
    parser.add_general_options()
    return parser


def _wish(arguments: argparse.Namespace, catalog: Catalog, *, counts_tokens: bool) -> Wish:
    having = [name for name in get_args(Acquisition) if getattr(arguments, name)]
    speed = "min_tokens_per_second" if counts_tokens else "min_samples_per_second"
    options = {
        "budget_usd": "budget",
        "max_price_usd": "max-price",
        "deadline_hours": "deadline",
        "power_limit_watts": "power",
        speed: "min-speed",
    }
    numbers: dict[str, object] = {
        field: option_value(f"--{option}", text, kind_at(Wish, field))
        for field, option in options.items()
        if (text := getattr(arguments, option.replace("-", "_"))) is not None
    }
    fields = {
        "having": having or None,
        "modes": comma_separated(arguments.modes),
        "counts": [option_value("--counts", text, COUNT) for text in comma_separated(arguments.counts) or ()] or None,
        "vendors": vendors_in_catalog(arguments.vendor, catalog),
        "include_tight": arguments.tight,
        "change_plan": not arguments.as_planned,
        "quantize": arguments.quantize,
    }
    try:
        return Wish.model_validate(numbers | {name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        name = problem.field.partition(".")[0]
        raise SpecError(
            f"--{options.get(name, name)}", problem.reason, problem.hint or "--help-all explains every option."
        ) from error


def _text(found: Recommendation, plan: Plan, catalog: Catalog, limit: int | None) -> str:
    width = terminal_width()
    rows = option_rows(found, catalog.hardware)
    period = f"{assumed_use_sentence(plan.cost)} Costs and the budget are per {found.period}."
    if isinstance(plan.workload, Inference) and plan.workload.weights in (None, AS_STORED) and plan.model.trace is None:
        period += f" Weights as stored: {stored_format_text(architecture_of(plan, catalog))}."
    blocks = [wrap(no_option_sentence(found), prose_width(width))]
    blocks += [_award_text(view, prose_width(width)) for view in award_views(found, catalog.hardware)]
    blocks.append(wrap(period, prose_width(width)))
    listed = rows[:limit]
    if listed:
        columns = [column for column in option_columns(found.period) if column.key in _LISTED]
        blocks.append(column_table(columns, listed, dispensable=("power", "date")))
    if len(listed) < len(rows):
        count = f"{len(listed):,} of {len(rows):,} options listed" if listed else f"{len(rows):,} options"
        blocks.append(f"{count}; --all lists them all, cheapest first")
    blocks.append(wrap(excluded_sentence(found), prose_width(width)))
    return "\n\n".join(block for block in blocks if block)


def _award_text(view: AwardView, width: int) -> str:
    """Return the block of a recommended option: the machine, the trade-off, price and time as bars, and notes."""
    notes = [wrap(f"{note}.", width, _INDENT) for note in view.notes]
    return "\n".join(
        (
            wrap(f"{view.title}: {view.row.cards}, {view.row.how}", width, "", _INDENT),
            *filter(None, (wrap(view.why, width, _INDENT),)),
            *(_bar(meter) for meter in view.meters),
            *notes,
        )
    )


def _bar(meter: Meter) -> str:
    full = max(round(meter.fraction * _BAR), 1)
    return f"{_INDENT}{meter.label:<6}{'█' * full}{'░' * (_BAR - full)} {meter.text}"
