"""A plain decoder from the names and shapes of its tensors, where no configuration says what it is."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from planner.errors import ModelFileError
from planner.models.readers.checkpoint.safetensors import FileTensor

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
# What each family has in its layers beyond what all have.
_FAMILIES: Final = {frozenset[str](): "llama", frozenset(_QKV_BIASES): "qwen2", frozenset(_QK_NORMS): "qwen3"}
_HINT: Final = "Put the model's config.json beside it, or choose the folder that holds both."


NAMES_NOTE: Final = (
    "without a config.json the network follows from its tensors; the width of a head, the longest context and windows "
    "of attention are not among them"
)


def config_of_names(tensors: tuple[FileTensor, ...], path: Path) -> dict[str, object]:
    """Return the configuration of a network whose tensors have these names, if it is a Llama, Qwen2 or Qwen3.

    Raises:
        ModelFileError: If they are not, or are quantised.
    """
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    if not all(tensor.format in _PLAIN for tensor in tensors):
        _fail(path, "is quantised, and its tensors alone do not say how")
    layers, inside = _layers(shapes, path)
    vocabulary, hidden = _matrix(shapes.get("model.embed_tokens.weight"), path)
    inner = {name: _matrix(inside[name], path) for name in _NEEDED if name.endswith("proj.weight")}
    queries, keys = inner["self_attn.q_proj.weight"][0], inner["self_attn.k_proj.weight"][0]
    head_dim = _head_dim(inside, queries, keys, path)
    return {
        "model_type": _FAMILIES[frozenset(inside) - frozenset(_NEEDED)],
        "hidden_size": hidden,
        "intermediate_size": inner["mlp.gate_proj.weight"][0],
        "num_hidden_layers": layers,
        "num_attention_heads": queries // head_dim,
        "num_key_value_heads": keys // head_dim,
        "head_dim": head_dim,
        "vocab_size": vocabulary,
        "tie_word_embeddings": "lm_head.weight" not in shapes,
    }


def _layers(shapes: Mapping[str, tuple[int, ...]], path: Path) -> tuple[int, dict[str, tuple[int, ...]]]:
    """Return the number of layers and the shapes inside one, which must be those of all."""
    layers: dict[int, dict[str, tuple[int, ...]]] = {}
    for name, shape in shapes.items():
        match = _LAYER.fullmatch(name)
        if match is not None:
            layers.setdefault(int(match[1]), {})[match[2]] = shape
    first = layers.get(0, {})
    alike = all(layer == first for layer in layers.values()) and sorted(layers) == list(range(len(layers)))
    extra = frozenset(first) - frozenset(_NEEDED)
    if not alike or not frozenset(_NEEDED) <= frozenset(first) or extra not in _FAMILIES:
        _fail(path, "has tensors of a network that cannot be told from their names alone")
    return len(layers), first


def _head_dim(inside: Mapping[str, tuple[int, ...]], queries: int, keys: int, path: Path) -> int:
    norm = inside.get(_QK_NORMS[0])
    candidates = _USUAL_HEAD_DIMS if norm is None else norm
    found = next((size for size in candidates if size and queries % size == 0 and keys % size == 0 and keys), None)
    if found is None:
        _fail(path, f"has {queries} query and {keys} key channels, which heads of no usual width divide")
    return found


def _matrix(shape: tuple[int, ...] | None, path: Path) -> tuple[int, int]:
    if shape is None or len(shape) != 2:
        _fail(path, "has no token embedding and projections of the usual names and shapes")
    return shape[0], shape[1]


def _fail(path: Path, reason: str) -> NoReturn:
    raise ModelFileError(path, reason, _HINT)
