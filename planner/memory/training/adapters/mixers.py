"""What attention and other mixers of one layer keep where their projections are frozen, adapted or quantised."""

from dataclasses import replace

from planner.memory.kernels import kernel_of
from planner.memory.precision import Precision
from planner.memory.training.adapters.settings import Formats, LayerSettings, read_bytes
from planner.memory.training.adapters.sites import LayerTuning, Sites, Uses, uses
from planner.memory.training.autograd.layer import saved_by_cross_attention, saved_by_mixer
from planner.memory.training.saved import SavedPerToken
from planner.models.architecture import Attention, LatentAttention, Layer, Mixer


def saved_by_mixers(
    layer: Layer, settings: LayerSettings, tuning: LayerTuning, sites: Sites, masked: bool
) -> SavedPerToken:
    """Return what mixers keep, and their adapters."""
    inside = uses(tuning, (*sites.mixer_in, *sites.inner))
    if not (tuning.reached or inside.trained or inside.adapted or "trained" in tuning.statuses):
        return SavedPerToken(adapters=_output_of(layer.mixer, settings, tuning, sites, kept=False).adapters)
    saved = SavedPerToken()
    for mixer in (layer.mixer, layer.second_mixer):
        if mixer is not None:
            whole = saved_by_mixer(mixer, _precision_of(mixer, settings.formats), settings.attention, layer, masked)
            output = _output_of(mixer, settings, tuning, sites, kept=_keeps_output(mixer, settings, masked))
            untrained = _untrained(mixer, layer, settings, tuning, sites, masked)
            saved += whole + output + SavedPerToken(attention=-untrained)
    return saved


def mixer_is_tuned(tuning: LayerTuning, sites: Sites) -> bool:
    """Return whether what the mixer adds to the stream needs a derivative of its own."""
    used = uses(tuning, (*sites.mixer_in, *sites.inner, *sites.mixer_out, *sites.cross))
    return used.trained + used.adapted > 0


def _precision_of(mixer: Mixer, formats: Formats) -> Precision:
    """Return the precision of the softmax: one that is told its format keeps to it under autocast (gpt-oss)."""
    told = isinstance(mixer, Attention) and mixer.sinks and formats.parameter < 4
    return formats.precision._replace(autocast=False) if told else formats.precision


def _keeps_output(mixer: Mixer, settings: LayerSettings, masked: bool) -> bool:
    """Return whether the kernel keeps what it puts out, and as the output projection reads it."""
    if not isinstance(mixer, Attention | LatentAttention):
        return False
    kernel = kernel_of(mixer, settings.formats.precision, settings.attention, masked)
    return kernel == "fused" and not _is_copied(mixer, settings, masked)


def _is_copied(mixer: Mixer, settings: LayerSettings, masked: bool) -> bool:
    """Return whether flash attention's output is laid out head by head, and copied for the output projection."""
    return isinstance(mixer, Attention) and mixer.heads_first and settings.formats.computed < 4 and not masked


def _output_width(mixer: Mixer | None) -> int:
    if isinstance(mixer, Attention):
        return mixer.q_dim
    if isinstance(mixer, LatentAttention):
        return mixer.heads * mixer.v_head_dim
    return mixer.inner_dim if mixer is not None else 0


def _output_of(
    mixer: Mixer | None, settings: LayerSettings, tuning: LayerTuning, sites: Sites, *, kept: bool
) -> SavedPerToken:
    """Return what the output projection keeps of what it reads, and its adapter."""
    read = read_bytes(settings, uses(tuning, sites.mixer_out), settings.formats.computed, is_kept=kept)
    width = _output_width(mixer)
    return SavedPerToken(attention=width * (read.whole + read.copies), adapters=width * read.adapters)


def _untrained(
    mixer: Mixer, layer: Layer, settings: LayerSettings, tuning: LayerTuning, sites: Sites, masked: bool
) -> int:
    """Return what the formulas for trained mixers count and the output projection, or a frozen norm, does not keep."""
    formats = settings.formats
    kernel = "eager"
    if isinstance(mixer, Attention | LatentAttention):
        kernel = kernel_of(mixer, formats.precision, settings.attention, masked)
    output = formats.computed * _output_width(mixer)
    counted = output if kernel != "fused" or _is_copied(mixer, settings, masked) else 0
    if isinstance(mixer, LatentAttention):
        return counted + _untrained_latents(mixer, layer, settings, tuning, uses(tuning, sites.inner))
    if not isinstance(mixer, Attention) or mixer.qk_norm in ("none", "bare") or layer.norm.native:
        return counted
    trained = any(
        status == "trained" and tensor.role == "norm" and "norm" in tensor.name and tensor.shape[-1] != 0
        for tensor, status in zip(layer.tensors, tuning.statuses, strict=True)
        if ".q" in f".{tensor.name}" or ".k" in f".{tensor.name}"
    )
    product = 4 if layer.norm.fp32_product else formats.computed
    return counted if trained else counted + product * (mixer.q_dim + mixer.kv_dim)


def _untrained_latents(
    mixer: LatentAttention, layer: Layer, settings: LayerSettings, tuning: LayerTuning, used: Uses
) -> int:
    """Return what the formula for trained latents counts of their norms and of what reads them, and is not kept."""
    formats = settings.formats
    latents = (mixer.q_lora_rank or 0) + mixer.kv_lora_rank
    norms = [
        status
        for tensor, status in zip(layer.tensors, tuning.statuses, strict=True)
        if tensor.role == "norm" and tensor.shape[0] in (mixer.q_lora_rank, mixer.kv_lora_rank)
    ]
    counted = 0 if "trained" in norms else formats.computed * latents
    each = Uses(*(min(count, 1) for count in used))
    return counted + (formats.computed - read_bytes(settings, each, formats.computed).total) * latents


def saved_by_tuned_cross_attention(
    layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, sites: Sites
) -> SavedPerToken:
    """Count cross-attention; its keys and values keep a copy of the encoder's output each only if they are trained."""
    formats = settings.formats
    full = saved_by_cross_attention(layer.cross_attention, hidden, formats.precision, settings.attention)
    mixer = layer.cross_attention
    if mixer is None:
        return full
    encoded = uses(tuning, sites.cross[1:3])
    copies = read_bytes(settings, encoded, formats.stream)
    usual = 2 * formats.computed * hidden if formats.autocast else 0
    written = read_bytes(settings, uses(tuning, sites.cross[3:]), formats.computed, is_kept=True)
    return replace(
        full,
        attention=full.attention + mixer.q_dim * written.adapters,
        source=full.source - usual + hidden * (copies.copies + copies.adapters),
    )
