"""`gpu-planner gpus`: search, compare and show accelerators and systems, builds, own cards, and detected cards."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any, Final, cast

from pydantic_core import to_json

from planner.cli.gpus.own_cards import TAKE_BACK, add_own_options, requests_own_hardware, run_own_hardware_action
from planner.cli.gpus.search import print_list, print_systems
from planner.cli.options import add_hidden_workload_options, naming_options
from planner.cli.parser import Parser, join_descending_sort, number_type, row_limit
from planner.cli.table import TableColumn, table, terminal_width, wrap
from planner.cli.user_catalog import named_cards, named_system, user_catalog
from planner.errors import SpecError
from planner.hardware.catalog import load_hardware
from planner.hardware.gpu import MOST_WATTS, Gpu
from planner.hardware.own import is_above_board_power
from planner.hardware.power import (
    CIRCUITS,
    EFFICIENCY,
    HOST_WATTS,
    NOISE_UNKNOWN,
    Build,
    BuildCards,
    Circuit,
    PowerAndCooling,
    PowerFigure,
    Rating,
    machine_figures,
    power_and_cooling,
    smallest_circuit,
)
from planner.hardware.query_fields import GPU_QUERY_SCHEMA, SYSTEM_QUERY_SCHEMA
from planner.hardware.query_schema import QuerySchema
from planner.hardware.system import System
from planner.numbers import AMOUNT, WATTS
from planner.paths import catalog_dir, own_hardware_file
from planner.plan.catalog import Catalog
from planner.plan.prices import prices_by_card
from planner.present import format as fmt

_OPTIONS_OF_LIST: Final = frozenset(("words", "where", "fits", "price_under", "limit", "sort", "json", "csv"))
_OPTIONS_OF_MODE: Final[Mapping[str, frozenset[str]]] = {
    "compare": frozenset(("fits", "json", "csv")),
    "show": frozenset(("slices", "json")),
    "systems": _OPTIONS_OF_LIST,
    "here": frozenset(("json",)),
    "build": frozenset(("host_watts", "supply", "circuit", "power_limit", "json")),
    "add": frozenset(),
    "change": frozenset(("paid", "power_limit", "note")),
    "remove": frozenset(),
    "own": frozenset(("json",)),
    "export": frozenset(),
}
"""Options that replace the list, each with the further options that it accepts."""
_OPTIONS: Final = _OPTIONS_OF_LIST.union(_OPTIONS_OF_MODE, *_OPTIONS_OF_MODE.values())
_TEXT_OPTIONS: Final = (
    "where",
    "fits",
    "sort",
    "compare",
    "show",
    "slices",
    "build",
    "add",
    "change",
    "remove",
    "export",
)
_SEE_HELP: Final = "See `gpu-planner gpus --help` for all options."
_DESCRIPTION: Final = """\
List and compare accelerators, or show one with the source of every figure. Rates are dense, without sparsity;
GiB is 2^30 bytes, GB is 10^9. Unknown values are shown as unknown and sorted last."""
_EXAMPLES: Final = """\
examples:
  gpu-planner gpus rtx 40
  gpu-planner gpus --where 'memory_gib >= 80 and vendor == "NVIDIA"' --sort -bandwidth
  gpu-planner gpus --where 'memory_gib >= 24 and used < 1200' --sort usd_per_gib
  gpu-planner gpus --fits meta-llama/Llama-3.1-70B --where 'fits == "fits"' --sort rent
  gpu-planner gpus --fits meta-llama/Llama-3.1-8B --weights Q4_K_M --price-under 700
  gpu-planner gpus --compare "RTX 4090" "2 x RTX 3090" dgx-a100-640gb
  gpu-planner gpus --show mi300x
  gpu-planner gpus --show "H100 SXM" --slices 3g.40gb 2g.20gb 1g.10gb 1g.10gb
  gpu-planner gpus --compare "2 x DGX H100" gb200-nvl72 --fits meta-llama/Llama-3.1-70B
  gpu-planner gpus --systems dgx --fits meta-llama/Llama-3.1-70B
  gpu-planner gpus --systems --where 'memory_gib >= 600 and power < 12000' --sort rent
  gpu-planner gpus --build "2 x RTX 5090" --circuit 120V-15A
  gpu-planner gpus --change "RTX 3090" --paid 720 --power-limit 250
  gpu-planner gpus --change "RTX 3090" --power-limit none
  gpu-planner gpus --here

A PLAN.json is written by `gpu-planner fit --save`, by `gpu-planner cost --save` and by the window. For example, LoRA of
a 70B model sharded over eight GPUs: on a DGX A100 compared with eight H100, and on eight of every GPU, sorted by the
cost of a run or of a million tokens:
  gpu-planner cost meta-llama/Llama-3.1-70B --task training --method lora --zero 3 --checkpointing full \\
      --gpu "8 x H100 SXM" --tokens 50e6 --save lora.json
  gpu-planner gpus --compare dgx-a100-640gb "8 x H100 SXM" --fits lora.json
  gpu-planner gpus --fits lora.json --where 'hours < 24' --sort job_cost
  gpu-planner gpus --fits lora.json --sort job_cost_tokens

fields for --where and --sort:
{fields}

fields with --systems; those that GPUs have too are in the same unit, and are totals of the whole system:
{system_fields}

--where combines comparisons (== != < <= > >= ~ in) with and, or, not and brackets; ~ searches for text within text.
An unknown value is neither true nor false: a GPU without a price matches neither `price < 1000` nor
`not (price < 1000)`, and a GPU with unknown links neither `nvlink` nor `not nvlink`."""
_BUILD_HEADS: Final = (
    TableColumn("Figure", flexible=True),
    TableColumn("Value", "right"),
    TableColumn("Formula", flexible=True),
    TableColumn("Source", flexible=True),
)


def check_option_conflicts(arguments: argparse.Namespace) -> None:
    """Check that the given options do not conflict and that each option has an effect.

    Raises:
        SpecError: If an option is empty, has no effect, or conflicts with another.
    """
    given = [name for name, value in vars(arguments).items() if value not in (None, False, []) and name in _OPTIONS]
    for name in _TEXT_OPTIONS:
        if name in given and _has_blank_text(getattr(arguments, name)):
            raise SpecError(_option_spelling(name), "is empty", f"Give the option a value or leave it out. {_SEE_HELP}")
    modes = [name for name in given if name in _OPTIONS_OF_MODE]
    if len(modes) > 1:
        raise SpecError(
            _option_spelling(modes[0]),
            f"cannot be combined with {_option_spelling(modes[1])}",
            "Run a separate command for each option.",
        )
    accepted = _OPTIONS_OF_MODE[modes[0]] if modes else _OPTIONS_OF_LIST
    for name in given:
        if name not in accepted and name not in modes:
            raise _no_effect_error(name, modes)
    if arguments.json and arguments.csv:
        raise SpecError("--json", "cannot be combined with --csv", "Choose one of them.")


def _has_blank_text(value: object) -> bool:
    """Return whether an option's value, or any of its values, is blank."""
    values: Iterable[object] = value if isinstance(value, list) else (value,)
    return any(isinstance(text, str) and not text.strip() for text in values)


def _no_effect_error(name: str, modes: list[str]) -> SpecError:
    places = [_option_spelling(mode) for mode, accepted in _OPTIONS_OF_MODE.items() if name in accepted]
    if name in _OPTIONS_OF_LIST:
        places.insert(0, "lists")
    where = f"applies to {' and '.join((', '.join(places[:-1]), places[-1]) if len(places) > 1 else places)}"
    not_for = f", not to {_option_spelling(modes[0])}" if modes else ""
    return SpecError(_option_spelling(name), f"{where}{not_for}", _SEE_HELP)


def _option_spelling(name: str) -> str:
    return "WORDS" if name == "words" else f"--{name.replace('_', '-')}"


def run(argv: list[str], today: date | None = None) -> int:
    """Run `gpu-planner gpus` with prices as of `today`, by default the current day, and return the exit code."""
    words = join_descending_sort(argv)
    arguments = make_parser(with_workload=any(word.partition("=")[0] == "--fits" for word in words)).parse_args(words)
    check_option_conflicts(arguments)
    day = today or datetime.now(UTC).date()
    if requests_own_hardware(arguments):
        return run_own_hardware_action(arguments, load_hardware(catalog_dir()), own_hardware_file(), day)
    catalog = user_catalog()
    try:
        return _print_requested(arguments, catalog, day)
    except SpecError as error:
        raise naming_options(error) if arguments.fits else error from error


def _print_requested(arguments: argparse.Namespace, catalog: Catalog, today: date) -> int:
    """Print what the options request: a card or system, a build, a comparison, detected cards, or else a list."""
    if arguments.here:
        from planner.cli.gpus.show import print_detected_cards

        return print_detected_cards(catalog.hardware, as_json=arguments.json)
    if arguments.build:
        return print_build(arguments, catalog)
    if arguments.systems:
        return print_systems(arguments, catalog, today)
    if arguments.show and arguments.slices:
        from planner.cli.gpus.show import print_division

        return print_division(arguments.show, arguments.slices, catalog.hardware, as_json=arguments.json)
    if arguments.show:
        from planner.cli.gpus.show import print_hardware

        return print_hardware(arguments.show, catalog, today, as_json=arguments.json)
    if arguments.compare:
        from planner.cli.gpus.show import print_comparison

        return print_comparison(arguments, catalog, prices_by_card(catalog, today), today)
    return print_list(arguments, catalog, today)


def make_parser(*, with_workload: bool = False) -> Parser:
    """Return the parser of the command's options; those of `fit`, which only `--fits` needs, are not in the help."""
    examples = _EXAMPLES.format(fields=_field_lines(GPU_QUERY_SCHEMA), system_fields=_field_lines(SYSTEM_QUERY_SCHEMA))
    parser = Parser("gpu-planner gpus", _DESCRIPTION, examples)
    choice = parser.add_argument_group("selection")
    choice.add_argument("words", metavar="WORDS", nargs="*", help="words in the GPU's name, vendor or architecture")
    choice.add_argument("--where", metavar="EXPR", help="filter by an expression over the fields below")
    choice.add_argument(
        "--fits",
        metavar="MODEL",
        help="check each GPU or system with a model (batch 1) or a PLAN.json, changed by the options of fit, such as "
        "--weights Q4_K_M --context 32k; see below",
    )
    choice.add_argument(
        "--price-under",
        metavar="USD",
        type=number_type(AMOUNT, 0, 1e12),
        help="only what costs less, the cheapest first; with --fits, only what holds the model",
    )
    choice.add_argument("--limit", metavar="N", type=row_limit, help="print at most N rows")
    sort_help = "sort by a field below, descending with - before it; repeatable"
    choice.add_argument("--sort", metavar="FIELD", action="append", default=[], help=sort_help)
    choice.add_argument("--csv", action="store_true", help="print the list as CSV, with sources")
    other = parser.add_argument_group("actions instead of the list")
    other.add_argument(
        "--compare",
        metavar="GPU",
        nargs="+",
        help='compare GPUs or systems, such as "2 x RTX 3090", with the plan of --fits on each',
    )
    other.add_argument(
        "--show", metavar="GPU", help="show a GPU or a system: figures with sources, prices, software, speeds"
    )
    other.add_argument(
        "--slices",
        metavar="PROFILE",
        nargs="+",
        help="with --show, where these slices (MIG) lie on the GPU, such as 3g.40gb 2g.20gb, or why they cannot",
    )
    other.add_argument("--systems", action="store_true", help="list machines, not GPUs: DGX, NVL72, TPU slices")
    other.add_argument("--here", action="store_true", help="show the GPUs of this machine, matched with the catalog")
    add_build_options(parser.add_details("power and cooling"))
    add_own_options(parser.add_details("GPUs of your own"))
    parser.add_general_options()
    if with_workload:
        add_hidden_workload_options(parser)
    return parser


def _field_lines(schema: QuerySchema[Any]) -> str:
    """Return a help line for each query field: name, unit and meaning."""
    width = max(map(len, schema.fields))
    return "\n".join(f"  {field.name:<{width}}  {field.unit:<10}  {field.help}" for field in schema.fields.values())


def add_build_options(group: argparse._ArgumentGroup) -> None:
    """Add `--build` and the options that apply to builds."""
    group.add_argument(
        "--build", metavar="GPUS", nargs="+", help='power and cooling of a machine with "2 x RTX 5090" l4'
    )
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
        print(f"{_power_answer(steps, circuit)}\n\n{system.name}, {circuit.name}\n\n{_power_figures_table(steps)}")
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
    return table(_BUILD_HEADS, rows, terminal_width())


def _build_text(build: Build, needs: PowerAndCooling) -> str:
    width = terminal_width()
    named = " + ".join(map(_cards_text, build.cards))
    warnings = _titled_list("Warnings:", needs.warnings, width) if needs.warnings else "No warnings."
    return "\n\n".join(
        (
            f"{wrap(_power_answer(needs.steps, build.circuit), width)}\n{warnings}",
            wrap(f"{named}, host of {build.host_watts:,.0f} W, 80 PLUS {build.rating}, {build.circuit.name}", width),
            _power_figures_table(needs.steps),
            f"{_titled_list('Cables:', needs.connectors or (fmt.UNKNOWN,), width)}\n"
            f"{_titled_list('Noise:', (f'unknown; {NOISE_UNKNOWN}.',), width)}",
        )
    )


def _power_answer(steps: Sequence[PowerFigure], circuit: Circuit) -> str:
    """Return what the machine needs, as a sentence."""
    needs = {step.key: step.value for step in steps}
    wall, circuits, supply = (needs.get(key) for key in ("wall", "circuits", "supply"))
    if wall is None or circuits is None:
        return "What it draws from the wall is unknown."
    supplied = "" if supply is None else f"an ATX 3 power supply of {supply:,.0f} W or more, and "
    return f"Needs {supplied}{fmt.plural(int(circuits), 'circuit')} of {circuit.name}: {wall:,.0f} W from the wall."


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
