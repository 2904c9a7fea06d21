"""`gpu-planner trace`: the exact peak memory of a PyTorch module, with its breakdown."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from planner.cli.main import DOES_NOT_FIT
from planner.cli.parser import Parser, number_type, option_value, row_limit
from planner.cli.report import memory_report
from planner.cli.table import ProgressLine, TableColumn, fitted_table, prose_width, table, terminal_width, wrap
from planner.cli.trace.options import (
    add_trace_options,
    default_option_texts_of_trace,
    given_option_names,
    request_from_arguments,
)
from planner.cli.user_catalog import user_catalog
from planner.errors import PlannerError, SpecError
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_gpu
from planner.models.catalog import ModelCatalog
from planner.models.load import load_config
from planner.numbers import AMOUNT, BYTES, COUNT
from planner.plan.catalog import Catalog
from planner.plan.evaluate import smallest_first
from planner.present import format as fmt
from planner.present.trace import AliveRow, DifferenceRow, ModuleRow, TraceView, notable_modules, trace_view
from planner.trace.allocator_settings import AllocatorSettings
from planner.trace.analysis.memory import facts_of, traced_fits_on
from planner.trace.analysis.trace_result import conclude
from planner.trace.files import (
    export_allocations_csv,
    export_timeline_csv,
    is_recording_file,
    load_recording,
    save_recording,
)
from planner.trace.launcher import parse_command, traced_ranks
from planner.trace.recording import TraceRecording
from planner.trace.request import Target
from planner.trace.result import TraceResult
from planner.trace.run import TraceLimits, trace
from planner.trace.user_code import find_trace_candidates

_ALIVE_HEADS: Final = (
    TableColumn("Alive at the peak", flexible=True),
    TableColumn("Size", "right"),
    TableColumn("Share", "right"),
    TableColumn("Module", flexible=True),
    TableColumn("Operator", flexible=True),
    TableColumn("Shape", flexible=True),
    TableColumn("Line", flexible=True),
)
_DISPENSABLE: Final = (2, 4)
"""Places of the columns that a narrow table of live tensors does without: the share, then the operator."""
_NARROWEST: Final = 12
"""Characters of a word that stays whole in a narrow terminal: names of modules and files are longer."""
_SIZES: Final = re.compile(r"\[([\d, ]+)\]")
_MODULE_HEADS: Final = (
    TableColumn("Module", flexible=True, keep="end"),
    TableColumn("Class", flexible=True),
    TableColumn("Parameters", "right"),
    TableColumn("Size", "right"),
    TableColumn("Share", "right"),
    TableColumn("At the peak", flexible=True),
)
_RESERVATION_HEADS: Final = (TableColumn("Caching allocator"), TableColumn(""), TableColumn("", "right"))


def trace_report(view: TraceView, defaults: tuple[str, ...], width: int | None, top: int) -> str:
    """Return the report of a trace; the tables of live tensors and of modules have at most `top` rows each."""
    memory = view.memory._replace(
        reason=f"{view.memory.reason} {view.runs_out}".strip(),
        terms=tuple(row._replace(how=row.substituted) if len(row.symbols) == 1 else row for row in view.memory.terms),
    )
    prose = prose_width(width)
    more = (
        _live_tensor_table(view.alive, width, top),
        _module_table(view.modules, width, top) if view.modules else "",
        table(_RESERVATION_HEADS, [list(row) for row in view.reservation], width),
        "\n".join(line for row in view.differences for line in _difference_lines(row, prose)),
        wrap(view.traced_with, prose),
    )
    return memory_report(memory, wrap(view.subject, prose), defaults, width, more=more)


def _live_tensor_table(rows: tuple[AliveRow, ...], width: int | None, top: int) -> str:
    shown = [
        [row.title, row.size, row.share_text, row.module, row.operator, _with_sizes_as_typed(row.shape), row.place]
        for row in rows[:top]
    ]
    rest = sum(row.bytes for row in rows[top:])
    if rest:
        shown.append([f"{fmt.integer(len(rows) - top)} more", fmt.size(rest), "", "", "", "", ""])
    return fitted_table(_ALIVE_HEADS, shown, width, _DISPENSABLE)


def _with_sizes_as_typed(shape: str) -> str:
    """Return `shape` with its sizes as in `--input`, in one word: `8x3x224x224 float32`."""
    return _SIZES.sub(lambda sizes: sizes[1].replace(", ", "x"), shape)


def _module_table(rows: tuple[ModuleRow, ...], width: int | None, top: int) -> str:
    notable = notable_modules(rows, top)
    shown = [[row.title, row.class_name, row.parameters_text, row.size, row.share_text, row.holds] for row in notable]
    left_out = len(rows) - len(notable)
    return table(_MODULE_HEADS, shown, width, whole=_NARROWEST) + (
        f"\n{fmt.plural(left_out, 'smaller module')} left out" if left_out else ""
    )


def _difference_lines(row: DifferenceRow, width: int) -> Iterator[str]:
    place = f" ({row.place})" if row.place else ""
    yield wrap(f"Assumed: {row.name}{place}: {row.explanation}", width, "", "    ")
    yield wrap(f"counted as {row.amount}; true value within {row.range_text} [{row.source}]", width, "    ")


_PYTHON: Final = ".py"
_NAME: Final = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_PACKAGE_TARGET: Final = re.compile(rf"(?P<place>{_NAME}):(?P<name>{_NAME})")


def parse_target(word: str, models: ModelCatalog) -> Target:
    """Return the target that TARGET names: `net.py:Net`, `package.module:Net`, a script, a `config.json`, a model.

    Raises:
        PlannerError: If TARGET is none of these, or cannot be read.
    """
    # Split at the last colon: a drive letter is followed by one as well.
    place, _, name = word.rpartition(":")
    if place.endswith(_PYTHON):
        return _target_in_file(Path(place), name)
    if word.endswith(_PYTHON):
        _check_is_file(Path(word))
        return Target(kind="script", place=word)
    packaged = _PACKAGE_TARGET.fullmatch(word)
    if packaged is not None:
        return Target(kind="import", place=packaged["place"], name=packaged["name"])
    title, config = load_config(word, models)
    return Target(kind="config", place=title, config=json.dumps(config))


def _target_in_file(path: Path, name: str) -> Target:
    _check_is_file(path)
    if not name:
        candidates = [f"{path}:{candidate.name}" for candidate in find_trace_candidates(path)]
        hint = f"Use {' or '.join(candidates)}." if candidates else "The file defines no module class and no function."
        raise SpecError("TARGET", f"{path}: needs the name of a module or a function", hint)
    return Target(kind="file", place=str(path), name=name)


def _check_is_file(path: Path) -> None:
    if not path.is_file():
        raise SpecError("TARGET", f"there is no file {path}", "Check the path.")


def _target_of_command(arguments: argparse.Namespace, command: list[str], models: ModelCatalog) -> Target:
    """Return the target of TARGET or -m, with `command` as its arguments, or of the command line `command` alone."""
    if arguments.target is None and arguments.module is None:
        target = parse_command(command)
        if target.kind == "script":
            _check_is_file(Path(target.place))
        return target
    if arguments.module is not None:
        if arguments.target is not None:
            raise SpecError("-m", "names a module besides TARGET", "Give one of them; a script's arguments follow --.")
        return Target(kind="program", place=arguments.module, command_arguments=tuple(command))
    target = parse_target(arguments.target, models)
    if command and not target.is_script:
        raise SpecError("--", f"{target.title} is not a script and takes no arguments", "Use --arg for a module's.")
    return target.evolve(command_arguments=tuple(command)) if command else target


_MAX_SMALLEST_CARDS: Final = 5

_DESCRIPTION: Final = """\
Run a training or inference step of a PyTorch module on fake tensors without data, record every allocation and free,
and report the memory needed: the answer first, then the terms, the phases, and the live tensors at the peak with their
modules and source lines. No GPU is needed, and no weights are loaded. The code of TARGET is executed in a separate
process: trace only code that you trust."""

_EPILOG: Final = """\
TARGET is one of
  path/to/file.py:NAME    a module class, or a function that returns a module, (module, inputs), or
                          (modules, inputs, step) for a custom step
  package.module:NAME     the same in an installed package
  path/to/train.py        a script, run unchanged until its second optimizer step; its arguments follow --
  -m package.module       the same, as with python -m
  -- COMMAND              a command line such as torchrun --nproc_per_node=8 train.py --lr 0.1
  a config.json, a folder with one, or a model of the catalog (see `gpu-planner models`)
  a recording             written by --save (.json or .json.gz), which is opened without running anything

INPUT is [NAME=]SHAPE[:DTYPE], such as "x=8x3x224x224:float32" or "ids=4x512:int64"; "(8x128,8x128)" is a tuple.

examples:
  gpu-planner trace net.py:Net --input "x=8x3x224x224:float32" --task training --gpu "RTX 4090"
  gpu-planner trace net.py:make --arg width=64 --task training --optimizer "SGD(momentum=0.9)" --autocast bf16
  gpu-planner trace openai-community/gpt2 --task training --batch 8 --seq 512 --save gpt2.json.gz
  gpu-planner trace gpt2.json.gz --gpu h100-sxm --allocator expandable_segments:True
  gpu-planner trace train.py --gpu "RTX 4090" -- --batch-size 64
  gpu-planner trace ./my-model/config.json --dtype bf16 --seq 1024 --decode 16
  gpu-planner trace net.py:Net --input 8x128 --task training --ranks 8 --strategy fsdp --check --gpu "A100 80GB"

exit codes: 0 done, 1 does not fit (only with --check; tight counts as fitting), 2 invalid input or a failing module,
3 PyTorch is not installed, 130 interrupted"""


class _CheckedCards(NamedTuple):
    """Kind and number of the cards to check against; `gpu` is None without --gpu."""

    gpu: Gpu | None
    number: int


def run(argv: list[str]) -> int:
    """Run `gpu-planner trace` and return the exit code."""
    end = argv.index("--") if "--" in argv else len(argv)
    command = argv[end + 1 :]
    arguments = make_parser().parse_args(argv[:end])
    _check_arguments(arguments, command)
    catalog = user_catalog()
    gpu = resolve_gpu(catalog.hardware, arguments.gpu) if arguments.gpu is not None else None
    settings = _allocator_settings(arguments.allocator)
    top = arguments.top
    count = arguments.count
    recording, defaults = _loaded_or_traced_recording(arguments, command, catalog, gpu)
    cards = _CheckedCards(gpu, count or traced_ranks(recording.request))
    usable = catalog.hardware.usable_memory(gpu) if gpu else None
    result = conclude(recording, gpu, usable, cards.number, settings=settings)
    _write_requested_files(arguments, recording, result)
    if arguments.json:
        print(result.model_dump_json(indent=2))
    else:
        print(_report_text(result, recording, cards, catalog, defaults, top))
    return DOES_NOT_FIT if arguments.check and result.verdict not in ("fits", "tight") else 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner trace", _DESCRIPTION, _EPILOG)
    target_group = parser.add_argument_group("target")
    target_group.add_argument("target", metavar="TARGET", nargs="?", help="the module or script to trace; see below")
    target_group.add_argument("-m", dest="module", metavar="MODULE", help="trace a package's module run as a script")
    hardware = parser.add_argument_group("hardware")
    hardware.add_argument("--gpu", metavar="GPU", help='a GPU, such as "RTX 4090" or h100-sxm')
    hardware.add_argument(
        "--count",
        metavar="N",
        type=number_type(COUNT, 1, 100_000),
        help="number of these GPUs, all like the traced rank [--ranks]",
    )
    hardware.add_argument(
        "--allocator", metavar="SETTINGS", help="allocator settings as in PYTORCH_CUDA_ALLOC_CONF [PyTorch's defaults]"
    )
    add_trace_options(parser)
    limits = parser.add_details("limits of the tracing process")
    limits.add_argument("--time-limit", metavar="SECONDS", help="stop the trace after this time, in seconds [600]")
    limits.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="most host memory that the process may use [half of the free memory, at most 8 GiB]",
    )
    answer = parser.add_argument_group("the answer")
    answer.add_argument(
        "--top",
        metavar="N",
        type=row_limit,
        default=10,
        help="number of rows in the tables of live tensors and modules [10]",
    )
    answer.add_argument("--check", action="store_true", help="exit with code 1 if the module does not fit")
    answer.add_argument("--save", metavar="FILE", type=Path, help="write the recording to a .json or .json.gz file")
    answer.add_argument("--csv", metavar="FILE", type=Path, help="write the memory timeline as CSV")
    answer.add_argument("--allocations-csv", metavar="FILE", type=Path, help="write all allocations as CSV")
    parser.add_general_options()
    return parser


def _check_arguments(arguments: argparse.Namespace, command: list[str]) -> None:
    """Check the arguments before the trace, which may take long."""
    if arguments.target is None and arguments.module is None and not command:
        hint = 'Name a target: gpu-planner trace net.py:Net --input "x=8x3x224x224:float32".'
        raise PlannerError("no target is given", hint)
    if arguments.check and arguments.gpu is None:
        raise SpecError("--check", "needs a GPU to check against", "Add --gpu.")
    for option, path, is_replaceable in (
        ("--save", arguments.save, is_recording_file),
        ("--csv", arguments.csv, _is_csv_file),
        ("--allocations-csv", arguments.allocations_csv, _is_csv_file),
    ):
        if path is not None:
            _check_output_path(option, path, is_replaceable)


def _check_output_path(option: str, path: Path, is_replaceable: Callable[[Path], bool]) -> None:
    if path.is_dir():
        raise SpecError(option, f"{path} is a folder", "Name a file in the folder.")
    if not path.parent.is_dir():
        raise SpecError(option, f"there is no folder {path.parent}", "Create the folder, or choose another.")
    if path.exists() and not is_replaceable(path):
        raise SpecError(option, f"{path} exists and is a file of another kind", "Choose another name.")


def _is_csv_file(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _allocator_settings(text: str | None) -> AllocatorSettings:
    try:
        return AllocatorSettings.parse(text or "")
    except SpecError as error:
        raise SpecError("--allocator", error.message, error.hint) from error


def _loaded_or_traced_recording(
    arguments: argparse.Namespace, command: list[str], catalog: Catalog, gpu: Gpu | None
) -> tuple[TraceRecording, tuple[str, ...]]:
    """Return the recording, loaded or newly traced, and the defaults used for a new trace."""
    path = Path(arguments.target or "")
    if arguments.target and is_recording_file(path):
        given = given_option_names(arguments)
        if given:
            raise SpecError(given[0], f"cannot change {path}, which is a recording", "Trace the target again.")
        return load_recording(path), ()
    target = _target_of_command(arguments, command, catalog.models)
    request = request_from_arguments(arguments, target, gpu)
    with ProgressLine(sys.stderr) as line:
        recording = trace(request, _process_limits(arguments), lambda progress: line.show(f"Tracing: {progress.text}"))
    return recording, default_option_texts_of_trace(arguments, request)


def _process_limits(arguments: argparse.Namespace) -> TraceLimits:
    fields: dict[str, object] = {}
    if arguments.time_limit is not None:
        fields["seconds"] = option_value("--time-limit", arguments.time_limit, AMOUNT)
    if arguments.memory_limit is not None:
        fields["memory_bytes"] = option_value("--memory-limit", arguments.memory_limit, BYTES)
    try:
        return TraceLimits.model_validate(fields)
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        option = {"seconds": "--time-limit", "memory_bytes": "--memory-limit"}[problem.field]
        raise SpecError(option, problem.reason, "Try: gpu-planner trace --help") from error


def _write_requested_files(arguments: argparse.Namespace, recording: TraceRecording, result: TraceResult) -> None:
    if arguments.save is not None:
        save_recording(arguments.save, recording)
    if arguments.csv is not None:
        export_timeline_csv(arguments.csv, result.timeline)
    if arguments.allocations_csv is not None:
        export_allocations_csv(arguments.allocations_csv, recording)


def _report_text(
    result: TraceResult,
    recording: TraceRecording,
    cards: _CheckedCards,
    catalog: Catalog,
    defaults: tuple[str, ...],
    top: int,
) -> str:
    name = cards.gpu.name if cards.gpu else None
    smallest = () if cards.gpu else _smallest_fitting_cards(recording, catalog)
    return trace_report(trace_view(result, name, cards.number, smallest), defaults, terminal_width(), top)


def _smallest_fitting_cards(recording: TraceRecording, catalog: Catalog) -> tuple[str, ...]:
    """Return the names of the smallest cards on which the traced module fits."""
    capacities = [(gpu, catalog.hardware.usable_memory(gpu)) for gpu in catalog.hardware.gpus]
    fits = smallest_first(traced_fits_on(facts_of(recording), capacities), catalog)[:_MAX_SMALLEST_CARDS]
    return tuple(catalog.hardware.gpu(fit.gpu_id).name for fit in fits if fit.verdict == "fits")
