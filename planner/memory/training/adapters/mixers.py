"""What attention and other mixers of one layer keep where their projections are frozen, adapted or quantised."""

from typing import NamedTuple

from planner.memory.kernels import kernel_of
from planner.memory.precision import Precision
from planner.memory.training.adapters.settings import Formats, Recipe, read_bytes
from planner.memory.training.adapters.sites import LayerTuning, Sites, Uses, uses
from planner.memory.training.autograd.layer import Ledger, crossed_ledger, mixer_bytes
from planner.models.architecture import Attention, LatentAttention, Layer, Mixer


class Kept(NamedTuple):
    """Bytes per token: of the network itself, and of its adapters."""

    total: int
    adapters: int = 0


def mixers_kept(layer: Layer, recipe: Recipe, tuning: LayerTuning, sites: Sites, masked: bool) -> tuple[Kept, int]:
    """Return what mixers keep per token, and per token and token of context."""
    inside = uses(tuning, (*sites.mixer_in, *sites.inner))
    if not (tuning.reached or inside.trained or inside.adapted or "trained" in tuning.statuses):
        return Kept(0, _output_of(layer.mixer, recipe, tuning, sites, kept=False).adapters), 0
    kept = adapters = scores = 0
    for mixer in (layer.mixer, layer.second_mixer):
        if mixer is None:
            continue
        bytes_, of_pairs = mixer_bytes(mixer, _precision_of(mixer, recipe.formats), recipe.attention, layer, masked)
        written = _output_of(mixer, recipe, tuning, sites, kept=_keeps_output(mixer, recipe, masked))
        own = bytes_ - _untrained(mixer, layer, recipe, tuning, sites, masked)
        kept, adapters, scores = kept + own + written.total, adapters + written.adapters, scores + of_pairs
    return Kept(kept, adapters), scores


def mixer_is_tuned(tuning: LayerTuning, sites: Sites) -> bool:
    """Return whether what the mixer adds to the stream needs a derivative of its own."""
    used = uses(tuning, (*sites.mixer_in, *sites.inner, *sites.mixer_out, *sites.cross))
    return used.trained + used.adapted > 0


def _precision_of(mixer: Mixer, formats: Formats) -> Precision:
    """Return the precision of the softmax: one that is told its format keeps to it under autocast (gpt-oss)."""
    told = isinstance(mixer, Attention) and mixer.sinks and formats.parameter < 4
    return formats.precision._replace(autocast=False) if told else formats.precision


def _keeps_output(mixer: Mixer, recipe: Recipe, masked: bool) -> bool:
    """Return whether the kernel keeps what it puts out, and as the output projection reads it."""
    if not isinstance(mixer, Attention | LatentAttention):
        return False
    kernel = kernel_of(mixer, recipe.formats.precision, recipe.attention, masked)
    return kernel == "fused" and not _is_copied(mixer, recipe, masked)


def _is_copied(mixer: Mixer, recipe: Recipe, masked: bool) -> bool:
    """Return whether flash attention's output is laid out head by head, and copied for the output projection."""
    return isinstance(mixer, Attention) and mixer.heads_first and recipe.formats.computed < 4 and not masked


def _output_width(mixer: Mixer | None) -> int:
    if isinstance(mixer, Attention):
        return mixer.q_dim
    if isinstance(mixer, LatentAttention):
        return mixer.heads * mixer.v_head_dim
    return mixer.inner_dim if mixer is not None else 0


def _output_of(mixer: Mixer | None, recipe: Recipe, tuning: LayerTuning, sites: Sites, *, kept: bool) -> Kept:
    """Return what the output projection keeps of what it reads, and its adapter."""
    read = read_bytes(recipe, uses(tuning, sites.mixer_out), recipe.formats.computed, is_kept=kept)
    width = _output_width(mixer)
    return Kept(width * (read.whole + read.copies), width * read.adapters)


def _untrained(mixer: Mixer, layer: Layer, recipe: Recipe, tuning: LayerTuning, sites: Sites, masked: bool) -> int:
    """Return what the formulas for trained mixers count and the output projection, or a frozen norm, does not keep."""
    formats = recipe.formats
    kernel = "eager"
    if isinstance(mixer, Attention | LatentAttention):
        kernel = kernel_of(mixer, formats.precision, recipe.attention, masked)
    output = formats.computed * _output_width(mixer)
    counted = output if kernel != "fused" or _is_copied(mixer, recipe, masked) else 0
    if isinstance(mixer, LatentAttention):
        return counted + _untrained_latents(mixer, layer, recipe, tuning, uses(tuning, sites.inner))
    if not isinstance(mixer, Attention) or mixer.qk_norm in ("none", "bare") or layer.norm.native:
        return counted
    trained = any(
        status == "trained" and tensor.role == "norm" and "norm" in tensor.name and tensor.shape[-1] != 0
        for tensor, status in zip(layer.tensors, tuning.statuses, strict=True)
        if ".q" in f".{tensor.name}" or ".k" in f".{tensor.name}"
    )
    product = 4 if layer.norm.fp32_product else formats.computed
    return counted if trained else counted + product * (mixer.q_dim + mixer.kv_dim)


def _untrained_latents(mixer: LatentAttention, layer: Layer, recipe: Recipe, tuning: LayerTuning, used: Uses) -> int:
    """Return what the formula for trained latents counts of their norms and of what reads them, and is not kept."""
    formats = recipe.formats
    latents = (mixer.q_lora_rank or 0) + mixer.kv_lora_rank
    norms = [
        status
        for tensor, status in zip(layer.tensors, tuning.statuses, strict=True)
        if tensor.role == "norm" and tensor.shape[0] in (mixer.q_lora_rank, mixer.kv_lora_rank)
    ]
    counted = 0 if "trained" in norms else formats.computed * latents
    each = Uses(*(min(count, 1) for count in used))
    return counted + (formats.computed - read_bytes(recipe, each, formats.computed).total) * latents


def crossed_kept(layer: Layer, hidden: int, recipe: Recipe, tuning: LayerTuning, sites: Sites) -> Ledger:
    """Count cross-attention; its keys and values keep a copy of the encoder's output each only if they are trained."""
    formats = recipe.formats
    full = crossed_ledger(layer.cross_attention, hidden, formats.precision, recipe.attention)
    mixer = layer.cross_attention
    if mixer is None:
        return full
    encoded = uses(tuning, sites.cross[1:3])
    copies = read_bytes(recipe, encoded, formats.stream)
    usual = 2 * formats.computed * hidden if formats.autocast else 0
    written = read_bytes(recipe, uses(tuning, sites.cross[3:]), formats.computed, is_kept=True)
    return full._replace(
        attention=full.attention + mixer.q_dim * written.adapters,
        source=full.source - usual + hidden * (copies.copies + copies.adapters),
    )
