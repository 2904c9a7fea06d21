"""Reader of local model files: a configuration, the headers of weights, a folder of both, or a LoRA adapter of PEFT.

**Source**: PEFT 0.21 `LoraConfig`; other kinds of adapters have another `peft_type`.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, NoReturn

from pydantic import Field

from planner.base import Spec
from planner.errors import TRACE_INSTRUCTIONS, ModelFileError
from planner.models.architecture import Architecture
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.config_json import (
    MAX_FILE_BYTES,
    parse_config,
    read_config,
    read_config_fields,
    read_config_file,
)
from planner.models.readers.diffusers.pipeline import MODEL_INDEX, read_pipeline_folder
from planner.models.readers.gguf.model import read_gguf_config, read_gguf_model
from planner.models.readers.safetensors import INDEX, SINGLE, FileTensor, numbered_parts, read_checkpoint, read_header
from planner.models.readers.sources import open_local, read_whole
from planner.models.readers.stored import with_stored_sizes

ADAPTER_FILE: Final = "adapter_config.json"
ALL_LINEAR: Final = "all-linear"

_ADAPTER_WEIGHTS: Final = "adapter_model.safetensors"
_ADAPTER_FORMATS: Final[dict[str, Literal["fp32", "bf16", "fp16"]]] = {"F32": "fp32", "BF16": "bf16", "F16": "fp16"}
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
    tensors = _read_tensors(file.with_name(_ADAPTER_WEIGHTS))
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
        stored_dtype=_ADAPTER_FORMATS.get(formats.pop()) if len(formats) == 1 else None,
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
    if not os.path.lexists(weights):
        return None
    with open_local(weights) as file:
        return read_header(file)


PICKLES: Final = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
WEIGHTS: Final = (".safetensors", ".gguf")
_CONFIG: Final = "config.json"
_INDEX_ENDING: Final = ".safetensors.index.json"
_MAX_LISTED: Final = 10_000


def read_model_file(path: Path) -> Architecture:
    """Read the network in a config.json, a safetensors file or index, a GGUF file, or a folder with such files.

    The configuration describes the network, the headers of the weights in the same folder its stored size.

    Raises:
        ModelFileError: If it cannot be read, is invalid, or does not identify the network.
    """
    if os.path.isdir(path):
        return _read_folder(path)
    if path.name == MODEL_INDEX:
        return read_pipeline_folder(path.parent)
    reader = _READERS.get(path.suffix.lower())
    if path.suffix.lower() in PICKLES:
        raise pickle_error(path)
    if path.name.endswith(_INDEX_ENDING):
        reader = _read_safetensors
    return read_config_file(path) if reader is None else reader(path)


def read_model_config(path: Path) -> Mapping[str, object]:
    """Return the raw configuration of the network in a file or folder, read or inferred from the weights' headers.

    Raises:
        ModelFileError: If it cannot be read or does not identify the network.
    """
    if os.path.isdir(path):
        weights = None if os.path.lexists(path / _CONFIG) else _weights_path(path)
        return read_config_fields(path) if weights is None else read_model_config(weights)
    ending = path.suffix.lower()
    if ending in PICKLES:
        raise pickle_error(path)
    if ending == ".gguf":
        return read_gguf_config(path)
    if ending != ".safetensors" and not path.name.endswith(_INDEX_ENDING):
        return read_config_fields(path)
    config = path.with_name(_CONFIG)
    return read_config_fields(config) if os.path.isfile(config) else infer_config(read_checkpoint(path).tensors, path)


def pickle_error(path: Path | str) -> ModelFileError:
    """Return the error for a pickle file, which is refused because opening it can run code."""
    return ModelFileError(
        path,
        "is a pickle, which could run arbitrary code and is never opened",
        "Convert it with safetensors.torch.save_file, or choose the model's config.json. The trace needs no weights: "
        f"for the module that they are for, use {TRACE_INSTRUCTIONS}.",
    )


def _read_safetensors(path: Path) -> Architecture:
    checkpoint = read_checkpoint(path)
    config = path.with_name(_CONFIG)
    if os.path.isfile(config):
        return with_stored_sizes(read_config_file(config), checkpoint.tensors, checkpoint.notes)
    made = read_config(infer_config(checkpoint.tensors, path), str(path))
    return with_stored_sizes(made, checkpoint.tensors, (*checkpoint.notes, INFERRED_CONFIG_NOTE))


def _read_folder(folder: Path) -> Architecture:
    if os.path.lexists(folder / ADAPTER_FILE) and not os.path.lexists(folder / _CONFIG):
        base = read_adapter(folder).base or "an unnamed model"
        raise ModelFileError(
            folder,
            f"contains a LoRA adapter of {base[:200]}",
            "Choose its base model, or estimate its training: gpu-planner fit FOLDER.",
        )
    if os.path.lexists(folder / MODEL_INDEX):
        return read_pipeline_folder(folder)
    weights = _weights_path(folder)
    if weights is not None:
        return read_model_file(weights)
    if os.path.lexists(folder / _CONFIG):
        return read_config_file(folder)
    pickles = [name for name in _file_names(folder) if name.lower().endswith(PICKLES)]
    if pickles:
        raise pickle_error(folder / pickles[0])
    raise ModelFileError(
        folder, "is a folder without a config.json or weights", "Choose the folder of a model, or its config.json."
    )


def _weights_path(folder: Path) -> Path | None:
    for name in (INDEX, SINGLE):
        if os.path.lexists(folder / name):
            return folder / name
    names = _file_names(folder)
    for suffix in WEIGHTS:
        found = [folder / name for name in names if name.lower().endswith(suffix)]
        models = {numbered_parts(path) for path in found}
        if len(models) == 1:
            return found[0]
        if models and not (suffix == ".safetensors" and _CONFIG in names):
            listed = ", ".join(sorted(path.name for path in found)[:3])
            raise ModelFileError(folder, f"holds {len(models)} models: {listed}, …", "Choose one of the files.")
    return None


def _file_names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for _, entry in zip(range(_MAX_LISTED), entries, strict=False))
    except OSError as error:
        raise ModelFileError(folder, f"cannot be read ({error.strerror})", "Check the folder's permissions.") from error


_READERS: Final[Mapping[str, Callable[[Path], Architecture]]] = {
    ".safetensors": _read_safetensors,
    ".gguf": read_gguf_model,
}


_LAYER: Final = re.compile(r"model\.layers\.(\d{1,5})\.(.+)")
_PLAIN: Final = ("BF16", "F16", "F32")
_USUAL_HEAD_DIMS: Final = (128, 64)
_NEEDED: Final = (
    "input_layernorm.weight",
    "post_attention_layernorm.weight",
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
)
_QKV_BIASES: Final = tuple(f"self_attn.{name}_proj.bias" for name in "qkv")
_QK_NORMS: Final = ("self_attn.q_norm.weight", "self_attn.k_norm.weight")
# Tensors in the layers of each family beyond those that all families have.
_FAMILIES: Final = {frozenset[str](): "llama", frozenset(_QKV_BIASES): "qwen2", frozenset(_QK_NORMS): "qwen3"}
_HINT: Final = "Put the model's config.json beside it, or choose the folder that holds both."


INFERRED_CONFIG_NOTE: Final = (
    "without a config.json, the network is inferred from its tensors, which do not state the head dimension, the "
    "maximum context length or attention windows"
)


def infer_config(tensors: tuple[FileTensor, ...], path: Path) -> dict[str, object]:
    """Infer the configuration of a Llama, Qwen2 or Qwen3 from the names and shapes of its tensors.

    Raises:
        ModelFileError: If it is another network, or quantized.
    """
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    if not all(tensor.format in _PLAIN for tensor in tensors):
        _raise_file_error(path, "is quantized, and its tensors do not identify the scheme")
    layers, layer_shapes = _layer_shapes(shapes, path)
    vocabulary, hidden = _matrix_shape(shapes.get("model.embed_tokens.weight"), path)
    mlp_width = {name: _matrix_shape(layer_shapes[name], path) for name in _NEEDED if name.endswith("proj.weight")}
    queries, keys = mlp_width["self_attn.q_proj.weight"][0], mlp_width["self_attn.k_proj.weight"][0]
    head_dim = _infer_head_dim(layer_shapes, queries, keys, path)
    return {
        "model_type": _FAMILIES[frozenset(layer_shapes) - frozenset(_NEEDED)],
        "hidden_size": hidden,
        "intermediate_size": mlp_width["mlp.gate_proj.weight"][0],
        "num_hidden_layers": layers,
        "num_attention_heads": queries // head_dim,
        "num_key_value_heads": keys // head_dim,
        "head_dim": head_dim,
        "vocab_size": vocabulary,
        "tie_word_embeddings": "lm_head.weight" not in shapes,
    }


def _layer_shapes(shapes: Mapping[str, tuple[int, ...]], path: Path) -> tuple[int, dict[str, tuple[int, ...]]]:
    """Return the number of layers and the tensor shapes in one layer, which must be equal in all layers."""
    layers: dict[int, dict[str, tuple[int, ...]]] = {}
    for name, shape in shapes.items():
        match = _LAYER.fullmatch(name)
        if match is not None:
            layers.setdefault(int(match[1]), {})[match[2]] = shape
    first = layers.get(0, {})
    alike = all(layer == first for layer in layers.values()) and sorted(layers) == list(range(len(layers)))
    extra = frozenset(first) - frozenset(_NEEDED)
    if not alike or not frozenset(_NEEDED) <= frozenset(first) or extra not in _FAMILIES:
        _raise_file_error(path, "has tensor names that do not identify the network")
    return len(layers), first


def _infer_head_dim(inside: Mapping[str, tuple[int, ...]], queries: int, keys: int, path: Path) -> int:
    """Return the head dimension inferred from query and key norms, or from the numbers of query and key channels."""
    norm = inside.get(_QK_NORMS[0])
    candidates = _USUAL_HEAD_DIMS if norm is None else norm
    matching_sizes = next(
        (size for size in candidates if size and queries % size == 0 and keys % size == 0 and keys), None
    )
    if matching_sizes is None:
        _raise_file_error(path, f"has {queries} query and {keys} key channels, which no common head dimension divides")
    return matching_sizes


def _matrix_shape(shape: tuple[int, ...] | None, path: Path) -> tuple[int, int]:
    if shape is None or len(shape) != 2:
        _raise_file_error(path, "has no token embedding and projections with the names and shapes of a Llama or Qwen")
    return shape[0], shape[1]


def _raise_file_error(path: Path, reason: str) -> NoReturn:
    raise ModelFileError(path, reason, _HINT)
