"""Parameters of a network in LitGPT: stored, unpacked by bitsandbytes, and trained whole or by adapters."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.errors import SpecError
from planner.memory.logits import output_width
from planner.memory.result import Symbol, Term, TermPart
from planner.memory.terms import format_symbol, measured_term, model_symbol, term
from planner.memory.weights import parameter_counts, placed_tensors
from planner.models.architecture import Architecture, Attention, Layer, Mlp, Tensor
from planner.workload.training import Lora, Training

_PLAIN_SOURCE: Final = "litgpt/model.py, GPT.__init__: lm_head and wte are separate tensors"
_QUANTISED_SOURCE: Final = "lightning/fabric BitsandbytesPrecision: every torch.nn.Linear becomes a Linear4bit"


@lru_cache(maxsize=256)
def litgpt_weights(architecture: Architecture, scheme_name: str, kept_bytes: int) -> Term:
    """Return the memory of the parameters in `scheme_name`; unquantized parameters take `kept_bytes` each.

    **Formula**: plain (P + V · h where tied) · w; quantized Q · q / 8 + (P − Q) · w, the head among Q.

    **Assumes** the vocabulary without LitGPT's padding to a multiple of 64 or 512.
    """
    untied = output_width(architecture) * architecture.hidden if architecture.tied_head else 0
    total = parameter_counts(architecture).total + untied
    count = model_symbol("P", total, "parameters, head and embedding counted separately")
    if SCHEMES[scheme_name].family == "plain":
        size = ELEMENT_BYTES[scheme_name]
        return term("weights", total * size, "P × w", (count, _parameter_bytes_symbol(size)), _PLAIN_SOURCE)
    quantized, stored = _linear_bytes(architecture, scheme_name, untied)
    kept = (total - quantized) * kept_bytes
    return term(
        "weights",
        stored + kept,
        "Q × q / 8 + (P − Q) × w",
        (
            count,
            model_symbol("Q", quantized, "parameters of linear layers, including the output head"),
            format_symbol("q", round(8 * stored / quantized, 4), f"bits per weight in {SCHEMES[scheme_name].title}"),
            _parameter_bytes_symbol(kept_bytes),
        ),
        _QUANTISED_SOURCE,
        parts=(
            TermPart(name="linear layers", bytes=stored, formula="Q × q / 8", source=SCHEMES[scheme_name].source),
            TermPart(
                name="unquantized embedding and norms", bytes=kept, formula="(P − Q) × w", source=_QUANTISED_SOURCE
            ),
        ),
    )


def _parameter_bytes_symbol(parameter_bytes: int) -> Symbol:
    """Return the formula symbol for the bytes of an unquantized parameter."""
    return format_symbol("w", parameter_bytes, "bytes per unquantized parameter")


def _linear_bytes(architecture: Architecture, scheme_name: str, untied: int) -> tuple[int, int]:
    """Return the number of elements in linear layers and head, and their bytes as `scheme_name`."""
    scheme = SCHEMES[scheme_name]
    linear = [(tensor, count) for tensor, count in placed_tensors(architecture) if tensor.role in ("linear", "head")]
    shapes = [(tensor.shape, count) for tensor, count in linear if len(tensor.shape) == 2]
    if untied:
        shapes.append(((output_width(architecture), architecture.hidden), 1))
    elements = sum(rows * columns * count for (rows, columns), count in shapes)
    return elements, sum(scheme.tensor_bytes(shape) * count for shape, count in shapes)


_HALF: Final = 2
_DEQUANTISED: Final = (
    "bitsandbytes 0.42 MatMul4Bit: dequantize_4bit(B).to(A.dtype); lightning/fabric _Linear4bit quantizes from fp16, "
    "so that bf16 takes a second copy"
)


def dequantized_term(elements: int, computed_bytes: int) -> Term:
    """Return the memory of a dequantized matrix of `elements` in fp16, and of its copy for products.

    **Formula**: n · (2 + w).
    """
    return measured_term(
        "temporaries",
        elements * (_HALF + computed_bytes),
        "n × (2 + w)",
        (
            model_symbol("n", elements, "elements of the largest multiplied matrix"),
            format_symbol("w", computed_bytes, "bytes per element of the copy, in the format of the other factor"),
        ),
        _DEQUANTISED,
    )


def head_size_elements(architecture: Architecture) -> int:
    """Return the number of elements in the output head's matrix."""
    return output_width(architecture) * architecture.hidden


def largest_matrix_elements(architecture: Architecture) -> int:
    """Return the elements of the largest weight matrix in any layer."""
    return max(
        tensor.size for group in architecture.main.groups for tensor in group.layer.tensors if tensor.role == "linear"
    )


_PART_NAMES: Final = {
    "query": "query",
    "q_proj": "query",
    "key": "key",
    "k_proj": "key",
    "value": "value",
    "v_proj": "value",
    "projection": "projection",
    "o_proj": "projection",
    "mlp": "mlp",
    "gate_proj": "mlp",
    "up_proj": "mlp",
    "down_proj": "mlp",
    "head": "head",
    "lm_head": "head",
}
_ALL_LINEAR: Final = frozenset({"query", "key", "value", "projection", "mlp"})


class AdaptedParts(NamedTuple):
    """Names of the parts of a block that have adapters, with the adapters' rank and dropout."""

    names: frozenset[str]
    rank: int
    dropout: bool

    @property
    def merged_adapter_count(self) -> int:
        """Return how many of queries, keys and values have adapters; one merged layer computes all three."""
        return sum(name in self.names for name in ("query", "key", "value"))


def adapted_parts(lora: Lora) -> AdaptedParts:
    """Return the parts that `lora` adapts; targets may have LitGPT's or transformers' names.

    Raises:
        SpecError: If LitGPT has no option for one of the targets, or for DoRA.
    """
    if lora.dora:
        raise SpecError("lora.dora", "LitGPT does not support DoRA", "Choose the profile hf.")
    if isinstance(lora.targets, str):
        return AdaptedParts(_ALL_LINEAR, lora.rank, lora.dropout > 0)
    for target in lora.targets:
        if target not in _PART_NAMES:
            known = "query, key, value, projection, mlp, head"
            raise SpecError("lora.targets", f"LitGPT has no adapter option for {target!r}", f"Available: {known}.")
    return AdaptedParts(frozenset(_PART_NAMES[target] for target in lora.targets), lora.rank, lora.dropout > 0)


def check_supported(architecture: Architecture, workload: Training) -> None:
    """Raise an error if LitGPT, or the estimate for LitGPT, does not support training `architecture` like this.

    Raises:
        SpecError: If the network is no decoder of attention and plain or gated blocks, or if checkpoints, 8 bits, eager
            attention, another loss or parameters by pattern are requested.
    """
    hint = "Choose the profile hf."
    if not has_plain_blocks(architecture):
        raise SpecError(
            "profile", "LitGPT estimates support only decoders with attention and dense feed-forward blocks", hint
        )
    if workload.trainable:
        raise SpecError("trainable", "LitGPT cannot train parameters by name, only all parameters or adapters", hint)
    if workload.activation_checkpointing != "none":
        raise SpecError("activation_checkpointing", "LitGPT has no activation checkpointing on one GPU", hint)
    if workload.attention == "eager":
        raise SpecError("attention", "LitGPT always calls scaled_dot_product_attention", "Choose sdpa.")
    if workload.loss != "chunked":
        raise SpecError("loss", "LitGPT always computes the loss in chunks", "Leave it unset or choose chunked.")
    if workload.weights == "int8":
        raise SpecError("weights", "LitGPT with 8-bit weights is not supported", hint)


def has_plain_blocks(architecture: Architecture) -> bool:
    """Return whether the network is a decoder whose layers are attention and a dense feed-forward block."""
    layers = [group.layer for stack in architecture.stacks for group in stack.groups]
    plain = all(isinstance(layer.mixer, Attention) and isinstance(layer.feed_forward, Mlp) for layer in layers)
    return architecture.kind == "decoder" and len(architecture.stacks) == 1 and plain


@lru_cache(maxsize=256)
def litgpt_adapters(architecture: Architecture, parts: AdaptedParts) -> tuple[tuple[Tensor, int], ...]:
    """Return the adapter tensors of the network, each with its number of copies.

    **Formula**: A (n · r × h) and B (widths of n × r) beside the merged layer of queries, keys and values, n of which
    are adapted; r · (in + out) beside each other one.

    **Source**: litgpt/lora.py, `LoRAQKVLinear.__init__` and `LoRALinear.__init__`.
    """
    adapters: list[tuple[Tensor, int]] = []
    for group in architecture.main.groups:
        adapters += [(tensor, group.count) for tensor in _block_adapters(group.layer, architecture.hidden, parts)]
    if "head" in parts.names:
        shape = (output_width(architecture), architecture.hidden)
        adapters += [(tensor, 1) for tensor in _adapter_pair("head", shape, parts.rank)]
    merged: dict[Tensor, int] = {}
    for tensor, count in adapters:
        merged[tensor] = merged.get(tensor, 0) + count
    return tuple(merged.items())


def merged_width(mixer: Attention, parts: AdaptedParts) -> int:
    """Return the summed output width of the adapters on queries, keys and values."""
    widths = {"query": mixer.q_dim, "key": mixer.kv_dim, "value": mixer.kv_dim}
    return sum(width for name, width in widths.items() if name in parts.names)


def _block_adapters(layer: Layer, hidden: int, parts: AdaptedParts) -> tuple[Tensor, ...]:
    """Return the adapter tensors of one block."""
    mixer, block, rank = layer.mixer, layer.feed_forward, parts.rank
    adapters: tuple[Tensor, ...] = ()
    if isinstance(mixer, Attention) and parts.merged_adapter_count:
        adapters += (
            Tensor(name="qkv.lora_A", shape=(parts.merged_adapter_count * rank, hidden), role="linear"),
            Tensor(name="qkv.lora_B", shape=(merged_width(mixer, parts), rank), role="linear"),
        )
    if isinstance(mixer, Attention) and "projection" in parts.names:
        adapters += _adapter_pair("projection", (hidden, mixer.q_dim), rank)
    if isinstance(block, Mlp) and "mlp" in parts.names:
        adapters += _adapter_pair("fc", (block.intermediate, hidden), rank) * (2 if block.gated else 1)
        adapters += _adapter_pair("proj", (hidden, block.intermediate), rank)
    return adapters


def _adapter_pair(name: str, shape: tuple[int, int], rank: int) -> tuple[Tensor, Tensor]:
    """Return the adapter's two tensors, A (rank × inputs) and B (outputs × rank)."""
    outside, inside = shape
    return (
        Tensor(name=f"{name}.lora_A", shape=(rank, inside), role="linear"),
        Tensor(name=f"{name}.lora_B", shape=(outside, rank), role="linear"),
    )
