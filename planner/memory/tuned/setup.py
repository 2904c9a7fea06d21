"""A step that trains adapters or some of the parameters, on a network that may be quantised, or with fused kernels."""

from functools import lru_cache
from typing import Final, Literal, NamedTuple

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.memory.result import Term
from planner.memory.tensors import parameter_counts
from planner.memory.training.losses import losses_of
from planner.memory.training.optimizer_bytes import parameters_in
from planner.memory.training.plain import head_matrix, tied_gradient_term
from planner.memory.training.profiles import profile_notes
from planner.memory.training.saved import Saved
from planner.memory.training.setup import Casts, Gradients, Setup, cast_term
from planner.memory.tuned.adapters import adapters_term, dequantised_scratch, magnitude_scratch
from planner.memory.tuned.recipe import Adapters, Formats, Fused, Recipe
from planner.memory.tuned.saved import Checkpoints, tuned_saved
from planner.memory.tuned.sites import sites_of
from planner.memory.tuned.tuning import TunedLayers, Tuning, tuning_of
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture, Moe, Tensor
from planner.workload.training import Lora, Training

_FUSED: Final[dict[str, Fused]] = {
    "liger": Fused(norms=True, gates=True),
    "unsloth": Fused(norms=True, gates=True, adapters=True),
    "megatron": Fused(norms=True, gates=True),
}
_CAST_ROLES: Final = ("linear", "router", "conv")
_FOUR_BIT_SOURCE: Final = "bitsandbytes autograd MatMul4Bit: dequantize_4bit of one matrix, forward and backward"
_EIGHT_BIT_SOURCE: Final = "bitsandbytes autograd MatMul8bitLt.backward: CB.to(dtype of the input)"


def is_tuned(workload: Training) -> bool:
    """Return whether not all parameters are trained, or not by the operators of PyTorch alone."""
    selective = workload.activation_checkpointing == "selective" or workload.checkpoint_every > 1
    mixed = workload.compute.startswith("amp-") and workload.weights in ("bf16", "fp16")
    return workload.adapts or bool(workload.trainable) or workload.profile in _FUSED or selective or mixed


def tuned_setup(architecture: Architecture, workload: Training) -> Setup:
    """Return the setup of LoRA, QLoRA and partial training, of fused kernels and of selective checkpoints."""
    tuning = tuning_of(architecture, workload)
    recipe = recipe_of(workload)
    formats = recipe.formats
    checkpoints = checkpoints_of(workload)
    saved = tuned_saved(architecture, tuning, recipe, workload.micro_batch, workload.sequence_length or 0, checkpoints)
    weights = _weights(architecture, workload, formats)
    lora, adapters = workload.lora, recipe.adapters
    beside = () if lora is None or adapters is None else (adapters_term(tuning.adapters, lora, adapters.parameter),)
    size = adapters.parameter if adapters else formats.parameter
    head = head_matrix(architecture) if tuning.head == "trained" else 0
    everything = tuning.trained_parameters
    return Setup(
        loaded=(weights,),
        kept=(weights, *beside),
        trained=tuning.trained,
        gradients=Gradients(
            head, head + saved.stage.gradients, _before_first_layer(architecture, tuning, saved), everything
        ),
        gradient_bytes=size,
        state_bytes=size,
        saved=saved,
        casts=_casts(architecture, tuning, recipe, saved, checkpoints),
        losses=losses_of(architecture, workload, formats.precision, head_is_trained=bool(head)),
        embedding=_embedding(architecture, tuning, formats),
        scratch=_scratch(architecture, formats),
        scratch_forward=_magnitudes(tuning, recipe),
        notes=_notes(architecture, workload),
    )


def checkpoints_of(workload: Training) -> Checkpoints:
    """Return which layers of `workload` are computed again, and how: Megatron has a way of its own to be selective."""
    kind = workload.activation_checkpointing
    if kind == "selective" and workload.profile == "megatron":
        return Checkpoints("none", core_attention=True)
    return Checkpoints(kind, workload.checkpoint_every, offloaded=workload.profile == "unsloth" and kind == "full")


def recipe_of(workload: Training) -> Recipe:
    """Return how the layers of `workload`, its defaults filled in, are computed.

    **Source**: `peft.utils.other.prepare_model_for_kbit_training` casts what is not quantised to fp32; Unsloth leaves
    it in 16 bits.
    """
    formats = _formats(workload)
    fused = _FUSED.get(workload.profile, Fused())
    adapters = _adapters(workload.lora, formats) if workload.lora else None
    return Recipe(formats, workload.attention, adapters, fused)


def _formats(workload: Training) -> Formats:
    computed = ELEMENT_BYTES[workload.compute.removeprefix("amp-")]
    autocast = workload.compute.startswith("amp-")
    base = workload.weights or "fp32"
    quantised: Literal["plain", "nf4", "int8"] = "plain"
    if SCHEMES[base].family != "plain":
        quantised = "int8" if base == "int8" else "nf4"
        beside = 2 if workload.profile == "unsloth" else 4
        return Formats(beside, computed, beside, beside, autocast and beside == 4, quantised)
    parameter = ELEMENT_BYTES[base]
    if workload.profile in ("unsloth",) and autocast and parameter == computed:
        autocast = False
    return Formats(parameter if autocast else computed, computed, computed, parameter, autocast)


def _adapters(lora: Lora, formats: Formats) -> Adapters:
    parameter = ELEMENT_BYTES[lora.adapter_dtype]
    converts = formats.base == "plain" or not formats.autocast
    read = formats.computed if formats.autocast else parameter
    return Adapters(lora.rank, parameter, read, lora.dropout > 0, lora.dora, converts)


def _weights(architecture: Architecture, workload: Training, formats: Formats) -> Term:
    return weights_term(architecture, workload.weights or "fp32", kept_bytes=formats.parameter)


def _before_first_layer(architecture: Architecture, tuning: Tuning, saved: Saved) -> int:
    """Return the gradients that are there when the backward pass works on the first layer."""
    if not tuning.starts_before:
        return tuning.trained_parameters
    before = {tensor.name for tensor in architecture.main.before}
    later = (
        0
        if architecture.tied_head
        else parameters_in(tuple((tensor, number) for tensor, number in tuning.trained if tensor.name in before))
    )
    if not tuning.whole:
        return tuning.trained_parameters - later
    return tuning.trained_parameters - later - parameter_counts(architecture).smallest_layer + saved.stage.gradients


def _embedding(architecture: Architecture, tuning: Tuning, formats: Formats) -> tuple[Term, ...] | None:
    return tied_gradient_term(architecture, formats.precision) if tuning.starts_before else None


class _Cast(NamedTuple):
    """Elements that autocast casts: of the network's layers, the most of one, behind them, the head, adapters."""

    layers: int
    one_layer: int
    behind: int
    head: int
    adapters: int


def _casts(architecture: Architecture, tuning: Tuning, recipe: Recipe, saved: Saved, checkpoints: Checkpoints) -> Casts:
    """Return the casts that are held: autocast caches those of trained weights, the graph those of frozen ones."""
    formats = recipe.formats
    if not formats.autocast:
        return Casts((), (), (), ())
    cast = _cast_elements(architecture, tuning, recipe)
    checkpointed = checkpoints.kind != "none"
    size, freed = formats.computed, saved.stage.uncast if cast.layers else 0
    cached = cast.adapters + (cast.layers if tuning.whole else 0)
    every = cast.layers + cast.behind + cast.adapters
    reached = bool(tuning.layers) or tuning.starts_before
    return Casts(
        forward=cast_term((cached if checkpointed else every) + cast.head, size),
        loss=cast_term((cast.behind if checkpointed else every) + (cast.head if reached else 0), size),
        last=cast_term((cast.one_layer if checkpointed else every) - freed, size),
        first=cast_term(cast.one_layer - freed, size),
    )


@lru_cache(maxsize=256)
def _cast_elements(architecture: Architecture, tuning: Tuning, recipe: Recipe) -> _Cast:
    formats = recipe.formats
    adapters = 0
    if recipe.adapters is not None and recipe.adapters.parameter != formats.computed:
        adapters = parameters_in(tuple(item for item in tuning.adapters if not item[0].name.endswith(".magnitude")))
    deep = sum(tuned.number for tuned in tuning.layers) or 1
    if formats.parameter != 4:
        return _Cast(0, adapters // deep, 0, 0, adapters)
    head = head_matrix(architecture)
    if formats.base != "plain":
        return _Cast(0, adapters // deep, 0, head, adapters)
    each = [(_cast_in(tuned), tuned.number) for tuned in tuning.layers]
    behind = sum(
        tensor.parameters for stack in architecture.stacks for tensor in stack.after if tensor.role in _CAST_ROLES
    )
    most = max((elements for elements, _ in each), default=0)
    return _Cast(sum(elements * number for elements, number in each), most + adapters // deep, behind, head, adapters)


def _cast_in(tuned: TunedLayers) -> int:
    """Return the parameters of a layer whose cast its backward pass needs: none of frozen ones at the graph's start."""
    layer, block = tuned.layer, tuned.layer.feed_forward
    is_reached = tuned.tuning.reached or "trained" in tuned.tuning.statuses
    unreached = () if is_reached else _unreached(tuned)
    every_expert = isinstance(block, Moe) and block.every_expert
    return sum(
        tensor.parameters
        for place, (tensor, status) in enumerate(zip(layer.tensors, tuned.tuning.statuses, strict=True))
        if (tensor.role in _CAST_ROLES or (every_expert and tensor.role == "expert"))
        and (status == "trained" or place not in unreached)
    )


def _unreached(tuned: TunedLayers) -> tuple[int, ...]:
    """Return the places of projections that read what needs no derivative, in the first layer that is trained."""
    sites = sites_of(tuned.layer, tuned.stack.hidden)
    mixer = (*sites.mixer_in, *sites.inner, *sites.mixer_out)
    if tuned.layer.parallel:
        return (*sites.mixer_in, *sites.forward_in)
    if any(tuned.tuning.statuses[place] != "frozen" for place in mixer):
        return sites.mixer_in
    into = any(tuned.tuning.statuses[place] != "frozen" for place in sites.forward_in)
    return (*mixer, *sites.forward_in, *(() if into else sites.forward_out))


def _scratch(architecture: Architecture, formats: Formats) -> tuple[Term, ...]:
    if formats.base == "plain":
        return ()
    if formats.base == "nf4":
        return dequantised_scratch(architecture, formats.computed, _FOUR_BIT_SOURCE)
    return dequantised_scratch(architecture, formats.stream, _EIGHT_BIT_SOURCE)


def _magnitudes(tuning: Tuning, recipe: Recipe) -> tuple[Term, ...]:
    adapters = recipe.adapters
    if adapters is None or not adapters.dora:
        return ()
    return magnitude_scratch(_adapted(tuning), adapters.read, recipe.formats.projected)


def _adapted(tuning: Tuning) -> tuple[Tensor, ...]:
    return tuple(
        tensor
        for tuned in tuning.layers
        for tensor, status in zip(tuned.layer.tensors, tuned.tuning.statuses, strict=True)
        if status == "adapted"
    )


def _notes(architecture: Architecture, workload: Training) -> tuple[str, ...]:
    notes = profile_notes(architecture, workload)
    experts = any(tensor.role == "expert" for group in architecture.main.groups for tensor in group.layer.tensors)
    if not (experts and workload.adapts):
        return notes
    return (*notes, "Routed experts are parameters of their block, not linear layers: adapters leave them alone.")
