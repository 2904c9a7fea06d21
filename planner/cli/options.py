"""Workload options of the command line, and the workload that they describe.

Values are passed unchanged to the workload's own validation, so that the command line, the window and files accept the
same values with the same error messages.
"""

import argparse
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from pydantic import ValidationError

from planner.base import Spec
from planner.cli.parser import Parser, named_value, option_value
from planner.dtypes import FORMAT_SPELLINGS
from planner.errors import PlannerError, SpecError
from planner.models.architecture import Architecture
from planner.numbers import NumberKind
from planner.parsing import parse_json
from planner.storage import UnreadableFileError, read_regular
from planner.validation import UNKNOWN_FIELD, close_names
from planner.workload.choices import Task
from planner.workload.fields import TASKS, WorkloadField, all_fields, fields_of, find_field
from planner.workload.parallel import DEGREES, without_degrees
from planner.workload.rules import COUNT_HINT, check_given, field_reader
from planner.workload.software.registry import program_started_as, setting_names
from planner.workload.software.software import EngineSettings
from planner.workload.workload import Inference, Training, Workload

_FIELDS_OF_BOTH_TASKS: Final = ("parallel", "gpus", "other_processes_bytes")
_MAX_FILE_BYTES: Final = 2**20
_TWIN_OPTIONS: Final = {
    "--batch": "--micro-batch",
    "--micro-batch": "--batch",
    "--context": "--seq",
    "--seq": "--context",
}
"""Options that mean the same for the other task."""


def add_hidden_workload_options(parser: argparse.ArgumentParser) -> None:
    """Add the workload options to a command whose help refers to that of `fit` for them."""
    for flag in ("--task", *_fields_by_option()):
        parser.add_argument(flag, help=argparse.SUPPRESS)
    parser.add_argument("--set", action="append", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--workload", type=Path, help=argparse.SUPPRESS)


def add_workload_options(parser: Parser) -> None:
    """Add an option for each workload field that can be set by an option, by task, and list the other fields."""
    common = parser.add_details("workload; [defaults]")
    common.add_argument("--task", metavar="TASK", help="task of the model: inference or training [inference]")
    groups = {title: parser.add_details(title) for title in ("inference", "training", "several GPUs")}
    for flag, fields in _fields_by_option().items():
        help_text = "; for training, ".join(
            dict.fromkeys(f"{field.help}{_default_in_brackets(field)}" for field in fields)
        )
        group = groups.get(_help_heading(fields[0]), common)
        group.add_argument(flag, metavar=fields[0].metavar, help=help_text.replace("%", "%%"))
    common.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set any of the other workload fields below; repeatable",
    )
    common.add_argument(
        "--workload",
        metavar="FILE.json",
        type=Path,
        help="a workload as JSON, or a training file of axolotl, TRL, transformers, DeepSpeed, accelerate or "
        "LLaMA-Factory; options override it",
    )
    parser.add_details("other fields, as --set NAME=VALUE", _help_of_other_fields())


def _help_heading(field: WorkloadField) -> str:
    """Return the heading in the help under which the option for `field` is listed, empty for fields of both tasks."""
    if field.name.startswith("parallel."):
        return "several GPUs"
    return field.tasks[0] if len(_tasks_with_field(field.name)) == 1 else ""


def _tasks_with_field(name: str) -> tuple[Task, ...]:
    return tuple(task for task in TASKS if name in fields_of(task))


def _default_in_brackets(field: WorkloadField) -> str:
    """Return a blank and the default of `field` in brackets, such as ` [1]`; empty for a field without a default."""
    help_text = field.option.default
    if not help_text and not isinstance(field.default, bool) and field.default not in (None, (), "none"):
        help_text = f"{field.default:,}" if isinstance(field.default, int) else str(field.default)
    return f" [{help_text}]" if help_text else ""


def _help_of_other_fields() -> str:
    """Return a help line for each workload field without an option of its own."""
    others = [field for field in all_fields() if not field.option.flag]
    width = max(len(field.name) for field in others)
    return "\n".join(f"{field.name:{width}}  {field.help}{_default_in_brackets(field)}" for field in others)


def workload_from_arguments(arguments: argparse.Namespace, base: Workload | None = None) -> Workload:
    """Return the workload that the options describe, as changes of `base` or of the `--workload` file.

    Raises:
        SpecError: If an option belongs to the other task or a value is not allowed; the error names the option.
        PlannerError: If the workload file cannot be read.
    """
    start = read_workload(arguments.workload) if arguments.workload else base or Inference()
    task = _parsed_task(arguments.task or start.task)
    fields: dict[str, object] = {name: getattr(start, name) for name in start.model_fields_set if name != "task"}
    if task != start.task:
        fields = {name: value for name, value in fields.items() if name in _FIELDS_OF_BOTH_TASKS}
    changes = _field_changes(arguments, task)
    fields |= _sharing_changes({name: value for name, value, _ in changes}, start)
    for name, value, option in changes:
        _check_task(name, option, task)
        _set_field(fields, name, value)
    return _validated_workload(task, fields)


def _sharing_changes(given: Mapping[str, object], start: Workload) -> dict[str, object]:
    """Return the parallelism before the options: degrees are set by hand, and `--sharing auto` removes earlier ones."""
    if given.get("parallel.sharing") == "auto":
        return {"parallel": start.parallel.evolve(sharing="auto", **without_degrees())}
    if any(f"parallel.{name}" in given for name in DEGREES):
        return {"parallel": start.parallel.evolve(sharing="manual")}
    return {}


def read_workload(path: Path) -> Workload:
    """Return the workload in the JSON file at `path`.

    Raises:
        PlannerError: If the file cannot be read or is not a workload.
    """
    hint = 'A workload is an object such as {"task": "inference", "batch": 4, "context_length": 8192}.'
    try:
        fields = parse_json(read_regular(path, "workload", _MAX_FILE_BYTES))
    except UnreadableFileError as error:
        raise PlannerError(f"{path}: {error.reason}", f"{error.hint} {hint}") from error
    if not isinstance(fields, dict):
        raise PlannerError(f"{path}: is not a JSON object", hint)
    return _validated_workload(_parsed_task(fields.pop("task", "inference"), f"{path}: task"), fields, f"{path}: ")


def default_option_texts(requested: Workload, used: Workload) -> tuple[str, ...]:
    """Return the options that were not given and have an effect, with the default of each: `--batch 1`."""
    return tuple(
        f"{field.option.flag} {_joined(value)}"
        for field in fields_of(requested.task).values()
        if field.option.flag and not _is_set(requested, field.name) and not _has_no_effect(requested, used, field)
        if (value := field_reader(used)(field.name)) is not None
    )


def _joined(value: object) -> str:
    """Return a value as an option takes it: `1024x768`, or names with commas between them."""
    if not isinstance(value, tuple):
        return str(value)
    return ("," if isinstance(value[0], str) else "x").join(map(str, value))


def option_text(field: str, value: object) -> str:
    """Return the option that sets a field of a plan or workload: `--method qlora`, `--set checkpoint_every=4`."""
    if field in ("gpu", "count"):
        return shlex.join((f"--{field}", str(value)))
    name = field.removeprefix("workload.")
    flag = next((known.option.flag for known in all_fields() if known.name == name), "")
    if flag and value is not None:
        return shlex.join((flag, _joined(value)))
    return shlex.join(("--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"))


def _fields_by_option() -> Mapping[str, Sequence[WorkloadField]]:
    """Return the workload fields that each option sets, by option; fields of inference precede those of training."""
    fields_by_option: dict[str, list[WorkloadField]] = {}
    for field in all_fields():
        if field.option.flag:
            fields_by_option.setdefault(field.option.flag, []).append(field)
    return fields_by_option


def _has_no_effect(requested: Workload, used: Workload, field: WorkloadField) -> bool:
    """Return whether `field` is no default of `used`.

    Such are parallelism that is unused or chosen, what another objective needs, and the KV cache of a pipeline.
    """
    if field.group == "besides" and field_reader(used)(field.name) == field.default:
        return True
    if field.name.startswith("parallel."):
        is_open = requested.parallel.is_open
        return field.default is not None or (is_open and used.parallel != requested.parallel.evolve(data=1))
    if field.name.startswith("alignment.") and isinstance(used, Training):
        return field.name.removeprefix("alignment.") in used.alignment.unused
    return field.name == "kv_cache" and isinstance(used, Inference) and used.context_length is None


def _is_set(requested: Workload, field: str) -> bool:
    outer, dot, inner = field.partition(".")
    outer_value = getattr(requested, outer)
    has_inner = not dot or (isinstance(outer_value, Spec) and inner in outer_value.model_fields_set)
    return outer in requested.model_fields_set and has_inner and field_reader(requested)(field) is not None


def _parsed_task(name: object, place: str = "--task") -> Task:
    if name not in ("training", "inference"):
        hint = "Choose inference or training. Fine-tuning is training with a method such as lora."
        raise SpecError(place, f"unknown task {name!r}", hint)
    return "training" if name == "training" else "inference"


def _field_changes(arguments: argparse.Namespace, task: Task) -> list[tuple[str, object, str]]:
    """Return the field, value and option of every workload change on the command line.

    An option that sets another field of each task, such as `--lora-rank`, sets that of `task`.
    """
    given = [
        (next((field for field in fields if task in field.tasks), fields[0]), getattr(arguments, _argument_name(flag)))
        for flag, fields in _fields_by_option().items()
    ]
    changes = [
        (field.name, _spelled_value(field, value), field.option.flag) for field, value in given if value is not None
    ]
    assigned = [named_value("--set", text, "batch=4", _number_kind) for text in arguments.set]
    return changes + [(name, value, f"--set {name}") for name, value in assigned]


def _argument_name(flag: str) -> str:
    """Return the attribute name of an option in the parsed arguments."""
    return flag.removeprefix("--").replace("-", "_")


def _number_kind(name: str) -> NumberKind | None:
    """Return the kind of the numbers in the workload field `name`, None for other fields and unknown ones."""
    field = find_field(name)
    return None if field is None else field.number_kind


def _spelled_value(field: WorkloadField, value: str) -> object:
    """Return `value` as a number, or in the spelling of the field's choices."""
    names = [name for name in field.choices(None) if isinstance(name, str)]
    if names:
        written = next((name for name in names if name.lower() == value.lower()), None)
        meant = written or FORMAT_SPELLINGS.get(value.lower()) or program_started_as(value)
        return meant if meant in names else value
    return option_value(field.option.flag, value, field.number_kind)


def _check_task(field: str, option: str, task: Task) -> None:
    name = field.partition(".")[0]
    other: Task = "inference" if task == "training" else "training"
    if name not in TASKS[task].model_fields and name in TASKS[other].model_fields:
        twin = _TWIN_OPTIONS.get(option, "")
        instead = f"For {task}, use {twin}" if twin else "Leave it out"
        raise SpecError(option, f"applies to {other}, but the task is {task}", f"{instead}, or add --task {other}.")


def _set_field(fields: dict[str, object], name: str, value: object) -> None:
    outer, dot, inner = name.partition(".")
    if dot:
        outer_value = fields.get(outer)
        fields[outer] = {**(dict(outer_value) if isinstance(outer_value, Spec | dict) else {}), inner: value}
    else:
        fields[outer] = value


def _validated_workload(task: Task, fields: dict[str, object], place: str = "") -> Workload:
    try:
        return TASKS[task].model_validate(fields)
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        unknown = problem.reason == UNKNOWN_FIELD
        hint = _close_names_hint(TASKS[task], problem.field) or ("" if unknown else problem.hint)
        hint = hint or f"`gpu-planner fit --help-all` explains every {'field' if unknown else 'option'}."
        if place:
            raise SpecError(f"{place}{problem.field}".removesuffix(": "), problem.reason, hint) from error
        raise naming_options(SpecError(problem.field, problem.reason, hint)) from error


def check_options(arguments: argparse.Namespace, requested: Workload, architecture: Architecture) -> None:
    """Check that lengths on the command line apply to the network and are consistent, and that options have an effect.

    Raises:
        SpecError: If the network's inputs have no variable length, the prompt is longer than the context, or an option
            would be ignored.
    """
    lengths = (name for name in ("context", "prompt", "seq", "completion") if getattr(arguments, name) is not None)
    if not architecture.has_variable_length and (given := next(lengths, None)):
        raise SpecError(f"--{given}", "the inputs of this network have no variable length", "Leave it out.")
    if _field_changes(arguments, requested.task):
        try:
            check_given(requested, architecture)
        except SpecError as error:
            raise naming_options(error) from error


def naming_options(error: SpecError) -> SpecError:
    """Return `error` with names of fields replaced by their options."""
    reason = error.reason
    flags = {field.name: flag for flag, fields in _fields_by_option().items() for field in fields}
    for name, flag in flags.items():
        if "_" in name:  # the other names are ordinary words
            reason = re.sub(rf"\b{name}\b", flag, reason)
    option = flags.get(error.field, error.field)
    if option == error.field and reason == error.reason and error.hint != COUNT_HINT:
        return error
    return SpecError(option, reason, error.hint.replace(COUNT_HINT, f"{COUNT_HINT[:-1]}, --count."))


def _close_names_hint(spec: type[Spec], path: str) -> str:
    """Return a hint with the fields of `spec` that resemble the unknown field `path`; empty for a known field."""
    *outer, name = path.split(".")
    for part in outer:
        outer_value = spec.model_fields[part].annotation if part in spec.model_fields else None
        kinds = [
            kind for kind in (outer_value, *get_args(outer_value)) if isinstance(kind, type) and issubclass(kind, Spec)
        ]
        if not kinds:
            return ""
        spec = kinds[0]
    names = setting_names() if spec is EngineSettings else spec.model_fields
    if name in names:
        return ""
    close = close_names(name, names)
    return f"Close names: {', '.join('.'.join((*outer, field)) for field in close)}." if close else ""
