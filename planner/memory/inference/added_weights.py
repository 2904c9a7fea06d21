"""Memory of LoRA adapters that an engine serves: slots of the highest rank, on all layers that may have an adapter."""

from functools import lru_cache
from typing import Final

from planner.memory.result import Term
from planner.memory.terms import library_symbol, model_symbol, workload_symbol
from planner.memory.terms import term as memory_term
from planner.models.architecture import VOCABULARY_NAMES, Architecture, Tensor
from planner.workload.workload import Inference

_FUSED: Final = "gate_up"


def served_adapters_term(
    architecture: Architecture, workload: Inference, rank: int, element_bytes: int, source: str, *, embeds: bool = False
) -> Term | None:
    """Return the memory of the adapters that `workload` serves, reserved for `rank`; None if it serves none.

    With `embeds`, embedding and output head may have adapters, too, whose rows are not divided over cards.

    **Formula**: n · r · w · Σ over the matrices (inputs + outputs); gate and up projection in one have two inputs.
    """
    own = workload.adapters
    if not own.slots:
        return None
    width = _adapted_width(architecture, own.targets)
    if embeds:
        width += _vocabulary_width(architecture, own.targets)
    return memory_term(
        "adapters",
        own.slots * rank * width * element_bytes,
        "n × r × D × w",
        (
            workload_symbol("n", own.slots, "adapters on the card at once"),
            library_symbol("r", rank, "rank that is reserved for each"),
            model_symbol("D", width, "inputs and outputs of all matrices with an adapter"),
            library_symbol("w", element_bytes, "bytes per element"),
        ),
        source,
    )


@lru_cache(maxsize=128)
def _adapted_width(architecture: Architecture, targets: str | tuple[str, ...]) -> int:
    return sum(
        group.count * tensor.copies * (tensor.shape[0] + tensor.shape[1] * (2 if _FUSED in tensor.name else 1))
        for group in architecture.main.groups
        for tensor in group.layer.tensors
        if len(tensor.shape) > 1 and tensor.role in ("linear", "expert") and _is_target(tensor, targets)
    )


def _is_target(tensor: Tensor, targets: str | tuple[str, ...]) -> bool:
    return targets == "all-linear" or tensor.name.removesuffix(".weight").rpartition(".")[2] in targets


def _vocabulary_width(architecture: Architecture, targets: str | tuple[str, ...]) -> int:
    """Return inputs and outputs of embedding and output head, each with all rows of the vocabulary."""
    rows = (architecture.vocabulary or 0) * architecture.tensor_cards + architecture.hidden
    return sum(rows for name in VOCABULARY_NAMES if targets == "all-linear" or name in targets)
