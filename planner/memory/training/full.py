"""Memory inputs of full fine-tuning with PyTorch's own operators, in 16 or 32 bits or with torchao's fp8."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.precision import Precision, training_precision
from planner.memory.result import Term
from planner.memory.terms import format_symbol, library_symbol, measured_term, model_symbol, term, workload_symbol
from planner.memory.training.adapters.trained import full_tuning
from planner.memory.training.autograd.network import is_frozen, saved_by_network
from planner.memory.training.losses import LossMemory
from planner.memory.training.optimizer_steps import OptimizerTerms, optimizer_terms
from planner.memory.training.saved import SavedActivations
from planner.memory.training.step import AutocastCopies, GradientCounts, LossEstimator, TrainingSetup, cast_terms
from planner.memory.weights import ParameterCounts, buffer_terms, parameter_counts, pixels_term, weights_term
from planner.models.architecture import Architecture
from planner.workload.optimizers import Optimizer, OptimizerStep
from planner.workload.training import Training


def full_setup(
    architecture: Architecture, workload: Training, losses: LossEstimator, notes: tuple[str, ...]
) -> TrainingSetup:
    """Return the memory inputs of full fine-tuning with PyTorch's own operators."""
    precision = training_precision(workload)
    checkpointed = workload.activation_checkpointing == "full"
    saved = saved_by_network(
        architecture,
        workload.micro_batch,
        workload.sequence_length or 0,
        precision,
        workload.attention,
        checkpointed,
    )
    casts = _live_casts(
        parameter_counts(architecture), head_matrix_elements(architecture), saved, precision, checkpointed
    )
    return whole_setup(
        architecture, workload, precision, saved, losses(architecture, workload, precision), casts, notes
    )


def whole_setup(
    architecture: Architecture,
    workload: Training,
    precision: Precision,
    saved: SavedActivations,
    losses: LossMemory,
    casts: AutocastCopies,
    notes: tuple[str, ...],
) -> TrainingSetup:
    """Return the memory inputs of a step that trains all parameters, given its activations, losses and casts."""
    network = _network_parameters(
        architecture, workload.weights or "fp32", precision, workload.optimizer, workload.optimizer_step
    )
    head, in_a_layer = network.head, saved.point.gradients
    return TrainingSetup(
        weights=network.weights,
        optimizer=network.optimizer,
        gradients=GradientCounts(
            head=head,
            last_layer=head + in_a_layer,
            first_layer=network.before_first_layer + in_a_layer,
            all=network.parameters,
            decoder=head + network.decoder + in_a_layer if saved.between else 0,
            decoder_layers=head + network.decoder + min(group.layer.parameters for group in architecture.main.groups),
        ),
        gradient_bytes=precision.parameter_bytes,
        saved=saved,
        casts=casts,
        losses=losses,
        embedding=network.embedding,
        shared_embedding=network.shared_embedding,
        held=(
            *buffer_terms(architecture, precision.parameter_bytes),
            *_unsaved_pixel_terms(architecture, workload, precision),
        ),
        notes=notes,
    )


def _unsaved_pixel_terms(architecture: Architecture, workload: Training, precision: Precision) -> tuple[Term, ...]:
    """Return the images of a frozen tower; a trained patch convolution saves them, with which they are counted."""
    tower = architecture.stacks[0]
    if architecture.kind != "vision-language" or not is_frozen(tower):
        return ()
    pixels = pixels_term(architecture, workload.micro_batch, precision.residual_bytes)
    return (pixels,) if pixels else ()


class _NetworkParameters(NamedTuple):
    """A network's weights, the memory of its optimizer, and parameter counts of its parts; independent of the batch."""

    weights: Term
    optimizer: OptimizerTerms
    parameters: int
    head: int
    before_first_layer: int
    decoder: int
    embedding: tuple[Term, ...]
    shared_embedding: tuple[Term, ...]


@lru_cache(maxsize=256)
def _network_parameters(
    architecture: Architecture,
    weights: str,
    precision: Precision,
    optimizer: Optimizer,
    optimizer_step: OptimizerStep | None,
) -> _NetworkParameters:
    """Return the weights and parameter counts of a network, cached since they do not depend on the batch."""
    tuning = full_tuning(architecture)
    return _NetworkParameters(
        weights=weights_term(architecture, weights),
        optimizer=optimizer_terms(tuning.trained, optimizer, optimizer_step, precision.parameter_bytes),
        parameters=tuning.trained_parameters,
        head=head_matrix_elements(architecture),
        before_first_layer=_gradient_count_before_first_layer(architecture),
        decoder=_decoder_gradient_count(architecture),
        embedding=tied_gradient_terms(architecture, precision),
        shared_embedding=(
            tied_gradient_terms(architecture, precision, of_decoder=True)
            if architecture.kind == "encoder-decoder"
            else ()
        ),
    )


def head_matrix_elements(architecture: Architecture) -> int:
    """Return the number of elements in the output head's matrix, which may read a narrower stream (ALBERT)."""
    if architecture.labels is None and architecture.tied_head:
        return parameter_counts(architecture).token_embedding
    matrices = [tensor for tensor in architecture.head if len(tensor.shape) > 1]
    return max(matrices, key=lambda tensor: tensor.shape[0]).size if matrices else 0


def _gradient_count_before_first_layer(architecture: Architecture) -> int:
    """Return how many parameters have gradients before the backward pass runs the first layer."""
    counts = parameter_counts(architecture)
    tied = counts.token_embedding if architecture.tied_head else 0
    before = sum(tensor.parameters for tensor in architecture.main.before if not tensor.frozen)
    return full_tuning(architecture).trained_parameters - counts.smallest_layer - before + tied


def _decoder_gradient_count(architecture: Architecture) -> int:
    """Return how many decoder parameters have gradients before the backward pass runs its first layer."""
    main = architecture.main
    layers = [group.layer.parameters * group.count for group in main.groups]
    smallest = min(group.layer.parameters for group in main.groups)
    return sum(layers) - smallest + sum(tensor.parameters for tensor in main.after)


def _live_casts(
    counts: ParameterCounts, head: int, saved: SavedActivations, precision: Precision, checkpointed: bool
) -> AutocastCopies:
    """Return autocast's live copies: all copies, or with checkpoints only those of head and recomputed layer."""
    if not precision.autocast:
        return AutocastCopies((), (), (), ())
    size = precision.compute_bytes
    in_a_layer = counts.cast_in_a_layer - saved.point.uncast
    return AutocastCopies(
        forward=cast_terms(counts.cast + head, size),
        loss=cast_terms(head + (counts.cast_behind if checkpointed else counts.cast), size),
        last=cast_terms(in_a_layer if checkpointed else counts.cast - saved.point.uncast, size),
        first=cast_terms(in_a_layer, size),
    )


def tied_gradient_terms(
    architecture: Architecture, precision: Precision, *, of_decoder: bool = False
) -> tuple[Term, ...]:
    """Return the gradients of a tied embedding that are summed, as terms; empty for an untied embedding.

    Of an encoder-decoder these are of the encoder's embedding, or `of_decoder` of the one that is reached first.
    """
    if not architecture.tied_head:
        return ()
    elements = parameter_counts(architecture).token_embedding
    # A gradient without other references is accumulated in place: one cast from autocast's copy, or a sum.
    in_place = precision.autocast or (architecture.kind == "encoder-decoder" and not of_decoder)
    copies = 1 if in_place else 2
    both = measured_term(
        "temporaries",
        copies * elements * precision.parameter_bytes,
        "n × V × h × w",
        (
            library_symbol(
                "n",
                copies,
                "gradients: that of the embedding, and its sum with the head's gradient unless added in place",
            ),
            model_symbol("V × h", elements, "elements of the token embedding"),
            format_symbol("w", precision.parameter_bytes, "bytes per gradient element"),
        ),
        "torch/csrc/autograd/input_buffer.cpp: the embedding's dense gradient is added to the tied head's, in place "
        "where that is a tensor of its own to which nothing else refers",
    )
    return (both,)


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


def _linear_shapes(architecture: Architecture) -> frozenset[tuple[int, int]]:
    """Return the distinct shapes (outputs, inputs) of the network's linear layers, without the head."""
    groups = (group for stack in architecture.stacks for group in stack.groups)
    return frozenset(
        (tensor.shape[0], tensor.shape[1])
        for group in groups
        for tensor in group.layer.tensors
        if tensor.role == "linear" and len(tensor.shape) == 2
    )
