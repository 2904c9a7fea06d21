"""Reader of LoRA adapters saved by PEFT: the configuration, and the headers of the weights if present.

**Source**: PEFT 0.21 `LoraConfig`; other kinds of adapters have another `peft_type`.
"""

import os
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from planner.base import Spec
from planner.errors import ModelFileError
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.config_json import MAX_FILE_BYTES, parse_config
from planner.models.readers.safetensors import FileTensor, read_header
from planner.models.readers.sources import open_local, read_whole

ADAPTER_FILE: Final = "adapter_config.json"
ALL_LINEAR: Final = "all-linear"

_WEIGHTS: Final = "adapter_model.safetensors"
_PLAIN: Final[dict[str, Literal["fp32", "bf16", "fp16"]]] = {"F32": "fp32", "BF16": "bf16", "F16": "fp16"}
_MAX_RANK: Final = 1_000_000


class AdapterConfig(Spec):
    """Configuration of a LoRA adapter.

    `targets` are suffixes of module names, or `all-linear`; `target_pattern` is a regular expression of full module
    names instead. `parameters` and `stored_bytes` describe the weights file, and are None without one.
    """

    base: str | None = Field(description="base model: a name in the catalog or on the Hub, or a folder")
    rank: int = Field(ge=1)
    ranks: tuple[tuple[str, int], ...] = Field(
        default=(), description="ranks that differ from `rank`, by patterns of module names"
    )
    alpha: float
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: Literal["all-linear"] | tuple[str, ...] | None = None
    target_pattern: str | None = None
    layers: tuple[int, ...] = Field(default=(), description="numbers of the layers with adapters; empty for all layers")
    dora: bool = False
    rank_stabilised: bool = Field(
        default=False, description="whether the adapter is scaled by alpha / √rank instead of alpha / rank"
    )
    biases: Literal["none", "all", "lora_only"] = "none"
    modules_to_save: tuple[str, ...] = Field(
        default=(), description="modules that are fully trained besides the adapters"
    )
    parameters: int | None = None
    stored_bytes: int | None = None
    stored_dtype: Literal["fp32", "bf16", "fp16"] | None = None


def read_adapter(path: Path) -> AdapterConfig:
    """Return the configuration of the LoRA adapter in an `adapter_config.json` or its folder.

    Raises:
        ModelFileError: If it cannot be read, is no LoRA adapter, or a field is missing or invalid.
    """
    file = path / ADAPTER_FILE if os.path.isdir(path) else path
    fields = ConfigFields(parse_config(read_whole(file, MAX_FILE_BYTES, ADAPTER_FILE), str(file)), str(file))
    kind = fields.text("peft_type")
    if kind != "LORA":
        raise ModelFileError(file, f"is an adapter of type {kind[:40]!r}", "Only LoRA adapters are supported.")
    pattern, targets = _read_targets(fields)
    tensors = _read_tensors(file.with_name(_WEIGHTS))
    formats = {tensor.format for tensor in tensors or ()}
    return AdapterConfig(
        base=fields.text("base_model_name_or_path", default="") or None,
        rank=fields.integer("r", high=_MAX_RANK),
        ranks=_read_ranks(fields),
        alpha=fields.number("lora_alpha", default=8.0),
        dropout=fields.dropout("lora_dropout"),
        targets=targets,
        target_pattern=pattern,
        layers=_read_layer_numbers(fields),
        dora=fields.flag("use_dora", default=False),
        rank_stabilised=fields.flag("use_rslora", default=False),
        biases=fields.choice("bias", among={"none": "none", "all": "all", "lora_only": "lora_only"}, default="none"),
        modules_to_save=fields.texts("modules_to_save") or (),
        parameters=None if tensors is None else sum(tensor.elements for tensor in tensors),
        stored_bytes=None if tensors is None else sum(tensor.bytes for tensor in tensors),
        stored_dtype=_PLAIN.get(formats.pop()) if len(formats) == 1 else None,
    )


def _read_targets(fields: ConfigFields) -> tuple[str | None, Literal["all-linear"] | tuple[str, ...] | None]:
    """Return the pattern or the sorted names of the target modules; the other one is None."""
    if fields.is_list("target_modules"):
        return None, tuple(sorted(fields.texts("target_modules") or ()))
    text = fields.text("target_modules", default="") or None
    return (None, ALL_LINEAR) if text == ALL_LINEAR else (text, None)


def _read_ranks(fields: ConfigFields) -> tuple[tuple[str, int], ...]:
    listed = fields.nested("rank_pattern")
    return () if listed is None else tuple((name, listed.integer(name, high=_MAX_RANK)) for name in listed.names)


def _read_layer_numbers(fields: ConfigFields) -> tuple[int, ...]:
    if fields.has("layers_to_transform") and not fields.is_list("layers_to_transform"):
        return (fields.integer("layers_to_transform", low=0, high=MAX_LAYERS),)
    return fields.integers("layers_to_transform", high=MAX_LAYERS) or ()


def _read_tensors(weights: Path) -> tuple[FileTensor, ...] | None:
    """Return the adapter tensors in the safetensors file `weights`, or None without such a file."""
    if not os.path.lexists(weights):
        return None
    with open_local(weights) as file:
        return read_header(file)
