"""Small safetensors and GGUF files, written byte by byte so that tests can write wrong ones too."""

import json
import struct
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

from planner.ggml import GGML_TYPES
from planner.models.readers.safetensors import BITS

Tensors = Mapping[str, tuple[str, Sequence[int]]]

_GGML = {kind.name: kind for kind in GGML_TYPES}

TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 512,
    "torch_dtype": "bfloat16",
}
"""A Llama small enough to write its files in full."""


def tiny_tensors(
    dtype: str = "BF16", layers: int = 2, heads: int = 64, keys: int = 32
) -> dict[str, tuple[str, list[int]]]:
    """Return every tensor of `TINY`, with more layers if asked."""
    shapes = {
        "input_layernorm": [64],
        "post_attention_layernorm": [64],
        "self_attn.q_proj": [heads, 64],
        "self_attn.k_proj": [keys, 64],
        "self_attn.v_proj": [keys, 64],
        "self_attn.o_proj": [64, heads],
        "mlp.gate_proj": [96, 64],
        "mlp.up_proj": [96, 64],
        "mlp.down_proj": [64, 96],
    }
    inside = {
        f"model.layers.{layer}.{name}.weight": (dtype, shape)
        for layer in range(layers)
        for name, shape in shapes.items()
    }
    around = {"model.embed_tokens.weight": [128, 64], "model.norm.weight": [64], "lm_head.weight": [128, 64]}
    return inside | {name: (dtype, shape) for name, shape in around.items()}


def tensor_bytes(tensors: Tensors) -> int:
    return sum(BITS[dtype] * prod(shape) // 8 for dtype, shape in tensors.values())


def safetensors_header(tensors: Tensors) -> dict[str, object]:
    header: dict[str, object] = {}
    at = 0
    for name, (dtype, shape) in tensors.items():
        end = at + BITS[dtype] * prod(shape) // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    return header


def safetensors_bytes(header: object, data: int = 0) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(data)


def write_safetensors(path: Path, tensors: Tensors) -> Path:
    path.write_bytes(safetensors_bytes(safetensors_header(tensors), tensor_bytes(tensors)))
    return path


def write_model(folder: Path, tensors: Tensors, config: Mapping[str, object] | None = None) -> Path:
    """Write a config.json (that of `TINY` unless given) and one safetensors file into `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(TINY if config is None else config))
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def write_shards(folder: Path, shards: Sequence[Tensors], index: Mapping[str, object] | None = None) -> Path:
    """Write numbered shards and their index, and return the index."""
    folder.mkdir(exist_ok=True)
    weight_map = {}
    for number, tensors in enumerate(shards, start=1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        write_safetensors(folder / name, tensors)
        weight_map |= dict.fromkeys(tensors, name)
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps(index or {"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return path


class Typed:
    """A GGUF value of a stated type, for those that Python's types do not tell."""

    def __init__(self, kind: int, data: bytes) -> None:
        self.kind, self.data = kind, data


def u64(number: int) -> Typed:
    return Typed(10, struct.pack("<Q", number))


def array(kind: int, count: int, data: bytes) -> Typed:
    return Typed(9, struct.pack("<IQ", kind, count) + data)


def gguf_string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def _value(value: object) -> bytes:
    match value:
        case Typed():
            return struct.pack("<I", value.kind) + value.data
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + gguf_string(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(gguf_string, value))
        case [int(), *_]:
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    raise TypeError(value)


def gguf_bytes(
    metadata: Mapping[str | bytes, object],
    tensors: Tensors,
    *,
    version: int = 3,
    counts: tuple[int, int] | None = None,
    offsets: Mapping[str, int] | None = None,
    data: int | None = None,
) -> bytes:
    """Return a GGUF file; shapes begin with the extent that lies together. What is stated may differ from what is."""
    alignment = metadata.get("general.alignment", 32)
    step = alignment if isinstance(alignment, int) and alignment > 0 else 32
    tensor_count, key_count = counts or (len(tensors), len(metadata))
    head = b"GGUF" + struct.pack("<IQQ", version, tensor_count, key_count)
    head += b"".join(gguf_string(key) + _value(value) for key, value in metadata.items())
    at = end = 0
    for name, (kind, shape) in tensors.items():
        offset = (offsets or {}).get(name, at)
        number = _GGML[kind].number if kind in _GGML else int(kind)
        head += (
            gguf_string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", number, offset)
        )
        block = _GGML.get(kind, _GGML["F32"])
        end = at + prod(shape) // block.block_elements * block.block_bytes
        at = -(-end // step) * step
    padding = -len(head) % step if tensors else 0
    return head + bytes(padding) + bytes(end if data is None else data)


def tiny_gguf(layers: int = 2, kind: str = "Q8_0") -> tuple[dict[str, object], dict[str, tuple[str, list[int]]]]:
    """Return the metadata and tensors of `TINY` as llama.cpp's converter writes them."""
    metadata: dict[str, object] = {
        "general.architecture": "llama",
        "general.file_type": 7,
        "llama.block_count": 2,
        "llama.context_length": 512,
        "llama.embedding_length": 64,
        "llama.feed_forward_length": 96,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "tokenizer.ggml.tokens": [f"t{number}" for number in range(128)],
    }
    shapes = {
        "attn_norm": ("F32", [64]),
        "ffn_norm": ("F32", [64]),
        "attn_q": (kind, [64, 64]),
        "attn_k": (kind, [64, 32]),
        "attn_v": (kind, [64, 32]),
        "attn_output": (kind, [64, 64]),
        "ffn_gate": (kind, [64, 96]),
        "ffn_up": (kind, [64, 96]),
        "ffn_down": (kind, [96, 64]),
    }
    inside = {f"blk.{layer}.{name}.weight": what for layer in range(layers) for name, what in shapes.items()}
    around = {
        "token_embd.weight": (kind, [64, 128]),
        "output_norm.weight": ("F32", [64]),
        "output.weight": (kind, [64, 128]),
    }
    return metadata, around | inside


def write_gguf(path: Path, layers: int = 2) -> Path:
    path.write_bytes(gguf_bytes(*tiny_gguf(layers)))
    return path
