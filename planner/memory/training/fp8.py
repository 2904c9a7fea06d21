"""Linear layers trained in fp8 with torchao, where casts live only as long as the product that reads them."""

from functools import lru_cache
from typing import Final

from planner.dtypes import ELEMENT_BYTES
from planner.memory.result import Term
from planner.memory.terms import library_symbol, model_symbol, term, workload_symbol
from planner.memory.training.full import head_matrix_elements
from planner.memory.training.setup import AutocastCopies, TrainingSetup, cast_terms
from planner.memory.weights import parameter_counts
from planner.models.architecture import Architecture
from planner.workload.training import Training

FP8_NOTES: Final = (
    "fp8 is torchao's float8 with dynamic scaling, in kernels that torch.compile fuses: linear layers save their "
    "inputs and parameters for the backward pass as they are, and cast them for each product. The head stays in bf16.",
)
_SOURCE: Final = (
    "torchao 0.19 float8/float8_linear.py `matmul_with_hp_or_float8_args`: inputs and weights are saved in high "
    "precision; accelerate `filter_first_and_last_linear_layers` leaves the head out"
)
_UNFUSED_BYTES: Final = 8
"""Bytes of fp32 copies per cast element if scaling and clamping are not fused into one kernel."""


def as_sixteen_bit_workload(workload: Training) -> Training:
    """Return the fp8 `workload` with bf16 computation, under autocast if its parameters are in fp32."""
    return workload.replaced(compute="amp-bf16" if workload.weights == "fp32" else "bf16")


def with_fp8(setup: TrainingSetup, architecture: Architecture, workload: Training) -> TrainingSetup:
    """Return `setup`, computed for bf16, with the memory of linear layers that multiply in fp8."""
    return setup._replace(
        casts=_remaining_casts(architecture) if workload.weights == "fp32" else setup.casts,
        scratch=(*setup.scratch, *fp8_cast_terms(architecture, workload, backward=True)),
        scratch_forward=(*setup.scratch_forward, *fp8_cast_terms(architecture, workload, backward=False)),
        notes=(*setup.notes, *FP8_NOTES),
    )


def _remaining_casts(architecture: Architecture) -> AutocastCopies:
    """Return autocast's copies that remain with fp8: the copies of head, routers and convolutions."""
    beside, size = parameter_counts(architecture, in_fp8=True).cast, ELEMENT_BYTES["bf16"]
    behind = cast_terms(beside + head_matrix_elements(architecture), size)
    return AutocastCopies(behind, behind, cast_terms(beside, size), cast_terms(beside, size))


def fp8_cast_terms(architecture: Architecture, workload: Training, *, backward: bool) -> tuple[Term, ...]:
    """Return the memory of the fp8 casts in the linear layer that holds most cast elements at once.

    **Formula**: T · i + i · o in the forward pass, and 2 · T · o more in the backward pass, where the gradient is cast
    for both of its products. At most each cast holds two copies in fp32, where no kernel fuses them.

    **Source**: torchao 0.19 float8/float8_linear.py and float8_scaling_utils.py.
    """
    tokens = workload.micro_batch * (workload.sequence_length or 0)
    found = [
        (tokens * (each + 2 * made * backward) + each * made, each, made) for made, each in _linear_shapes(architecture)
    ]
    if not found:
        return ()
    copies, read, made = max(found)
    widest = max(tokens * read, tokens * made * backward, read * made)
    symbols = (
        workload_symbol("T", tokens, f"tokens: {workload.micro_batch:,} × {workload.sequence_length:,}"),
        model_symbol("i", read, "input width of the layer with the largest casts"),
        model_symbol("o", made, "output width of the layer with the largest casts"),
        library_symbol("G", 2 * backward, "number of simultaneous casts of the output's gradient"),
    )
    held = term(
        "temporaries",
        copies,
        "T × i + i × o + G × T × o",
        symbols,
        _SOURCE,
        certainty="assumed",
        high_bytes=copies + _UNFUSED_BYTES * widest,
    )
    return (held,)


@lru_cache(maxsize=256)
def _linear_shapes(architecture: Architecture) -> frozenset[tuple[int, int]]:
    """Return the distinct shapes (outputs, inputs) of the network's linear layers, without the head."""
    groups = (group for stack in architecture.stacks for group in stack.groups)
    return frozenset(
        (tensor.shape[0], tensor.shape[1])
        for group in groups
        for tensor in group.layer.tensors
        if tensor.role == "linear" and len(tensor.shape) == 2
    )
