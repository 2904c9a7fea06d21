"""Adapters beside the network's linear layers: what they hold, and what they work with."""

from functools import lru_cache
from typing import Final

from planner.memory.result import Term
from planner.memory.terms import checked, model, number_format, term
from planner.memory.training.optimizer_states import Trained, parameters_in
from planner.models.architecture import Architecture, Tensor
from planner.workload.training import Lora

_SOURCE: Final = "peft.tuners.lora: A (r × in) and B (out × r) beside each linear layer, in fp32 unless told otherwise"
_DORA_SOURCE: Final = "peft.tuners.lora.dora.DoraLinearLayer.forward: the norm of W + B · A, row by row"


@lru_cache(maxsize=256)
def adapters_term(adapters: Trained, lora: Lora, parameter_bytes: int) -> Term:
    """Return the memory of the adapters' parameters.

    **Formula**: Σ r · (in + out) · w over the adapted layers; DoRA adds out · w each.
    """
    count = parameters_in(adapters)
    pairs = sum(number for tensor, number in adapters if tensor.name.endswith(".lora_A"))
    return term(
        "adapters",
        count * parameter_bytes,
        "P_a × w",
        (
            model("P_a", count, f"parameters of the adapters of {pairs:,} linear layers, rank {lora.rank}"),
            number_format("w", parameter_bytes, "bytes per parameter"),
        ),
        _SOURCE,
    )


def magnitude_scratch(adapted: tuple[Tensor, ...], read_bytes: int, input_bytes: int) -> tuple[Term, ...]:
    """Return what DoRA works with in one adapted layer, the largest: the whole product of both adapters.

    **Formula**: in² · x for an identity matrix, out · in · (x + 2 · w): the weights, B · A and their sum.
    """
    if not adapted:
        return ()

    def needed(tensor: Tensor) -> int:
        outside, inside = tensor.shape
        return inside * inside * input_bytes + outside * inside * (input_bytes + 2 * read_bytes)

    largest = max(adapted, key=needed)
    outside, inside = largest.shape
    scratch = checked(
        "temporaries",
        needed(largest),
        "in × in × x + out × in × (x + 2 × w)",
        (
            model("in", inside, "inputs of the adapted layer that needs most"),
            model("out", outside, "its outputs"),
            number_format("x", input_bytes, "bytes of what it reads"),
            number_format("w", read_bytes, "bytes of what its adapters compute in"),
        ),
        _DORA_SOURCE,
    )
    return (scratch,)


@lru_cache(maxsize=256)
def dequantised_scratch(architecture: Architecture, size: int, source: str) -> tuple[Term, ...]:
    """Return one projection of a quantised network in the format that it is computed in, the largest.

    **Formula**: out · in · w.
    """
    matrices = [
        tensor.size
        for stack in architecture.stacks
        for group in stack.groups
        for tensor in group.layer.tensors
        if tensor.role == "linear" and len(tensor.shape) == 2
    ]
    if not matrices:
        return ()
    largest = checked(
        "temporaries",
        max(matrices) * size,
        "n × w",
        (
            model("n", max(matrices), "elements of the largest projection"),
            number_format("w", size, "bytes per element once dequantised"),
        ),
        source,
    )
    return (largest,)
