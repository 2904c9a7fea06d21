"""The workload options of the command line and the workload that they describe.

Values go to the workload's own validation as they were written, so that the command line, the window and files accept
the same and say the same.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from pydantic import ValidationError

from planner.base import Spec
from planner.dtypes import KV_FORMATS, SCHEMES
from planner.errors import PlannerError, SpecError
from planner.models.architecture import Architecture
from planner.units import parse_bytes
from planner.workload.software.registry import setting_names
from planner.workload.software.settings import EngineSettings
from planner.workload.workload import Inference, Training, Workload

Task = Literal["training", "inference"]
_TASKS: Final[dict[str, type[Training] | type[Inference]]] = {"training": Training, "inference": Inference}
_OF_BOTH_TASKS: Final = ("parallel", "gpus", "other_processes_bytes")
_MAX_FILE_BYTES: Final = 2**20


class Flag(NamedTuple):
    """An option and the field of the workload that it sets; `task` is none for those that both tasks have."""

    name: str
    field: str
    metavar: str
    help: str
    task: Task | None = None

    @property
    def key(self) -> str:
        """Return the attribute that argparse gives it."""
        return self.name.removeprefix("--").replace("-", "_")


FLAGS: Final = (
    Flag("--weights", "weights", "FORMAT", "fp32, bf16, fp16, fp8, int8, nf4, gptq4-128, Q4_K_M, … [as stored]"),
    Flag("--compute", "compute", "FORMAT", "fp32, bf16 or fp16; to train also tf32, amp-bf16, amp-fp16 [(amp-)bf16]"),
    Flag("--attention", "attention", "KIND", "sdpa, flash or eager [sdpa]"),
    Flag(
        "--profile",
        "profile",
        "NAME",
        "the software that runs it: hf, vllm or llama.cpp; to train hf, liger, unsloth, torchtune, megatron, "
        "deepspeed or litgpt [by the weights, else hf]",
    ),
    Flag("--dp", "parallel.data", "N", "replicas [the number of cards, divided by --tp, --pp and --cp]"),
    Flag("--batch", "batch", "N", "sequences at once [1]", "inference"),
    Flag("--context", "context_length", "TOKENS", "prompt and answer [4,096, or the model's maximum]", "inference"),
    Flag("--prompt", "prompt_length", "TOKENS", "tokens read in one pass [4,096, or the context]", "inference"),
    Flag("--kv-cache", "kv_cache", "FORMAT", f"of cached keys and values: {', '.join(KV_FORMATS)} [bf16]", "inference"),
    Flag("--image-size", "image_size", "WxH", "pixels of images that are read or made [the model's own]"),
    Flag(
        "--gpu-layers",
        "gpu_layers",
        "N",
        "llama.cpp: layers on the card, the output as one; the rest is in RAM [all]",
        "inference",
    ),
    Flag("--method", "method", "NAME", "full, lora or qlora: what is trained [full]", "training"),
    Flag("--lora-rank", "lora.rank", "N", "rank of the adapters [16]", "training"),
    Flag("--lora-targets", "lora.targets", "NAMES", "all-linear, or such as q_proj,v_proj [all-linear]", "training"),
    Flag("--optimizer", "optimizer", "NAME", "adamw, adamw-8bit, adafactor, lion, muon, sgd, … [adamw]", "training"),
    Flag("--micro-batch", "micro_batch", "N", "sequences per card and forward pass [1]", "training"),
    Flag("--accumulate", "gradient_accumulation", "N", "forward passes per optimizer step [1]", "training"),
    Flag("--seq", "sequence_length", "TOKENS", "length of a sequence [2,048, or the model's maximum]", "training"),
    Flag(
        "--checkpointing",
        "activation_checkpointing",
        "KIND",
        "none, selective, or full: keep layer inputs only [none]",
        "training",
    ),
    Flag("--loss", "loss", "KIND", "full-logits, chunked or fused-linear [full-logits, or the profile's]", "training"),
)
SHARING_FLAGS: Final = (
    Flag("--zero", "parallel.zero", "0-3", "what replicas share: 1 states, 2 gradients too, 3 parameters too: FSDP"),
    Flag("--tp", "parallel.tensor", "N", "cards that share each matrix"),
    Flag("--pp", "parallel.pipeline", "N", "cards that each hold some of the layers"),
    Flag("--cp", "parallel.context", "N", "cards that share each sequence"),
    Flag("--ep", "parallel.expert", "N", "replicas that share the routed experts"),
    Flag("--offload", "parallel.offload", "WHAT", "to RAM: optimizer, or parameters with it; nvme: both to disk"),
)
_ALL_FLAGS: Final = (*FLAGS, *SHARING_FLAGS)
_FLAG_OF_FIELD: Final = {flag.field: flag.name for flag in _ALL_FLAGS}


def add_workload_options(parser: argparse.ArgumentParser) -> None:
    """Add the workload options to `parser`, grouped by task."""
    both = parser.add_argument_group("what to run it for; [defaults]")
    both.add_argument("--task", metavar="TASK", help="inference or training [inference]")
    groups = {
        None: both,
        "inference": parser.add_argument_group("inference"),
        "training": parser.add_argument_group("training"),
    }
    for flag in FLAGS:
        groups[flag.task].add_argument(flag.name, metavar=flag.metavar, help=flag.help)
    sharing = parser.add_argument_group("several cards")
    for flag in SHARING_FLAGS:
        sharing.add_argument(flag.name, metavar=flag.metavar, help=flag.help)
    both.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="any other field of the workload by its JSON name, such as other_processes_bytes=2GiB or "
        "engine.n_ubatch=256; repeatable",
    )
    both.add_argument(
        "--workload",
        metavar="FILE.json",
        type=Path,
        help="a workload as JSON, or a training file of axolotl, TRL, transformers, DeepSpeed, accelerate or "
        "LLaMA-Factory; options change it",
    )


def workload_from(arguments: argparse.Namespace, base: Workload | None = None) -> Workload:
    """Return the workload that the options describe, as changes of `base` or of the file given by `--workload`.

    Raises:
        SpecError: If an option belongs to the other task or a value is not allowed, named by the option.
        PlannerError: If the workload file cannot be read.
    """
    start = read_workload(arguments.workload) if arguments.workload else base or Inference()
    task = _task(arguments.task or start.task)
    fields: dict[str, object] = {name: getattr(start, name) for name in start.model_fields_set if name != "task"}
    if task != start.task:
        fields = {name: value for name, value in fields.items() if name in _OF_BOTH_TASKS}
    for name, value, option in _changes(arguments):
        _check_task(name, option, task)
        _put(fields, name, value)
    return _validated(task, fields)


def read_workload(path: Path) -> Workload:
    """Return the workload that the JSON file at `path` holds.

    Raises:
        PlannerError: If the file cannot be read or is no workload.
    """
    hint = 'A workload is an object such as {"task": "inference", "batch": 4, "context_length": 8192}.'
    try:
        if path.exists() and not path.is_file():
            raise PlannerError(f"{path}: is not a file", hint)
        with path.open("rb") as file:
            fields = json.loads(file.read(_MAX_FILE_BYTES))
    except OSError as error:
        raise PlannerError(f"{path}: cannot be read: {error.strerror}", "Check the path.") from error
    except (ValueError, RecursionError) as error:
        raise PlannerError(f"{path}: is not JSON", hint) from error
    if not isinstance(fields, dict):
        raise PlannerError(f"{path}: holds no JSON object", hint)
    return _validated(_task(fields.pop("task", "inference"), f"{path}: task"), fields, f"{path}: ")


def used_defaults(asked: Workload, used: Workload) -> tuple[str, ...]:
    """Return the options that were not given, with the values that were used for them."""
    return tuple(
        f"{flag.name} {'x'.join(map(str, value)) if isinstance(value, tuple) else value}"
        for flag in FLAGS
        if flag.task in (None, asked.task) and not _given(asked, flag.field) and not _idle(used, flag.field)
        if (value := _value(used, flag.field)) is not None
    )


def _idle(used: Workload, field: str) -> bool:
    """Return whether `field` means nothing to the network that `used` was filled in for: images have no cache."""
    return field == "kv_cache" and isinstance(used, Inference) and used.context_length is None


def _given(asked: Workload, field: str) -> bool:
    outer, dot, inner = field.partition(".")
    held = getattr(asked, outer)
    inside = not dot or (isinstance(held, Spec) and inner in held.model_fields_set)
    return outer in asked.model_fields_set and inside and _value(asked, field) is not None


def _value(workload: Workload, field: str) -> object:
    """Return the value of `field`, none where the part of the workload that it belongs to is not there."""
    outer, dot, inner = field.partition(".")
    held: object = getattr(workload, outer)
    return getattr(held, inner) if dot and held is not None else held


def _task(name: object, place: str = "--task") -> Task:
    if name not in ("training", "inference"):
        raise SpecError(place, f"there is no task {name!r}", "Choose inference or training.")
    return "training" if name == "training" else "inference"


def _changes(arguments: argparse.Namespace) -> list[tuple[str, object, str]]:
    """Return field, value and option of everything that was given."""
    given = [(flag, getattr(arguments, flag.key)) for flag in _ALL_FLAGS]
    changes = [(flag.field, _spelled(flag, value), flag.name) for flag, value in given if value is not None]
    return changes + [_assignment(text) for text in arguments.set]


def _spelled(flag: Flag, value: str) -> str:
    if flag.field in ("weights", "kv_cache"):
        names = SCHEMES if flag.field == "weights" else KV_FORMATS
        return next((name for name in names if name.lower() == value.lower()), value)
    return value if flag.field == "lora.targets" else value.replace(",", "")


def _assignment(text: str) -> tuple[str, object, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise SpecError("--set", f"{text!r} is not NAME=VALUE", "Write it such as --set batch=4.")
    if name.endswith("_bytes"):
        return name, parse_bytes(value), f"--set {name}"
    try:
        return name, json.loads(value), f"--set {name}"
    except ValueError:
        return name, value, f"--set {name}"


def _check_task(field: str, option: str, task: Task) -> None:
    name = field.partition(".")[0]
    other: Task = "inference" if task == "training" else "training"
    if name not in _TASKS[task].model_fields and name in _TASKS[other].model_fields:
        raise SpecError(option, f"belongs to {other}, and this is {task}", f"Leave it out, or add --task {other}.")


def _put(fields: dict[str, object], name: str, value: object) -> None:
    outer, dot, inner = name.partition(".")
    if dot:
        held = fields.get(outer)
        fields[outer] = {**(dict(held) if isinstance(held, Spec | dict) else {}), inner: value}
    else:
        fields[outer] = value


def _validated(task: Task, fields: dict[str, object], place: str = "") -> Workload:
    try:
        return _TASKS[task].model_validate(fields)
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        hint = _alike(_TASKS[task], problem.field) or problem.hint or "Try: gpu-planner fit --help"
        if place:
            raise SpecError(f"{place}{problem.field}".removesuffix(": "), problem.reason, hint) from error
        raise in_options(SpecError(problem.field, problem.reason, hint)) from error


def check_lengths(arguments: argparse.Namespace, asked: Workload, architecture: Architecture | None) -> None:
    """Refuse lengths that would mean nothing.

    Raises:
        SpecError: If the network has no length to choose, or the prompt is longer than the context that holds it.
    """
    given = next((name for name in ("context", "prompt", "seq") if getattr(arguments, name) is not None), None)
    if given is None or architecture is None:
        return
    if not architecture.takes_lengths:
        raise SpecError(f"--{given}", "the inputs of this network have no length to choose", "Leave it out.")
    if not isinstance(asked, Inference) or architecture.kind == "encoder-decoder":
        return
    prompt, context = asked.prompt_length, asked.context_length
    if prompt is not None and context is not None and prompt > context:
        reason = f"{prompt:,} tokens are more than the context of {context:,}, which holds prompt and answer"
        raise SpecError("--prompt", reason, "Change one of them.")


def in_options(error: SpecError) -> SpecError:
    """Return `error` with the options that set the fields it speaks of; itself where it speaks of none."""
    reason = error.reason
    for field, option in _FLAG_OF_FIELD.items():
        if "_" in field:  # the others are words of every sentence
            reason = re.sub(rf"\b{field}\b", option, reason)
    if (option := _FLAG_OF_FIELD.get(error.field, error.field)) == error.field and reason == error.reason:
        return error
    return SpecError(option, reason, error.hint)


def _alike(spec: type[Spec], path: str) -> str:
    """Return a hint with the fields of `spec` that may have been meant by the unknown `path`; empty for a known one."""
    *outer, name = path.split(".")
    for part in outer:
        held = spec.model_fields[part].annotation if part in spec.model_fields else None
        kinds = [kind for kind in (held, *get_args(held)) if isinstance(kind, type) and issubclass(kind, Spec)]
        if not kinds:
            return ""
        spec = kinds[0]
    names = setting_names() if spec is EngineSettings else spec.model_fields
    if name in names:
        return ""
    from difflib import get_close_matches  # takes a while to load, and is seldom needed

    close = get_close_matches(name, names)
    return f"Close names: {', '.join('.'.join((*outer, field)) for field in close)}." if close else ""
