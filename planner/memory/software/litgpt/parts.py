"""The trained parts of a network in LitGPT: all parameters, or adapters of the parts named by its options."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.errors import SpecError
from planner.memory.logits import output_width
from planner.models.architecture import Architecture, Attention, Layer, Mlp, Tensor
from planner.workload.training import Lora, Training

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
    """Adapted parts of a network, with the adapters' rank and whether they use dropout."""

    names: frozenset[str]
    rank: int
    dropout: bool

    @property
    def merged(self) -> int:
        """Return how many of queries, keys and values are adapted; one merged layer computes all three."""
        return sum(name in self.names for name in ("query", "key", "value"))


def adapted_parts(lora: Lora) -> AdaptedParts:
    """Return the parts that `lora` adapts, by LitGPT's names or those of transformers.

    Raises:
        SpecError: If LitGPT has no option for one of the targets, or for DoRA.
    """
    if lora.dora:
        raise SpecError("lora.dora", "LitGPT has no DoRA", "Choose the profile hf.")
    if isinstance(lora.targets, str):
        return AdaptedParts(_ALL_LINEAR, lora.rank, lora.dropout > 0)
    for target in lora.targets:
        if target not in _PART_NAMES:
            known = "query, key, value, projection, mlp, head"
            raise SpecError("lora.targets", f"LitGPT has no adapter option for {target!r}", f"Available: {known}.")
    return AdaptedParts(frozenset(_PART_NAMES[target] for target in lora.targets), lora.rank, lora.dropout > 0)


def check_supported(architecture: Architecture, workload: Training) -> None:
    """Raise an error if LitGPT, or this estimate of LitGPT, does not support training `architecture` this way.

    Raises:
        SpecError: If the network is no decoder of attention and plain or gated blocks, or if checkpoints, 8 bits, eager
            attention, another loss or parameters by pattern are requested.
    """
    hint = "Choose the profile hf."
    layers = [group.layer for stack in architecture.stacks for group in stack.groups]
    plain = all(isinstance(layer.mixer, Attention) and isinstance(layer.feed_forward, Mlp) for layer in layers)
    if architecture.kind != "decoder" or len(architecture.stacks) != 1 or not plain:
        raise SpecError("profile", "LitGPT is supported only for decoders of attention and dense blocks", hint)
    if workload.trainable:
        raise SpecError("trainable", "LitGPT trains all parameters or adapters", hint)
    if workload.activation_checkpointing != "none":
        raise SpecError("activation_checkpointing", "LitGPT has no checkpoints on one card", hint)
    if workload.attention == "eager":
        raise SpecError("attention", "LitGPT calls scaled_dot_product_attention", "Choose sdpa.")
    if workload.loss != "chunked":
        raise SpecError("loss", "LitGPT computes its loss in chunks", "Leave it unset or choose chunked.")
    if workload.weights == "int8":
        raise SpecError("weights", "LitGPT in 8 bits is not supported", hint)


@lru_cache(maxsize=256)
def litgpt_adapters(architecture: Architecture, parts: AdaptedParts) -> tuple[tuple[Tensor, int], ...]:
    """Return the adapter tensors, each with its number of copies.

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
    """Return the output width of the adapters of queries, keys and values."""
    widths = {"query": mixer.q_dim, "key": mixer.kv_dim, "value": mixer.kv_dim}
    return sum(width for name, width in widths.items() if name in parts.names)


def _block_adapters(layer: Layer, hidden: int, parts: AdaptedParts) -> tuple[Tensor, ...]:
    """Return the adapters of one block."""
    mixer, block, rank = layer.mixer, layer.feed_forward, parts.rank
    adapters: tuple[Tensor, ...] = ()
    if isinstance(mixer, Attention) and parts.merged:
        adapters += (
            Tensor(name="qkv.lora_A", shape=(parts.merged * rank, hidden), role="linear"),
            Tensor(name="qkv.lora_B", shape=(merged_width(mixer, parts), rank), role="linear"),
        )
    if isinstance(mixer, Attention) and "projection" in parts.names:
        adapters += _adapter_pair("projection", (hidden, mixer.q_dim), rank)
    if isinstance(block, Mlp) and "mlp" in parts.names:
        adapters += _adapter_pair("fc", (block.intermediate, hidden), rank) * (2 if block.gated else 1)
        adapters += _adapter_pair("proj", (hidden, block.intermediate), rank)
    return adapters


def _adapter_pair(name: str, shape: tuple[int, int], rank: int) -> tuple[Tensor, Tensor]:
    outside, inside = shape
    return (
        Tensor(name=f"{name}.lora_A", shape=(rank, inside), role="linear"),
        Tensor(name=f"{name}.lora_B", shape=(outside, rank), role="linear"),
    )
