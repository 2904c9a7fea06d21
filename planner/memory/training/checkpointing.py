"""Activation checkpointing: the outputs that a layer saves if only some of its operations are recomputed.

Selective checkpointing has two meanings. PyTorch's policy selects operators: it saves the outputs of products and
attention, every second plain product excepted. Megatron-LM's recomputes the core of attention and saves the rest.
"""

from typing import Final, NamedTuple

from planner.errors import SpecError
from planner.memory.kernels import attention_kernel
from planner.memory.training.adapters.settings import LayerSettings
from planner.memory.training.adapters.trained import LayerTuning, Status
from planner.memory.training.autograd.layer import INDEX, STATISTIC, mixer_output_width
from planner.memory.training.saved import SavedPerToken
from planner.models.architecture import Attention, LatentAttention, Layer, Mixer, Moe, StateMixer, Tensor
from planner.workload.choices import Checkpointing

OPERATORS: Final = (
    "torchtitan distributed/activation_checkpoint.py (b5bcd76, 2026-08), SelectiveAC: the outputs of "
    "mm, every second one aside, addmm, bmm, scaled_dot_product_attention and topk; torch.utils.checkpoint"
)
CORE_ATTENTION: Final = (
    "Megatron-LM core/transformer/attention.py, _checkpointed_attention_forward: "
    "--recompute-granularity selective, --recompute-modules core_attn"
)
_PRODUCTS: Final = ("linear", "router")


class Checkpoints(NamedTuple):
    """Activation checkpointing: none, or groups of `every` layers that save only the group's input.

    Selective checkpoints also save the outputs of matrix products and attention. With `core_attention` only the inside
    of attention is recomputed.
    """

    kind: Checkpointing
    every: int = 1
    offloaded: bool = False
    core_attention: bool = False


class SavedOutputs(NamedTuple):
    """Bytes of operator outputs saved by selective checkpointing: per token, and per query-key pair."""

    per_token: int
    per_pair: int

    def total(self, sequences: int, tokens: int) -> int:
        """Return the saved bytes for `sequences` sequences of `tokens` tokens each."""
        return sequences * tokens * (self.per_token + tokens * self.per_pair)


def saved_outputs(
    layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, masked: bool
) -> SavedOutputs:
    """Return the operator outputs of one layer that PyTorch's selective checkpointing saves, besides its input.

    **Formula**: w × (the widths of all products with a bias, and of the first, third, … without one) + w · q + 4 · a of
    fused attention; of eager attention w · a for each pair of positions; where every expert computes every token, the
    batched products, too. An adapter adds two products after that of its layer.

    **Source**: `OPERATORS`; `torch._functorch.partitioners.get_default_op_list().compute_intensive_ops`.

    **Assumes** that products run in the order of the layer's tensors. Grouped products of routed experts, convolutions
    and the flash-attn library's kernels are in no list, and are recomputed.
    """
    if isinstance(layer.mixer, StateMixer) or isinstance(layer.second_mixer, StateMixer):
        reason = "selective activation checkpointing of state-space layers cannot be estimated"
        raise SpecError("activation_checkpointing", reason, "Choose full or no activation checkpointing.")
    size = settings.formats.computed
    per_token = size * _saved_product_width(layer, tuning, settings) + _expert_output_bytes(
        layer.feed_forward, hidden, size
    )
    per_pair = 0
    for mixer in (layer.mixer, layer.cross_attention):
        own, of_pairs = _attention_output_bytes(mixer, settings, masked)
        per_token, per_pair = per_token + own, per_pair + of_pairs
    return SavedOutputs(per_token // layer.stream_shards, per_pair)


def without_core_attention(ledger: SavedPerToken, layer: Layer, settings: LayerSettings, masked: bool) -> SavedPerToken:
    """Return `ledger`, the saved activations of a layer, without what Megatron recomputes in attention.

    **Source**: `CORE_ATTENTION`: queries, keys and values are the inputs of what is recomputed, and
    attention's output is that of the projection after it.
    """
    statistics = 0
    for mixer in (layer.mixer, layer.cross_attention):
        if _kernel_name(mixer, settings, masked) == "fused" and isinstance(mixer, Attention | LatentAttention):
            statistics += STATISTIC * mixer.heads
    return ledger._replace(scores=0, source_scores=0, bias=0, attention=ledger.attention - statistics)


def _saved_product_width(layer: Layer, tuning: LayerTuning, settings: LayerSettings) -> int:
    """Return the elements per token of matrix products' outputs that selective checkpointing saves."""
    biases = {tensor.name: tensor.size for tensor in layer.tensors if tensor.role == "bias"}
    rank = settings.adapters.rank if settings.adapters else 0
    width = number = 0
    for tensor, status in _matrices_in_order(layer, tuning):
        bias = biases.get(f"{tensor.name.removesuffix('weight')}bias")
        out = tensor.shape[0] if bias is None else bias
        if bias is not None:
            width += out
        elif settings.formats.base != "int8":
            number += 1
            width += out * (number % 2)
        for made in (rank, out) if status == "adapted" else ():
            number += 1
            width += made * (number % 2)
    return width


def _matrices_in_order(layer: Layer, tuning: LayerTuning) -> list[tuple[Tensor, Status]]:
    """Return the weight matrices of `layer` with their status, in the order in which they are multiplied.

    **Source**: transformers 5.23 `Qwen2MoeSparseMoeBlock.forward`.
    """
    block = layer.feed_forward
    found = [
        (tensor, status)
        for tensor, status in zip(layer.tensors, tuning.statuses, strict=True)
        if tensor.role in _PRODUCTS and len(tensor.shape) == 2
    ]
    if isinstance(block, Moe) and block.shared_gate:
        found.sort(key=lambda item: item[0].role == "router")
    return found


def _expert_output_bytes(block: object, hidden: int, element_bytes: int) -> int:
    """Return the bytes per token saved by experts: routed indices and weights, outputs of batched products."""
    if not isinstance(block, Moe):
        return 0
    chosen = (STATISTIC + INDEX) * block.top_k
    if not block.every_expert:
        return chosen
    return chosen + element_bytes * block.visits * (block.intermediate * (2 if block.gated else 1) + hidden)


def _attention_output_bytes(mixer: Mixer | None, settings: LayerSettings, masked: bool) -> tuple[int, int]:
    """Return the bytes that attention's saved output takes per token, and per query-key pair."""
    if not isinstance(mixer, Attention | LatentAttention):
        return 0, 0
    kernel, size = _kernel_name(mixer, settings, masked), settings.formats.computed
    width = mixer_output_width(mixer)
    if kernel == "fused":
        return (0 if settings.attention == "flash" else size * width + STATISTIC * mixer.heads), 0
    if kernel == "math":
        return 4 * width, 4 * mixer.heads
    if isinstance(mixer, Attention) and mixer.returns_scores and mixer.heads_first:
        # BLOOM's product adds the biases itself (baddbmm), which is in no list.
        return size * width, 0
    in_fp32 = isinstance(mixer, Attention) and mixer.fp32_scores and not settings.formats.autocast
    return size * width, (4 if in_fp32 else size) * mixer.heads


def _kernel_name(mixer: Mixer | None, settings: LayerSettings, masked: bool) -> str:
    """Return the kernel that computes a mixer: fused, math or eager; `none` for mixers without attention."""
    if not isinstance(mixer, Attention | LatentAttention):
        return "none"
    return attention_kernel(mixer, settings.formats.precision, settings.attention, masked)
