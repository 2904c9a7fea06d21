"""The traffic, the targets and the wish that the options of `serve-plan` describe."""

import argparse
import re
from typing import Final, TypeVar

from pydantic import ValidationError

from planner.base import Spec
from planner.cli.parser import comma_separated, option_value
from planner.cli.plan_arguments import vendors_in_catalog
from planner.errors import SpecError
from planner.numbers import AMOUNT, COUNT, LENGTH, MONEY, RATE, NumberKind
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan
from planner.plan.serving.answer import ServingWish
from planner.serving.deployment import Disaggregation, ServingSetup
from planner.serving.targets import Goodput, LatencyTarget, Targets, parse_latency_target
from planner.serving.traffic import (
    Arrivals,
    ConcurrentClients,
    FixedLength,
    Lengths,
    LogNormalLength,
    RandomArrivals,
    Sessions,
    SharedPrefixes,
    Traffic,
    TrafficPreset,
    load_traffic_presets,
)
from planner.serving.traffic_files import load_traffic

_TIME: Final = re.compile(r"\s*(?P<number>\d*\.?\d+)\s*(?P<unit>ms|s)\s*")
_LATENCIES: Final = ("ttft", "itl", "tpot", "e2e")
_HELP: Final = "--help-all explains every option."
_DEFAULT_INPUT: Final = 1_000
_DEFAULT_OUTPUT: Final = 300
Part = TypeVar("Part", bound=Spec)


def traffic_from(arguments: argparse.Namespace) -> Traffic:
    """Return the traffic of the options: of a trace, of a preset, or of lengths and a rate.

    Raises:
        SpecError: If a value is not allowed, options contradict each other, or there is no rate; it names the option.
    """
    if arguments.trace is not None:
        return _traced_traffic(arguments)
    preset = preset_from(arguments)
    fields = _lengths_and_beginnings(arguments)
    if preset is None:
        fields = {"input": FixedLength(tokens=_DEFAULT_INPUT), "output": FixedLength(tokens=_DEFAULT_OUTPUT)} | fields
        return _checked("--rate", Traffic, **fields, arrivals=_arrivals(arguments))
    base = preset.traffic
    if arguments.rate is not None and arguments.burstiness is None and arguments.clients is None:
        base = base.at_rate(parse_rate(arguments.rate))
    else:
        fields["arrivals"] = _arrivals(arguments)
    try:
        return base.evolve(**fields)
    except SpecError as error:
        raise SpecError("--traffic", error.reason, _HELP) from error


def _lengths_and_beginnings(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the fields of the traffic that the options set, without its arrivals."""
    fields: dict[str, object] = {}
    for name in ("input", "output"):
        text = getattr(arguments, name)
        if text is not None:
            fields[name] = _lengths(f"--{name}", text)
    if arguments.shared_prefix is not None:
        tokens = option_value("--shared-prefix", arguments.shared_prefix, LENGTH)
        prefixes = 1 if arguments.prefixes is None else option_value("--prefixes", arguments.prefixes, COUNT)
        fields["prefixes"] = _checked("--shared-prefix", SharedPrefixes, tokens=tokens, prefixes=prefixes)
    if arguments.turns is not None:
        turns, pause = option_value("--turns", arguments.turns, AMOUNT), _number(arguments, "think_seconds") or 0
        fields["sessions"] = _checked("--turns", Sessions, turns=turns, think_seconds=pause)
    return fields


def _arrivals(arguments: argparse.Namespace) -> Arrivals:
    """Return the arrivals of `--clients` or `--rate`.

    Raises:
        SpecError: If both or none of them are given.
    """
    if arguments.clients is not None:
        if arguments.rate is not None:
            raise SpecError(
                "--clients",
                "cannot be combined with --rate",
                "Leave out one of them: clients send as soon as they are answered.",
            )
        clients, pause = option_value("--clients", arguments.clients, COUNT), _number(arguments, "think_seconds") or 0
        return _checked("--clients", ConcurrentClients, clients=clients, think_seconds=pause)
    if arguments.rate is None:
        hint = "Add --rate 4/s, --clients 32 or --trace FILE."
        raise SpecError("--rate", "the rate of requests is missing", hint)
    rate, burstiness = parse_rate(arguments.rate), _number(arguments, "burstiness")
    return _checked(
        "--rate", RandomArrivals, requests_per_second=rate, burstiness=1.0 if burstiness is None else burstiness
    )


def preset_from(arguments: argparse.Namespace) -> TrafficPreset | None:
    """Return the preset of `--traffic`, None without one.

    Raises:
        SpecError: If there is no such preset.
    """
    if arguments.traffic is None:
        return None
    presets = {preset.id: preset for preset in load_traffic_presets()}
    if arguments.traffic not in presets:
        hint = f"Presets: {', '.join(presets)}. Requests in a file: --trace FILE."
        raise SpecError("--traffic", f"unknown preset {arguments.traffic!r}", hint)
    return presets[arguments.traffic]


def _traced_traffic(arguments: argparse.Namespace) -> Traffic:
    """Return the traffic of a trace, at its own rate, `--speed` times it, or the rate given.

    Raises:
        SpecError: If an option contradicts the trace.
    """
    for option in ("input", "output", "clients", "traffic", "turns", "shared_prefix", "burstiness"):
        if getattr(arguments, option) is not None:
            name = f"--{option.replace('_', '-')}"
            raise SpecError(name, "cannot be combined with --trace, which has its own", "Leave out one of them.")
    traffic = Traffic.of_trace(load_traffic(arguments.trace), _number(arguments, "speed") or 1.0)
    if arguments.rate is None:
        return traffic
    if arguments.speed is not None:
        raise SpecError("--speed", "cannot be combined with --rate", "Leave out one of them.")
    rate = parse_rate(arguments.rate)
    try:
        return traffic.at_rate(rate)
    except (ValueError, SpecError) as error:
        raise SpecError("--rate", str(error), "Leave out --rate.") from error


def parse_rate(text: str) -> float:
    """Return the requests per second of a rate, such as `4/s`, `240/min` or `10k/day`; per second without a unit.

    Raises:
        SpecError: If the text is not a rate.
    """
    rate = option_value("--rate", text, RATE)
    assert isinstance(rate, int | float)
    return float(rate)


def _lengths(option: str, text: str) -> Lengths:
    """Return fixed lengths, `1500`, or log-normal ones by median and 90th percentile, `800:3000`."""
    parts = [option_value(option, part, LENGTH) for part in text.split(":")]
    if len(parts) == 1:
        return _checked(option, FixedLength, tokens=parts[0])
    if len(parts) != 2:
        raise SpecError(option, f"{text!r} is not a length", "Write N, or MEDIAN:P90 such as 800:3000.")
    return _checked(option, LogNormalLength, median_tokens=parts[0], p90_tokens=parts[1])


def _checked(option: str, kind: type[Part], **fields: object) -> Part:
    """Return a record of `kind`, with `option` named where a field of it is not allowed."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        raise SpecError(option, problem.reason, problem.hint or _HELP) from error


def _number(arguments: argparse.Namespace, name: str, kind: NumberKind = AMOUNT) -> float | None:
    text = getattr(arguments, name)
    if text is None:
        return None
    value = option_value(f"--{name.replace('_', '-')}", text, kind)
    assert isinstance(value, int | float)
    return float(value)


def count_option(arguments: argparse.Namespace, name: str) -> int | None:
    """Return the whole number of the option `name`, None without it.

    Raises:
        SpecError: If it is none.
    """
    text = getattr(arguments, name)
    if text is None:
        return None
    value = option_value(f"--{name}", text, COUNT)
    assert isinstance(value, int)
    if name == "requests" and not 1 <= value <= 1_000_000:
        raise SpecError("--requests", f"must be between 1 and 1,000,000, not {value:,}", "2,000 are usual.")
    return value


def targets_from(arguments: argparse.Namespace) -> Targets:
    """Return the latency targets of the options, or those of the traffic's preset if no target is given.

    Raises:
        SpecError: If a target cannot be read, or is given twice; it names the option.
    """
    limits: list[LatencyTarget] = []
    for name in _LATENCIES:
        for text in getattr(arguments, name):
            try:
                limits.append(parse_latency_target(name, text))
            except SpecError as error:
                raise SpecError(f"--{name}", error.reason, error.hint) from error
    preset = preset_from(arguments)
    if not limits and arguments.goodput is None and preset is not None:
        return preset.targets
    goodput = None if arguments.goodput is None else parse_goodput(arguments.goodput)
    names = ", ".join(f"--{name}" for name in _LATENCIES if getattr(arguments, name))
    return _checked(names or "--goodput", Targets, limits=tuple(limits), goodput=goodput)


def parse_goodput(text: str) -> Goodput:
    """Return the goodput target of a text such as `99%,ttft=1s,tpot=50ms`.

    Raises:
        SpecError: If the text is none.
    """
    hint = "Write a share and limits: 99%,ttft=1s,tpot=50ms,e2e=10s."
    share, *limits = text.split(",")
    try:
        fields = {"share": float(share.strip().removesuffix("%")) / (100 if "%" in share else 1)}
        for limit in limits:
            name, _, value = limit.partition("=")
            found = _TIME.fullmatch(value)
            if found is None or name.strip() not in ("ttft", "tpot", "e2e"):
                raise ValueError(limit)
            fields[f"{name.strip()}_seconds"] = float(found["number"]) / (1_000 if found["unit"] == "ms" else 1)
    except ValueError as error:
        raise SpecError("--goodput", f"{text!r} is not a goodput target", hint) from error
    if not limits:
        raise SpecError("--goodput", "has no limit", hint)
    return _checked("--goodput", Goodput, **fields)


def setup_from(arguments: argparse.Namespace) -> ServingSetup:
    """Return how requests reach the replicas.

    Raises:
        SpecError: If a value is not allowed; it names the option.
    """
    fields: dict[str, object] = {"prefix_cache": not arguments.no_prefix_cache}
    if arguments.router is not None:
        fields["router"] = arguments.router
    if arguments.disaggregate is not None:
        found = re.fullmatch(r"\s*(\d{1,6})\s*\+\s*(\d{1,6})\s*", arguments.disaggregate)
        if found is None:
            reason = f"{arguments.disaggregate!r} is not a split into replicas for prompts and for answers"
            raise SpecError("--disaggregate", reason, "Write replicas for prompts + replicas for answers, such as 2+4.")
        prefill, decode = map(int, found.groups())
        fields["disaggregation"] = _checked(
            "--disaggregate", Disaggregation, prefill_replicas=prefill, decode_replicas=decode
        )
    return _checked("--router", ServingSetup, **fields)


def wish_from(arguments: argparse.Namespace, plan: Plan, catalog: Catalog) -> ServingWish:
    """Return what the search may choose from; a card of the plan or of `--gpu` is the only one then."""
    having = [name for name in ("rent", "own") if getattr(arguments, name)]
    fields: dict[str, object | None] = {
        "objective": arguments.objective,
        "gpus": [plan.gpu] if plan.gpu is not None else [card.id for card in plan.workload.gpus] or None,
        "vendors": vendors_in_catalog(arguments.vendor, catalog),
        "cards_per_replica": _counts("--counts", arguments.counts),
        "most_cards": None if arguments.most_gpus is None else option_value("--most-gpus", arguments.most_gpus, COUNT),
        "weights": comma_separated(arguments.try_weights),
        "kv_caches": comma_separated(arguments.try_kv_cache),
        "step_tokens": _counts("--try-step-tokens", arguments.try_step_tokens),
        "having": having or None,
        "modes": comma_separated(arguments.modes),
        "budget_usd": _number(arguments, "budget", MONEY),
        "surely": arguments.surely,
    }
    options = {
        "cards_per_replica": "counts",
        "most_cards": "most-gpus",
        "kv_caches": "try-kv-cache",
        "weights": "try-weights",
        "step_tokens": "try-step-tokens",
        "budget_usd": "budget",
    }
    try:
        return ServingWish.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        name = problem.field.partition(".")[0]
        hint = problem.hint or _HELP
        raise SpecError(f"--{options.get(name, name)}", problem.reason, hint) from error


def _counts(option: str, text: str | None) -> list[object] | None:
    """Return comma-separated whole numbers, None without any."""
    return None if text is None else [option_value(option, part, COUNT) for part in comma_separated(text) or ()]
