"""Training of adapters or of some parameters, on a network that may be quantized or use fused kernels."""

from typing import Final, NamedTuple

from planner.memory.result import Term
from planner.memory.terms import format_symbol, measured_term, model_symbol, term
from planner.memory.training.adapters.network import saved_by_tuned_network
from planner.memory.training.adapters.settings import Formats, LayerSettings
from planner.memory.training.adapters.trained import TunedLayers, Tuning, projection_indices, tuning_of
from planner.memory.training.checkpointing import Checkpoints
from planner.memory.training.full import head_matrix_elements, tied_gradient_terms
from planner.memory.training.optimizer_states import Trained, parameter_count
from planner.memory.training.optimizer_steps import optimizer_terms
from planner.memory.training.saved import SavedActivations
from planner.memory.training.step import AutocastCopies, GradientCounts, LossEstimator, TrainingSetup, cast_terms
from planner.memory.weights import (
    buffer_terms,
    dequantized_projection_terms,
    parameter_counts,
    pixels_term,
    unpacked_four_bit_terms,
    weights_term,
)
from planner.models.architecture import Architecture, Moe, Tensor
from planner.workload.training import Lora, Training

_SOURCE: Final = "peft.tuners.lora: A (r × in) and B (out × r) for each adapted linear layer, in fp32 by default"
_DORA_SOURCE: Final = "peft.tuners.lora.dora.DoraLinearLayer.forward: the norm of W + B · A, row by row"


def adapters_term(adapters: Trained, lora: Lora, parameter_bytes: int) -> Term:
    """Return the memory of the adapters' parameters.

    **Formula**: Σ r · (in + out) · w over the adapted layers; DoRA adds out · w each.
    """
    count = parameter_count(adapters)
    pairs = sum(number for tensor, number in adapters if tensor.name.endswith(".lora_A"))
    return term(
        "adapters",
        count * parameter_bytes,
        "P_a × w",
        (
            model_symbol("P_a", count, f"parameters of the adapters of {pairs:,} linear layers, rank {lora.rank}"),
            format_symbol("w", parameter_bytes, "bytes per parameter"),
        ),
        _SOURCE,
    )


def dora_workspace_terms(adapted: tuple[Tensor, ...], read_bytes: int, input_bytes: int) -> tuple[Term, ...]:
    """Return DoRA's workspace in the adapted layer that needs most, where it multiplies A and B in full.

    **Formula**: in² · x for an identity matrix, out · in · (x + 2 · w): the weights, B · A and their sum.
    """
    if not adapted:
        return ()

    def tensor_workspace_bytes(tensor: Tensor) -> int:
        """Return the bytes of DoRA's workspace for one linear layer."""
        outside, inside = tensor.shape
        return inside * inside * input_bytes + outside * inside * (input_bytes + 2 * read_bytes)

    largest = max(adapted, key=tensor_workspace_bytes)
    outside, inside = largest.shape
    scratch = measured_term(
        "temporaries",
        tensor_workspace_bytes(largest),
        "in × in × x + out × in × (x + 2 × w)",
        (
            model_symbol("in", inside, "inputs of the adapted layer that needs most workspace"),
            model_symbol("out", outside, "its outputs"),
            format_symbol("x", input_bytes, "bytes per element of the layer's input"),
            format_symbol("w", read_bytes, "bytes per element in the adapters' format"),
        ),
        _DORA_SOURCE,
    )
    return (scratch,)


_CAST_ROLES: Final = ("linear", "router", "conv")
_EIGHT_BIT_SOURCE: Final = "bitsandbytes autograd MatMul8bitLt.backward: CB.to(dtype of the input)"


def partial_setup(
    architecture: Architecture,
    workload: Training,
    settings: LayerSettings,
    checkpoints: Checkpoints,
    losses: LossEstimator,
    notes: tuple[str, ...],
) -> TrainingSetup:
    """Return the memory inputs of a training step with LoRA, QLoRA, chosen parameters or fused kernels."""
    tuning = tuning_of(architecture, workload)
    formats = settings.formats
    saved = saved_by_tuned_network(
        architecture, tuning, settings, workload.micro_batch, workload.sequence_length or 0, checkpoints
    )
    weights = weights_term(architecture, workload.weights or "fp32", kept_bytes=formats.parameter)
    lora, adapters = workload.lora, settings.adapters
    size = adapters.parameter if adapters else formats.parameter
    head = head_matrix_elements(architecture) if tuning.head == "trained" else 0
    # A trained patch convolution saves them for the backward pass, with which they are counted.
    pixels = None if tuning.starts_before else pixels_term(architecture, workload.micro_batch, formats.stream)
    everything = tuning.trained_parameters
    in_last = bool(tuning.layers) and set(tuning.layers[-1].tuning.statuses) != {"frozen"}
    return TrainingSetup(
        weights=weights,
        optimizer=optimizer_terms(tuning.trained, workload.optimizer, workload.optimizer_step, size),
        gradients=GradientCounts(
            head,
            head + (saved.point.gradients if in_last else 0),
            _gradient_count_before_first_layer(architecture, tuning, saved),
            everything,
        ),
        gradient_bytes=size,
        saved=saved,
        casts=_live_casts(architecture, tuning, settings, saved, checkpoints),
        losses=losses(architecture, workload, formats.precision, head_is_trained=bool(head)),
        embedding=tied_gradient_terms(architecture, formats.precision) if tuning.starts_before else None,
        adapters=adapters_term(tuning.adapters, lora, adapters.parameter) if lora and adapters else None,
        held=(*buffer_terms(architecture, formats.parameter), *((pixels,) if pixels else ())),
        scratch=_dequantized_terms(architecture, formats),
        scratch_forward=_optional_dora_terms(tuning, settings),
        notes=_partial_training_notes(architecture, workload, notes),
    )


def _gradient_count_before_first_layer(architecture: Architecture, tuning: Tuning, saved: SavedActivations) -> int:
    """Return how many parameters have gradients before the backward pass runs the first layer."""
    if not tuning.starts_before:
        return tuning.trained_parameters
    before = {tensor.name for tensor in architecture.main.before}
    later = (
        0
        if architecture.tied_head
        else parameter_count(tuple((tensor, number) for tensor, number in tuning.trained if tensor.name in before))
    )
    if not tuning.whole:
        return tuning.trained_parameters - later
    return tuning.trained_parameters - later - parameter_counts(architecture).smallest_layer + saved.point.gradients


class _AutocastElements(NamedTuple):
    """Number of elements that autocast casts: in all layers, in the largest layer, after the layers, in the head."""

    layers: int
    one_layer: int
    behind: int
    head: int
    adapters: int


def _live_casts(
    architecture: Architecture,
    tuning: Tuning,
    settings: LayerSettings,
    saved: SavedActivations,
    checkpoints: Checkpoints,
) -> AutocastCopies:
    """Return autocast's live copies: cached for trained weights, held by the autograd graph for frozen weights."""
    formats = settings.formats
    if not formats.autocast:
        return AutocastCopies((), (), (), ())
    cast = _autocast_elements(architecture, tuning, settings)
    checkpointed = checkpoints.kind != "none"
    size, freed = formats.computed, saved.point.uncast if cast.layers else 0
    cached = cast.adapters + (cast.layers if tuning.whole else 0)
    every = cast.layers + cast.behind + cast.adapters
    reached = bool(tuning.layers) or tuning.starts_before
    return AutocastCopies(
        forward=cast_terms((cached if checkpointed else every) + cast.head, size),
        loss=cast_terms((cast.behind if checkpointed else every) + (cast.head if reached else 0), size),
        last=cast_terms((cast.one_layer if checkpointed else every) - freed, size),
        first=cast_terms(cast.one_layer - freed, size),
    )


def _autocast_elements(architecture: Architecture, tuning: Tuning, settings: LayerSettings) -> _AutocastElements:
    """Return the number of elements that autocast casts in each part of the network."""
    formats = settings.formats
    adapters = 0
    if settings.adapters is not None and settings.adapters.parameter != formats.computed:
        adapters = parameter_count(tuple(item for item in tuning.adapters if not item[0].name.endswith(".magnitude")))
    deep = sum(tuned.number for tuned in tuning.layers) or 1
    if formats.parameter != 4:
        return _AutocastElements(0, adapters // deep, 0, 0, adapters)
    head = head_matrix_elements(architecture)
    if formats.base != "plain":
        return _AutocastElements(0, adapters // deep, 0, head, adapters)
    each = [(_autocast_parameters_in_layer(tuned), tuned.number) for tuned in tuning.layers]
    behind = sum(
        tensor.parameters for stack in architecture.stacks for tensor in stack.after if tensor.role in _CAST_ROLES
    )
    most = max((elements for elements, _ in each), default=0)
    return _AutocastElements(
        sum(elements * number for elements, number in each), most + adapters // deep, behind, head, adapters
    )


def _autocast_parameters_in_layer(tuned: TunedLayers) -> int:
    """Return the number of parameters in one layer whose autocast copies the backward pass needs."""
    layer, block = tuned.layer, tuned.layer.feed_forward
    is_reached = tuned.tuning.reached or "trained" in tuned.tuning.statuses
    unreached = () if is_reached else _unreached_projections(tuned)
    every_expert = isinstance(block, Moe) and block.every_expert
    return sum(
        tensor.parameters
        for place, (tensor, status) in enumerate(zip(layer.tensors, tuned.tuning.statuses, strict=True))
        if (tensor.role in _CAST_ROLES or (every_expert and tensor.role == "expert"))
        and (status == "trained" or place not in unreached)
    )


def _unreached_projections(tuned: TunedLayers) -> tuple[int, ...]:
    """Return the indices of the first trained layer's projections whose input needs no gradient."""
    sites = projection_indices(tuned.layer, tuned.stack.hidden)
    mixer = (*sites.mixer_in, *sites.inner, *sites.mixer_out)
    if tuned.layer.parallel:
        return (*sites.mixer_in, *sites.forward_in)
    if any(tuned.tuning.statuses[place] != "frozen" for place in mixer):
        return sites.mixer_in
    into = any(tuned.tuning.statuses[place] != "frozen" for place in sites.forward_in)
    return (*mixer, *sites.forward_in, *(() if into else sites.forward_out))


def _dequantized_terms(architecture: Architecture, formats: Formats) -> tuple[Term, ...]:
    """Return the memory of the largest dequantized projection, empty for unquantized networks."""
    if formats.base == "plain":
        return ()
    if formats.base == "nf4":
        return unpacked_four_bit_terms(architecture, formats.computed)
    return dequantized_projection_terms(architecture, formats.stream, _EIGHT_BIT_SOURCE)


def _optional_dora_terms(tuning: Tuning, settings: LayerSettings) -> tuple[Term, ...]:
    """Return DoRA's workspace as a memory term; empty without DoRA."""
    adapters = settings.adapters
    if adapters is None or not adapters.dora:
        return ()
    adapted = tuple(
        tensor
        for tuned in tuning.layers
        for tensor, status in zip(tuned.layer.tensors, tuned.tuning.statuses, strict=True)
        if status == "adapted"
    )
    return dora_workspace_terms(adapted, adapters.read, settings.formats.projected)


def _partial_training_notes(architecture: Architecture, workload: Training, notes: tuple[str, ...]) -> tuple[str, ...]:
    """Return `notes`, plus a note if routed experts get no adapters."""
    experts = any(tensor.role == "expert" for group in architecture.main.groups for tensor in group.layer.tensors)
    if not (experts and workload.adapts):
        return notes
    return (
        *notes,
        "Routed experts get no adapters, because transformers stores them as parameters, not as linear layers.",
    )
