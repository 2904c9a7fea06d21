"""Registry of all supported programs by name, and look-ups of their capabilities and settings."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, SerializationInfo, SerializerFunctionWrapHandler, WrapSerializer

from planner.base import unknown_name_error
from planner.validation import HintedError
from planner.workload.software.autoawq import AUTOAWQ
from planner.workload.software.deepspeed import DEEPSPEED
from planner.workload.software.gpt_fast import GPT_FAST
from planner.workload.software.liger import LIGER
from planner.workload.software.litgpt import LITGPT
from planner.workload.software.llama_cpp import LLAMA_CPP
from planner.workload.software.megatron import MEGATRON
from planner.workload.software.sglang import SGLANG
from planner.workload.software.software import EngineSettings, ServingSupport, Software, TrainingSupport
from planner.workload.software.tensorrt_llm import TENSORRT_LLM
from planner.workload.software.torchtune import TORCHTUNE
from planner.workload.software.transformers import TRANSFORMERS
from planner.workload.software.unsloth import UNSLOTH
from planner.workload.software.vllm import VLLM

SOFTWARE: Final[dict[str, Software]] = {
    software.name: software
    for software in (
        TRANSFORMERS,
        LIGER,
        UNSLOTH,
        TORCHTUNE,
        MEGATRON,
        DEEPSPEED,
        VLLM,
        SGLANG,
        TENSORRT_LLM,
        LLAMA_CPP,
        LITGPT,
        AUTOAWQ,
        GPT_FAST,
    )
}
"""All supported programs by name, in display order."""
DEFAULT: Final = TRANSFORMERS.name
"""Default program of a workload."""
TRAINERS: Final[dict[str, Software]] = {name: software for name, software in SOFTWARE.items() if software.training}
"""Training programs by name."""
SERVERS: Final[dict[str, Software]] = {name: software for name, software in SOFTWARE.items() if software.serving}
"""Inference programs by name."""

MEMORY_RESERVING_PROGRAMS: Final = {
    program.serving.process: program.title
    for program in SERVERS.values()
    if program.serving and program.serving.process
}
"""Titles of programs that reserve a fixed share of a card's memory at start, by a part of their command line."""


def program_behavior(folder: str, module: str, name: str) -> Any:  # noqa: ANN401  # what the folder says
    """Return what `module` in the package `folder` calls `name`; None if there is no such module, or nothing in it."""
    return getattr(_found_module(f"{folder}.{module}"), name, None)


@cache
def _found_module(name: str) -> ModuleType | None:
    """Import the module `name`, if there is one; a plan uses one program, so they are imported one by one."""
    return import_module(name) if find_spec(name) else None


def program_started_as(word: str) -> str | None:
    """Return the name of the program that the command `word` starts, or that it builds on; None if it is none."""
    command = word.lower().rpartition("/")[2].removesuffix(".exe").partition(":")[0]
    return next((each.name for each in SOFTWARE.values() if command in (each.name, *each.started_as)), None)


def training_support(name: str) -> TrainingSupport:
    """Return the training capabilities of the program `name`."""
    support = SOFTWARE[name].training
    assert support is not None, f"{name} does not train"
    return support


def serving_support(name: str | None) -> ServingSupport:
    """Return the inference capabilities of the program `name`, or of the default program."""
    support = SOFTWARE[name or DEFAULT].serving
    assert support is not None, f"{name} does not serve"
    return support


def setting_owner(name: str) -> Software | None:
    """Return the inference program with a setting called `name`, or None."""
    return next(
        (program for program in SERVERS.values() if name in serving_support(program.name).settings.model_fields), None
    )


def field_owner(name: str) -> Software | None:
    """Return the only inference program that uses the workload field `name`, or None if all programs use the field."""
    return next((program for program in SERVERS.values() if name in serving_support(program.name).own_fields), None)


def setting_names() -> tuple[str, ...]:
    """Return the names of the settings of all inference programs."""
    return tuple(name for program in SERVERS for name in serving_support(program).settings.model_fields)


def settings_for(name: str, settings: EngineSettings) -> EngineSettings:
    """Return `settings` as settings of the program `name`; explicit settings of another program stay unchanged."""
    own = serving_support(name).settings
    return settings if type(settings) is own or settings.explicit_names() else own()


def _known_trainer(name: str) -> str:
    if name in SERVERS and name not in TRAINERS:
        raise HintedError(f"{name!r} does not train models", f"Choose {', '.join(TRAINERS)}.")
    if name not in TRAINERS:
        raise unknown_name_error(TRAINERS)
    return name


def _known_server(name: str) -> str:
    if name in TRAINERS and name not in SERVERS:
        hint = f"Add --task training, or choose {', '.join(SERVERS)}."
        raise HintedError(f"{name!r} trains models and does not run them", hint)
    if name not in SERVERS:
        raise unknown_name_error(SERVERS)
    return name


def _parse_settings(value: object) -> object:
    """Return a flat JSON object as settings of the program with these setting names; other values unchanged."""
    if not isinstance(value, dict):
        return value
    settings = {name: setting for name, setting in value.items() if setting is not None or setting_owner(name) is None}
    owners = {owner.name: name for name in settings if (owner := setting_owner(name))}
    if len(owners) > 1:
        (first, one), (second, other) = list(owners.items())[:2]
        raise ValueError(
            f"{one} is a setting of {SOFTWARE[first].title}, but {other} is a setting of {SOFTWARE[second].title}"
        )
    own = next((serving_support(name).settings for name in owners), EngineSettings)
    return own.model_validate(settings)


def _flatten_settings(
    value: EngineSettings, _write: SerializerFunctionWrapHandler, info: SerializationInfo
) -> dict[str, Any]:
    """Return the settings as a flat object with the settings of all programs, null if unset."""
    written = value.model_dump(mode=info.mode, exclude_unset=info.exclude_unset, exclude_defaults=info.exclude_defaults)
    return written if info.exclude_unset or info.exclude_defaults else {**dict.fromkeys(setting_names()), **written}


TrainerName = Annotated[str, AfterValidator(_known_trainer)]
"""Name of a training program."""
ServerName = Annotated[str, AfterValidator(_known_server)]
"""Name of an inference program."""
FlatSettings = Annotated[EngineSettings, BeforeValidator(_parse_settings), WrapSerializer(_flatten_settings)]
"""Settings of any inference program, which are a flat object in files."""
