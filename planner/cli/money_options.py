"""Options of the job and of the terms of renting and owning, shared by `cost` and `recommend`."""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from pydantic import ValidationError

from planner.cli.options import naming_options
from planner.cli.parser import CommandOption, Parser, add_options, named_value, option_value
from planner.cli.plan_arguments import plan_from_arguments
from planner.cost.demand import TRAINS
from planner.cost.terms import CostTerms, DailyHours, Run, Service
from planner.errors import SpecError
from planner.numbers import kind_at
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan
from planner.validation import UNKNOWN_FIELD

_JOBS: Final = {
    "tokens": "run",
    "samples": "run",
    "epochs": "run",
    "steps": "run",
    "hours": "run",
    "requests_per_day": "service",
    "hours_per_day": "daily-hours",
}

_KINDS: Final[Mapping[str, type[Run | Service | DailyHours]]] = {
    "run": Run,
    "service": Service,
    "daily-hours": DailyHours,
}

JOB_OPTIONS: Final = (
    CommandOption("--tokens", "job.amount", "N", "a run over N tokens, such as 50e6"),
    CommandOption("--samples", "job.amount", "N", "a run over N samples: sequences or images"),
    CommandOption("--epochs", "job.amount", "N", "a run of N epochs of --dataset samples"),
    CommandOption("--steps", "job.amount", "N", "a run of N optimizer steps"),
    CommandOption("--hours", "job.amount", "N", "a run of N hours"),
    CommandOption("--dataset", "job.dataset_samples", "N", "samples per epoch"),
    CommandOption("--repeats", "job.repeats_per_year", "N", "runs per year [a single run]"),
    CommandOption("--requests-per-day", "job.requests_per_day", "N", "a service with N requests per day, or as in 4/s"),
    CommandOption("--prompt-tokens", "job.prompt_tokens", "N", "prompt tokens per request [1,000]"),
    CommandOption("--output-tokens", "job.output_tokens", "N", "output tokens per request [300]"),
    CommandOption("--peak-factor", "job.peak_factor", "X", "peak load relative to the average [2]"),
    CommandOption("--hours-per-day", "job.hours_per_day", "H", "GPUs in use for H hours per day [8]"),
    CommandOption("--days-per-week", "job.days_per_week", "N", "GPUs in use on N days per week [5]"),
)
TERM_OPTIONS: Final = (
    CommandOption("--mode", "rent.mode", "MODE", "on-demand, spot, reserved-1y or reserved-3y [on-demand]"),
    CommandOption("--offer", "rent.offer", "ID", "an offer by its id in `gpu-planner prices --json` [the cheapest]"),
    CommandOption("--rent-price", "rent.usd_per_gpu_hour", "USD", "your rental price per GPU-hour [of the offer]"),
    CommandOption(
        "--provider", "rent.providers", "NAMES", "only providers with these names or parts of names, comma-separated"
    ),
    CommandOption("--regions", "rent.regions", "NAMES", "only offers in these regions, comma-separated"),
    CommandOption(
        "--place",
        "buy.place",
        "PLACE",
        "location of owned GPUs: desk, lab, colocation or data-center [lab; for your own desktop GPUs, desk]",
    ),
    CommandOption("--card-price", "buy.card_price_usd", "USD", "your price of one GPU [from the catalog]"),
    CommandOption(
        "--tariff", "buy.tariff_usd_per_kwh", "USD", "your electricity price per kWh [that of --electricity]"
    ),
    CommandOption("--electricity", "region", "REGION", "a country or US state, such as DE or US-WA [US]"),
    CommandOption("--horizon", "horizon_years", "YEARS", "years of ownership [5]"),
    CommandOption("--discount-rate", "discount_rate", "RATE", "yearly discount rate of future payments [0.08]"),
)
_NAMED: Final = 8
_HELP: Final = "--help-all explains every option."
_SPELLINGS: Final = {"data-center": "data-centre"}
"""Values of files by the spelling of the manual."""
_LISTS: Final = ("rent.providers", "rent.regions")


def add_money_options(parser: Parser) -> None:
    """Add the options of the job and of the terms of renting and owning."""
    job = parser.add_argument_group("the job; one of --tokens, --samples, --epochs, --steps, --hours, or a service")
    add_options(JOB_OPTIONS, {None: job})
    terms = parser.add_details("renting and owning")
    add_options(TERM_OPTIONS, {None: terms})
    terms.add_argument("--history", action="store_true", help="include offers older than twelve months")
    terms.add_argument(
        "--money",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set any other field of the plan's cost by its JSON name, such as buy.pue=1.2; repeatable",
    )


def option_of(field: str) -> str:
    """Return the option that sets `field` of a plan, such as `cost.rent.offer`, or the field itself without one."""
    inner = field.removeprefix("cost.")
    flags = {flag.field: flag.name for flag in reversed((*JOB_OPTIONS, *TERM_OPTIONS))} | {"job.amount": "the job"}
    return flags.get(inner, f"--money {inner}" if inner != field else field)


def plan_with_money(arguments: argparse.Namespace, catalog: Catalog) -> Plan:
    """Return the plan that the options describe, with its cost terms.

    Raises:
        SpecError: If a value is not allowed, no offer has the provider or region, or a plan that trains has a service
            as its job; it names the option.
    """
    try:
        plan = plan_from_arguments(arguments, catalog).plan
        plan = plan.evolve(cost=check_market(arguments, money_from(arguments, plan.cost), catalog))
    except SpecError as error:
        raise naming_options(error) from error
    if isinstance(plan.cost.job, Service) and plan.workload.task == "training":
        hint = "Add --task inference, or enter the training run with --tokens or --hours."
        raise SpecError("--requests-per-day", TRAINS, hint)
    return plan


def money_from(arguments: argparse.Namespace, base: CostTerms) -> CostTerms:
    """Return the cost terms that the options describe, as changes of `base`.

    Raises:
        SpecError: If two kinds of jobs are given, or a value is not allowed; it names the option.
    """
    fields = base.model_dump(mode="json", exclude_unset=True)
    # The kind of a job made in Python is a default, which `exclude_unset` drops, but parsing a job needs it.
    fields["job"] = _job(arguments, base)
    for name, value in _terms(arguments):
        _put(fields, name, value)
    if arguments.history:
        _put(fields, "rent.include_history", value=True)
    try:
        return CostTerms.model_validate(fields)
    except ValidationError as error:
        raise _in_options(SpecError.from_validation(error), arguments) from error


def _job(arguments: argparse.Namespace, base: CostTerms) -> dict[str, object]:
    """Return the job of the options, as changes of the plan's job if that is of the same kind."""
    kinds = [name for name in _JOBS if getattr(arguments, name) is not None]
    given: dict[str, object] = {
        flag.field.removeprefix("job."): option_value(flag.name, value, kind_at(CostTerms, flag.field))
        for flag in JOB_OPTIONS
        if (value := flag.value_in(arguments)) is not None
    }
    if len(kinds) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in kinds)
        raise SpecError(options, "cannot be combined: they are different jobs", "Choose one of them.")
    held: dict[str, object] = base.job.model_dump(mode="json", exclude_unset=True) | {"kind": base.job.kind}
    if not kinds:
        return held | given
    kind = _JOBS[kinds[0]]
    start = held if held["kind"] == kind else {"kind": kind}
    return start | given | ({"unit": kinds[0]} if kind == "run" else {})


def _terms(arguments: argparse.Namespace) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for flag in TERM_OPTIONS:
        if (value := flag.value_in(arguments)) is not None:
            listed = flag.field in _LISTS
            found.append(
                (
                    flag.field,
                    [part.strip() for part in value.split(",")]
                    if listed
                    else option_value(flag.name, _SPELLINGS.get(value, value), kind_at(CostTerms, flag.field)),
                )
            )
    return found + [
        named_value("--money", text, "buy.pue=1.2", partial(kind_at, CostTerms)) for text in arguments.money
    ]


def _put(fields: dict[str, object], name: str, value: object) -> None:
    *outer, last = name.split(".")
    held = fields
    for part in outer:
        inner = held.setdefault(part, {})
        if not isinstance(inner, dict):
            raise SpecError(f"--money {name}", f"{part} has no fields of its own", "Check the spelling.")
        held = inner
    held[last] = value


def _in_options(error: SpecError, arguments: argparse.Namespace) -> SpecError:
    """Return `error` with the option in place of the field that it is about."""
    field = error.field.replace("job.run.", "job.").replace("job.service.", "job.").replace("job.daily-hours.", "job.")
    flags = [
        flag for flag in (*JOB_OPTIONS, *TERM_OPTIONS) if flag.field == field and flag.value_in(arguments) is not None
    ]
    name = flags[0].name if flags else f"--money {field}"
    if flags and flags[0] in JOB_OPTIONS and error.reason == UNKNOWN_FIELD:
        return SpecError(name, "does not apply to this kind of job", _jobs_with(field.removeprefix("job.")))
    return SpecError(name, error.reason, error.hint or _HELP)


def _jobs_with(field: str) -> str:
    """Return a hint with the options of the jobs that have `field`."""
    kinds = [kind for kind, model in _KINDS.items() if field in model.model_fields]
    names = [f"--{name.replace('_', '-')}" for name, kind in _JOBS.items() if kind in kinds]
    return f"Add {' or '.join(names)}."


def check_market(arguments: argparse.Namespace, terms: CostTerms, catalog: Catalog) -> CostTerms:
    """Return `terms` with the names of providers and regions replaced by their spelling in the offers.

    Raises:
        SpecError: If no offer has one of them.
    """
    found: dict[str, list[str]] = {}
    if arguments.provider is not None:
        known = sorted({offer.provider for offer in catalog.offers})
        found["providers"] = [
            each for name in terms.rent.providers for each in _matching_names("--provider", name, known)
        ]
    if arguments.regions is not None:
        known = sorted({offer.region for offer in catalog.offers if offer.region})
        found["regions"] = [each for name in terms.rent.regions for each in _matching_names("--regions", name, known)]
    return terms.evolve(rent=terms.rent.evolve(**found)) if found else terms


def _matching_names(option: str, name: str, known: Sequence[str]) -> list[str]:
    """Return the `known` names that equal `name`, or else those that contain it."""
    word = name.lower()
    found = [each for each in known if each.lower() == word] or [
        each for each in known if word and word in each.lower()
    ]
    if not found:
        some = ", ".join(known[:_NAMED])
        raise SpecError(option, f"there is no offer of {name!r}", f"See `gpu-planner prices`: {some} …")
    return found
