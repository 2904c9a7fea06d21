"""`gpu-planner gpus --build`: power and cooling of several cards in one machine."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final, cast

from pydantic_core import to_json

from planner.cli.gpus.own_cards import TAKE_BACK
from planner.cli.parser import number_type
from planner.cli.table import TableColumn, table, terminal_width, wrap
from planner.cli.user_catalog import named_cards, named_system
from planner.errors import SpecError
from planner.hardware.gpu import MOST_WATTS, Gpu
from planner.hardware.own import is_above_board_power
from planner.hardware.power import (
    CIRCUITS,
    EFFICIENCY,
    HOST_WATTS,
    NOISE_UNKNOWN,
    Build,
    BuildCards,
    PowerAndCooling,
    PowerFigure,
    Rating,
    machine_figures,
    power_and_cooling,
    smallest_circuit,
)
from planner.hardware.system import System
from planner.numbers import WATTS
from planner.plan.catalog import Catalog
from planner.present import format as fmt

_HEADS: Final = (
    TableColumn("Figure", flexible=True),
    TableColumn("Value", "right"),
    TableColumn("Formula", flexible=True),
    TableColumn("Source", flexible=True),
)


def add_build_options(group: argparse._ArgumentGroup) -> None:
    """Add `--build` and the options that apply to builds."""
    group.add_argument("--build", metavar="CARDS", nargs="+", help='power and cooling of GPUs: "2 x RTX 5090" l4')
    group.add_argument(
        "--host-watts",
        metavar="W",
        type=number_type(WATTS, 1, MOST_WATTS),
        help="power of the machine without its GPUs, in watts [450]",
    )
    group.add_argument(
        "--supply", metavar="RATING", choices=list(EFFICIENCY), help="80 PLUS rating of the power supply [gold]"
    )
    circuits = ", ".join(CIRCUITS)
    group.add_argument("--circuit", metavar="KIND", choices=list(CIRCUITS), help=f"{circuits} [120V-15A]")
    limited = "power limit of each GPU of --build, or of the GPU of --change (none removes it)"
    group.add_argument("--power-limit", metavar="W", type=number_type(WATTS, 1, MOST_WATTS, TAKE_BACK), help=limited)


def print_build(arguments: argparse.Namespace, catalog: Catalog) -> int:
    """Print power and cooling of the cards of `--build`.

    Raises:
        PlannerError: If a card is not known, or a number is out of range.
    """
    system = named_system(arguments.build[0], catalog.hardware) if len(arguments.build) == 1 else None
    if system is not None and system.max_power_watts is not None:
        return _print_system(arguments, system, system.max_power_watts)
    build = _build_from_arguments(arguments, catalog)
    needs = power_and_cooling(build)
    if arguments.json:
        print(to_json(_power_needs_record(needs), indent=2).decode())
    else:
        print(_build_text(build, needs))
    return 0


def _print_system(arguments: argparse.Namespace, system: System, highest_watts: float) -> int:
    """Print power and cooling of a system with a published maximum power."""
    for option in ("host_watts", "supply", "power_limit"):
        if getattr(arguments, option) is not None:
            name = f"--{option.replace('_', '-')}"
            raise SpecError(
                name,
                f"the power of {system.name} is published as a whole",
                "Leave it out, or name GPUs instead of a system.",
            )
    circuit = CIRCUITS[arguments.circuit] if arguments.circuit else smallest_circuit(highest_watts)
    steps = machine_figures(system, circuit)
    if arguments.json:
        print(to_json(_power_needs_record(PowerAndCooling(steps, (), ())), indent=2).decode())
    else:
        print(f"{system.name}, {circuit.name}\n\n{_power_figures_table(steps)}")
    return 0


def _build_from_arguments(arguments: argparse.Namespace, catalog: Catalog) -> Build:
    if arguments.power_limit == TAKE_BACK:
        raise SpecError("--power-limit", f"accepts {TAKE_BACK} only with --change", "Leave it out for a build.")
    cards = tuple(
        BuildCards(
            _gpu_within_limit(catalog.hardware.gpu(kind.id), arguments.power_limit), kind.count, arguments.power_limit
        )
        for kind in named_cards(arguments.build, catalog, "--build")
    )
    host = HOST_WATTS if arguments.host_watts is None else arguments.host_watts
    return Build(cards, host, cast("Rating", arguments.supply or "gold"), CIRCUITS[arguments.circuit or "120V-15A"])


def _gpu_within_limit(gpu: Gpu, limit_watts: float | None) -> Gpu:
    """Return `gpu` after checking that the power limit is not above the board power.

    Raises:
        SpecError: If the limit is above the board power.
    """
    if limit_watts is not None and is_above_board_power(gpu, limit_watts):
        reason = f"{limit_watts:,.0f} W is above the board power of the {gpu.name}, {gpu.board_power_watts:,.0f} W"
        raise SpecError("--power-limit", reason, "Give a limit up to the board power.")
    return gpu


def _power_needs_record(needs: PowerAndCooling) -> dict[str, object]:
    figures = [asdict(step) for step in needs.steps]
    return {"figures": figures, "connectors": needs.connectors, "warnings": needs.warnings}


def _power_figures_table(steps: Sequence[PowerFigure]) -> str:
    rows = [(step.title, _value_with_unit_text(step.value, step.unit), step.formula, step.source) for step in steps]
    return table(_HEADS, rows, terminal_width(), wraps=True)


def _build_text(build: Build, needs: PowerAndCooling) -> str:
    width = terminal_width()
    named = " + ".join(map(_cards_text, build.cards))
    return "\n\n".join(
        (
            wrap(f"{named}, host of {build.host_watts:,.0f} W, 80 PLUS {build.rating}, {build.circuit.name}", width),
            _power_figures_table(needs.steps),
            f"{_titled_list('Cables:', needs.connectors or (fmt.UNKNOWN,), width)}\n"
            f"{_titled_list('Noise:', (f'unknown, {NOISE_UNKNOWN}.',), width)}",
            _titled_list("Warnings:", needs.warnings, width) if needs.warnings else "No warnings.",
        )
    )


def _cards_text(cards: BuildCards) -> str:
    name = fmt.count_of(cards.count, cards.gpu.name)
    limited = cards.watts_each is not None and cards.watts_each != cards.gpu.board_power_watts
    return f"{name} limited to {cards.watts_each:,.0f} W" if limited else name


def _value_with_unit_text(value: float | None, unit: str) -> str:
    return fmt.UNKNOWN if value is None else f"{value:,.1f} {unit}" if unit == "A" else f"{value:,.0f} {unit}".strip()


def _titled_list(title: str, texts: Sequence[str], width: int | None) -> str:
    """Return a title followed by a single text, or by a list of several texts."""
    if len(texts) == 1:
        return wrap(f"{title} {texts[0]}", width)
    return "\n".join((title, *(wrap(text, width, "- ") for text in texts)))
