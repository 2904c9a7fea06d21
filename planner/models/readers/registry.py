"""Registry of configuration readers by `model_type`."""

import importlib
from collections.abc import Callable, Mapping
from typing import Final

from planner.errors import NoFormulaError
from planner.models.architecture import Architecture
from planner.models.readers.config_fields import ConfigFields
from planner.validation import close_names

Reader = Callable[[ConfigFields], Architecture]

# Names, not imports, because readers of composite models look up the readers of their components here.
_FAMILIES: Final = (
    "decoder.llama_like",
    "decoder.gpt_like",
    "decoder.moe",
    "decoder.gemma4",
    "encoder.bert_like",
    "encoder.encoder_decoders",
    "vision.vit",
    "decoder.state_space",
    "decoder.linear_attention",
    "vision.clip",
    "vision.vision_language",
    "diffusers.pipeline",
)


def readers() -> Mapping[str, Reader]:
    """Return all configuration readers by `model_type`."""
    found: dict[str, Reader] = {}
    for family in _FAMILIES:
        found.update(_module_readers(family))
    return dict(sorted(found.items()))


def find_reader(model_type: str) -> Reader | None:
    """Return the reader of `model_type`, or None; as few modules as possible are imported."""
    for family in _FAMILIES:
        reader: Reader | None = _module_readers(family).get(model_type)
        if reader is not None:
            return reader
    return None


def read_fields(fields: ConfigFields) -> Architecture:
    """Return the architecture of a configuration, by the reader of its `model_type`.

    Raises:
        NoFormulaError: If there is none; the hint has similar names and how to trace the model.
    """
    model_type = fields.model_type
    reader = find_reader(model_type)
    if reader is None:
        near = close_names(model_type, readers())
        meant = f" Near names: {', '.join(near)}." if near else ""
        raise NoFormulaError(
            fields.source,
            f"model_type {model_type[:60]!r} is not one of the {len(readers())} that can be read",
            traceable_name(fields),
            hint=f"`gpu-planner models --supported` in a shell lists all of them.{meant} If the network is one of "
            "these under another name (many are llama or qwen2), set model_type to it.",
        )
    return reader(fields)


def traceable_name(fields: ConfigFields) -> str:
    """Return what `gpu-planner trace` takes for the model: its file, or its name on the Hub."""
    # Files of the Hub are named after their model.
    return fields.source.partition(": ")[0] if fields.source.startswith("hf:") else fields.source


def _module_readers(family: str) -> Mapping[str, Reader]:
    by_model_type: Mapping[str, Reader] = importlib.import_module(f"planner.models.readers.{family}").READERS
    return by_model_type
