"""What optimizers keep between steps."""

from functools import lru_cache

from planner.memory.precision import Precision
from planner.memory.result import Part, Term
from planner.memory.tensors import placed_tensors
from planner.memory.terms import library, model, number_format, term
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.optimizers import Optimizer

_TORCH_SOURCE = "torch.optim: state tensors are made with zeros_like(parameter)"
_BNB_SOURCE = "bitsandbytes optim/optimizer.py: block-wise 8-bit states, min_8bit_size 4096, blocks of 256"
_TRAINER_SOURCE = "transformers Trainer registers every nn.Embedding for 32-bit states under 8-bit Adam"
_SMALL_TENSOR = 4096
_BLOCK = 256


@lru_cache(maxsize=256)
def optimizer_term(architecture: Architecture, optimizer: Optimizer, precision: Precision) -> Term | None:
    """Return the memory of the optimizer's state, or none for plain SGD, which has none.

    **Formula**: momentum P · w; AdamW 2 · P · w; 8-bit AdamW 2 · (1 + 4/256) for tensors of at least 4,096 elements,
    8 bytes for smaller ones and for embeddings.
    """
    if optimizer == "sgd":
        return None
    if optimizer == "adamw-8bit":
        return _adamw_8bit(architecture)
    states = 1 if optimizer == "sgd-momentum" else 2
    kept = "momentum" if states == 1 else "first and second moment"
    return term(
        "optimizer_states",
        states * architecture.parameters * precision.parameter_bytes,
        f"{states} × P × w" if states > 1 else "P × w",
        (
            model("P", architecture.parameters, "trained parameters"),
            number_format("w", precision.parameter_bytes, f"bytes per element of {kept}, as the parameters"),
        ),
        _TORCH_SOURCE,
    )


def _adamw_8bit(architecture: Architecture) -> Term:
    quantised, full = _split_8bit(architecture)
    count = architecture.parameters
    return term(
        "optimizer_states",
        quantised[1] + full[1],
        "Q × 2 × (1 + 4 / B) + (P − Q) × 8",
        (
            model("P", count, "trained parameters"),
            model("Q", quantised[0], "parameters in tensors of at least 4,096 elements, embeddings excepted"),
            library("B", _BLOCK, "elements that share one fp32 scale"),
        ),
        f"{_BNB_SOURCE}; {_TRAINER_SOURCE}",
        parts=(
            Part(name="8-bit moments", bytes=quantised[1], formula="Q × 2 × (1 + 4 / B)", source=_BNB_SOURCE),
            Part(
                name="32-bit moments of embeddings and small tensors",
                bytes=full[1],
                formula="(P − Q) × 8",
                source=_TRAINER_SOURCE,
            ),
        ),
    )


@lru_cache(maxsize=256)
def _split_8bit(architecture: Architecture) -> tuple[tuple[int, int], tuple[int, int]]:
    quantised = quantised_bytes = full = 0
    for tensor, count in placed_tensors(architecture):
        if tensor.size < _SMALL_TENSOR or tensor.role == "embedding":
            full += tensor.size * count
        else:
            quantised += tensor.size * count
            quantised_bytes += 2 * (tensor.size + 4 * ceil_div(tensor.size, _BLOCK)) * count
    return (quantised, quantised_bytes), (full, 8 * full)
