"""What feed-forward blocks keep for the backward pass: one block for all tokens, or routed experts."""

from typing import Final, NamedTuple

from planner.memory.precision import Precision
from planner.models.architecture import Activation, Mlp, Moe

STATISTIC: Final = 4
"""Bytes of one fp32 statistic: a mean, a reciprocal deviation, a log-sum-exp."""


class _ActivationTensors(NamedTuple):
    """Tensors of the intermediate width that an activation function and the product after it keep.

    `fp32` of them are in fp32 under autocast, which computes powers there (`pow` is in CUDA's list, not in the CPU's).
    """

    tensors: int
    fp32: int = 0


KEPT_BY_ACTIVATION: Final[dict[Activation, _ActivationTensors]] = {
    "silu": _ActivationTensors(2),
    "gelu": _ActivationTensors(2),
    "gelu-tanh": _ActivationTensors(2),
    "gelu-new": _ActivationTensors(5, fp32=3),
    "gelu-bloom": _ActivationTensors(2),
    "quick-gelu": _ActivationTensors(3),
    "relu": _ActivationTensors(1),
    "relu2": _ActivationTensors(2, fp32=1),
    "clamped-swiglu": _ActivationTensors(5),
}


def keeps_result(activation: Activation, *, gated: bool) -> bool:
    """Return whether an activation keeps what it puts out; where that is dropped, what is left is kept beside it."""
    return activation == "relu" and not gated


def feed_forward_bytes(block: Mlp | Moe | None, hidden: int, precision: Precision) -> int:
    """Count a feed-forward block. Routed experts run in the stream's format: grouped_mm knows no autocast."""
    if block is None:
        return 0
    size = precision.compute_bytes
    if isinstance(block, Mlp):
        dropped = size if keeps_result(block.activation, gated=block.gated) and block.dropout else 0
        return block.intermediate * (_kept(block.gated, block.activation, precision) + dropped)
    gate = size * hidden if block.shared_gate else 0
    shared = block.shared_intermediate * _kept(True, block.activation, precision) + gate
    return _experts(block, hidden, precision) + shared + _router(block, hidden, precision)


def freed_before_experts(block: Moe, hidden: int, precision: Precision) -> int:
    """Return the bytes per token of a shared expert that runs after the routed ones: its backward pass comes first.

    **Source**: transformers' DeepSeek. One whose output is weighted runs before them (Qwen2).
    """
    if not block.shared_intermediate or block.shared_gate:
        return 0
    read = precision.compute_bytes * hidden * (2 if precision.autocast else 1)
    return read + block.shared_intermediate * _kept(True, block.activation, precision)


def _experts(block: Moe, hidden: int, precision: Precision) -> int:
    """Count the experts' input and output (where all compute all tokens: the input and its weighted copy)."""
    wide = 2 * hidden + block.intermediate * ((2 if block.gated else 0) + KEPT_BY_ACTIVATION[block.activation].tensors)
    if not (block.every_expert and precision.autocast):
        return block.visits * precision.residual_bytes * wide
    read = (precision.residual_bytes + precision.compute_bytes) * hidden
    inner = block.intermediate * _kept(block.gated, block.activation, precision)
    return block.visits * (read + inner)


def _router(block: Moe, hidden: int, precision: Precision) -> int:
    copied = 4 * hidden if block.fp32_router and precision.residual_bytes < 4 else 0
    return copied + STATISTIC * block.experts


def _kept(gated: bool, activation: Activation, precision: Precision) -> int:
    """Return the bytes per element of the intermediate width; a gate adds itself and the product.

    A gate is multiplied with the activation as it is, in fp32 too.
    """
    kept = KEPT_BY_ACTIVATION[activation]
    in_fp32 = kept.fp32 + (1 if gated and kept.fp32 else 0)
    wider = in_fp32 * (4 - precision.compute_bytes) if precision.autocast else 0
    return precision.compute_bytes * (kept.tensors + (2 if gated else 0)) + wider
