"""Options of `gpu-planner trace`, and the request that they describe.

Values are passed unchanged to the request's own validation, so that the command line and the window accept the same
values with the same error messages.
"""

import argparse
import re
from collections.abc import Callable
from typing import Final, TypeVar

from pydantic import ValidationError

from planner.cli.parser import CommandOption, Parser, add_options, named_value, option_value
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.numbers import COUNT, kind_at
from planner.parsing import parse_json
from planner.plan.trace_request import operator_fields
from planner.storage import UnreadableFileError
from planner.trace.notation import parse_arguments, parse_assumed_values, parse_input
from planner.trace.request import TORCH_NAMES, Target, TraceRequest

_Parsed = TypeVar("_Parsed")

_HELP_COMMAND: Final = "Try: gpu-planner trace --help"
_CALL: Final = re.compile(r"(?P<name>[^\W\d]\w*)\s*(?:\((?P<arguments>.*)\))?", re.DOTALL)

OPTIONS: Final = (
    CommandOption("--task", "task", "TASK", "what to trace: inference or training [inference]"),
    CommandOption("--batch", "batch", "N", "batch size [1, or the batch size of the inputs]"),
    CommandOption(
        "--seq",
        "sequence_length",
        "TOKENS",
        "sequence or prompt length [2,048 for training, else 4,096, or the model's maximum]",
    ),
    CommandOption("--dtype", "dtype", "FORMAT", "cast parameters to fp32, fp64, bf16 or fp16 [as built]"),
    CommandOption("--autocast", "autocast", "FORMAT", "run under torch.autocast to bf16 or fp16 [off]"),
    CommandOption("--attention", "attention", "KIND", "attention of Hugging Face models: sdpa or eager [sdpa]"),
    CommandOption("--steps", "steps", "N", "number of steps to run; two include the optimizer states [2]"),
    CommandOption("--device", "device", "NAME", "device whose operators are assumed: cuda or cpu [cuda]"),
    CommandOption("--step", "step", "FILE.py:NAME", "function that runs a whole custom step: step(modules, inputs)"),
    CommandOption("--decode", "decode_tokens", "N", "tokens to generate with the KV cache [0]", "inference"),
    CommandOption(
        "--optimizer",
        "optimizer",
        "NAME",
        'optimizer: a class of torch.optim, such as SGD or "AdamW(fused=True)" [AdamW]',
        "training",
    ),
    CommandOption("--accumulate", "gradient_accumulation", "N", "forward passes per optimizer step [1]", "training"),
    CommandOption(
        "--zero-grad",
        "zero_grad",
        "WHEN",
        "when to free gradients: after-step, before-backward, or zeros (kept) [after-step]",
        "training",
    ),
    CommandOption(
        "--checkpointing",
        "checkpointing",
        "KIND",
        "activation checkpointing: none, selective, or full if the model supports it [none]",
        "training",
    ),
    CommandOption(
        "--loss",
        "loss",
        "NAME",
        "loss function: its name in torch.nn.functional, or FILE.py:NAME [chosen by the module's output]",
        "training",
    ),
)
_OPTIONS_OF_SCRIPTS: Final = ("--steps", "--device", "--assume")
"""Options that apply to a script, which decides all else itself."""
_FLAG_OF_FIELD: Final = {flag.field: flag.name for flag in OPTIONS} | {
    "lora": "--lora",
    "parallel": "--strategy",
    "parallel.ranks": "--ranks",
    "optimizer_arguments": "--optimizer",
    "arguments": "--arg",
    "inputs": "--input",
    "assume": "--assume",
}


def add_trace_options(parser: Parser) -> None:
    """Add the options of a trace request to `parser`, grouped by task."""
    construction = parser.add_argument_group("construction")
    construction.add_argument(
        "--arg",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="argument of TARGET's constructor or function; repeatable",
    )
    construction.add_argument(
        "--input",
        metavar="INPUT",
        action="append",
        default=[],
        help='argument of forward(), such as "x=8x3x224x224:float32"; repeatable',
    )
    construction.add_argument(
        "--assume",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="value that depends on data, by source line, such as net.py:42=0.1, or by kind: the fraction that a mask "
        "selects, how many times in a row a condition is true, the choice made, a number, an integer, or the fraction "
        "of distinct values; repeatable",
    )
    construction.add_argument(
        "--lora",
        metavar="RANK",
        nargs="?",
        const="",
        help='train LoRA adapters of this rank [16], or as JSON: {"rank": 8, "targets": ["q_proj"]}',
    )
    groups = {
        None: parser.add_argument_group("run; [defaults]"),
        "inference": parser.add_details("inference"),
        "training": parser.add_details("training"),
    }
    add_options(OPTIONS, groups)
    groups["training"].add_argument(
        "--freeze", metavar="PATTERN", action="append", default=[], help="names of parameters not to train; repeatable"
    )
    several_cards = parser.add_details("several GPUs")
    several_cards.add_argument(
        "--ranks", metavar="N", help="number of processes, of which one is traced and none launched [1]"
    )
    several_cards.add_argument("--strategy", metavar="KIND", help="parallel strategy: ddp, or fsdp (fully_shard) [ddp]")


def request_from_arguments(arguments: argparse.Namespace, target: Target, gpu: Gpu | None) -> TraceRequest:
    """Return the trace request that the options describe.

    Raises:
        SpecError: If an option belongs to the other task or a value is not allowed; the error names the option.
    """
    fields: dict[str, object] = {
        flag.field: option_value(flag.name, value, kind_at(TraceRequest, flag.field))
        for flag in OPTIONS
        if (value := flag.value_in(arguments)) is not None
    }
    if target.is_script:
        _check_script_options(arguments)
        fields.setdefault("task", "training")
    else:
        _check_task(arguments)
    fields |= _optimizer_fields(arguments.optimizer) if arguments.optimizer is not None else {}
    fields |= _parallel_fields(arguments)
    if arguments.lora is not None:
        fields["lora"] = _lora_settings(arguments.lora)
    if arguments.freeze:
        fields["freeze"] = tuple(arguments.freeze)
    if target.kind == "config" and not arguments.input:
        fields.setdefault("batch", 1)
    if fields.get("device", "cuda") == "cuda":
        fields |= operator_fields(gpu)
    fields["arguments"] = tuple(
        dict(zip(("name", "value"), named_value("--arg", text, "width=64"), strict=True)) for text in arguments.arg
    )
    fields["assume"] = tuple(
        assumed for text in arguments.assume for assumed in parse_option("--assume", parse_assumed_values, text)
    )
    fields["inputs"] = tuple(parse_option("--input", parse_input, text) for text in arguments.input)
    try:
        return TraceRequest.model_validate({**fields, "target": target})
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        raise SpecError(_option_for_field(problem.field), problem.reason, problem.hint or _HELP_COMMAND) from error


def default_option_texts_of_trace(arguments: argparse.Namespace, request: TraceRequest) -> tuple[str, ...]:
    """Return the options that were not given but have an effect, with the default of each: `--batch 1`."""
    given = {flag.name for flag in OPTIONS if flag.value_in(arguments) is not None}
    defaulted = (flag for flag in OPTIONS if flag.name not in given and _has_effect(flag, request))
    values = ((flag.name, getattr(request, flag.field)) for flag in defaulted)
    return tuple(f"{name} {value}" for name, value in values if value is not None)


def _check_script_options(arguments: argparse.Namespace) -> None:
    """Check that no option is given that a script decides itself.

    Raises:
        SpecError: If there is one; the error names it.
    """
    for name in given_option_names(arguments):
        if name not in _OPTIONS_OF_SCRIPTS:
            raise SpecError(name, "is decided by the script itself", "Leave it out; a script's arguments follow --.")


def _has_effect(flag: CommandOption, request: TraceRequest) -> bool:
    """Return whether an option has an effect on `request`."""
    if request.target.is_script:
        return flag.name in _OPTIONS_OF_SCRIPTS
    if flag.task not in (None, request.task):
        return False
    if flag.name in ("--attention", "--decode"):
        return request.target.kind == "config"
    if flag.name == "--steps":
        return request.task == "training" or request.step is not None
    # A custom step does these itself.
    return request.step is None or flag.name not in ("--optimizer", "--accumulate", "--zero-grad")


def given_option_names(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the names of the request options on the command line."""
    flags = {flag.key: flag.name for flag in OPTIONS} | {
        name: f"--{name}" for name in ("arg", "input", "assume", "lora", "freeze", "ranks", "strategy")
    }
    return tuple(option for key, option in flags.items() if getattr(arguments, key) not in (None, []))


def parse_option(option: str, parse: Callable[[str], _Parsed], text: str) -> _Parsed:
    """Return the result of `parse` for the text of an option.

    Raises:
        SpecError: If `text` cannot be parsed; the error names the option.
    """
    try:
        return parse(text)
    except SpecError as error:
        raise SpecError(option, error.reason, error.hint) from error


def _check_task(arguments: argparse.Namespace) -> None:
    task = arguments.task or "inference"
    given = [(flag.name, flag.task) for flag in OPTIONS if flag.value_in(arguments) is not None]
    if arguments.freeze:
        given.append(("--freeze", "training"))
    for name, option_task in given:
        if option_task and task in ("training", "inference") and option_task != task:
            raise SpecError(
                name, f"applies to {option_task}, but the task is {task}", f"Leave it out, or add --task {option_task}."
            )


def _optimizer_fields(text: str) -> dict[str, object]:
    """Return class and arguments of an optimizer such as `AdamW(fused=True, lr=1e-4)`, as fields of the request."""
    spelled = TORCH_NAMES.get(text.strip().casefold(), text)
    call = _CALL.fullmatch(spelled.strip())
    try:
        if call is None:
            raise SpecError("optimizer", f"{text!r} is not a class or a call")
        return {"optimizer": call["name"], "optimizer_arguments": parse_arguments(call["arguments"] or "")}
    except SpecError as error:
        hint = 'Use a class of torch.optim, with arguments such as "AdamW(fused=True, lr=1e-4)".'
        raise SpecError("--optimizer", error.reason, hint) from error


def _parallel_fields(arguments: argparse.Namespace) -> dict[str, object]:
    if arguments.ranks is None and arguments.strategy is None:
        return {}
    if arguments.ranks is None:
        raise SpecError("--strategy", "needs more than one rank", "Add --ranks, the number of processes.")
    return {
        "parallel": {"ranks": option_value("--ranks", arguments.ranks, COUNT), "strategy": arguments.strategy or "ddp"}
    }


def _lora_settings(text: str) -> object:
    if not text:
        return {}
    if text[:1].isdigit():
        return {"rank": option_value("--lora", text, COUNT)}
    hint = 'Use --lora=16, or --lora=\'{"rank": 16, "targets": ["q_proj"]}\', after TARGET.'
    try:
        return parse_json(text)
    except UnreadableFileError as error:
        raise SpecError("--lora", f"{text!r} is neither a rank nor JSON", hint) from error


def _option_for_field(field: str) -> str:
    parts = field.split(".")
    return _FLAG_OF_FIELD.get(".".join(parts[:2])) or _FLAG_OF_FIELD.get(parts[0], field)
