"""Activations saved by one transformer layer that is partly frozen, adapted, quantized or fused.

A frozen projection does not save its input, a frozen norm not the values that its weight scales; an adapter saves a
copy in the format that it computes in. If everything is trained, the result is that of `autograd.layer.saved_by_layer`.
"""

from functools import lru_cache

from planner.memory.kernels import attention_kernel
from planner.memory.precision import Precision
from planner.memory.training.adapters.settings import Formats, LayerSettings, SavedInput, norm_saved_bytes, saved_input
from planner.memory.training.adapters.trained import (
    LayerTuning,
    ProjectionIndices,
    ReaderCounts,
    count_readers,
    projection_indices,
)
from planner.memory.training.autograd.layer import (
    KEPT_BY_ACTIVATION,
    STATISTIC,
    dropout_bytes,
    mixer_output_width,
    position_bias_bytes,
    saved_by_cross_attention,
    saved_by_mixer,
    saves_activation_output,
)
from planner.memory.training.saved import SavedPerToken
from planner.models.architecture import Activation, Attention, LatentAttention, Layer, Mixer, Mlp, Moe


def saved_by_mixers(
    layer: Layer, settings: LayerSettings, tuning: LayerTuning, sites: ProjectionIndices, masked: bool
) -> SavedPerToken:
    """Return the activation bytes saved by a layer's mixers and by the adapters of their projections."""
    inside = count_readers(tuning, (*sites.mixer_in, *sites.inner))
    if not (tuning.reached or inside.trained or inside.adapted or "trained" in tuning.statuses):
        return SavedPerToken(
            adapters=_saved_by_output_projection(layer.mixer, settings, tuning, sites, kept=False).adapters
        )
    saved = SavedPerToken()
    for mixer in (layer.mixer, layer.second_mixer):
        if mixer is not None:
            whole = saved_by_mixer(
                mixer, _softmax_precision(mixer, settings.formats), settings.attention, layer, masked
            )
            output = _saved_by_output_projection(
                mixer, settings, tuning, sites, kept=_keeps_output(mixer, settings, masked)
            )
            untrained = _untrained_mixer_bytes(mixer, layer, settings, tuning, sites, masked)
            saved += whole + output + SavedPerToken(attention=-untrained)
    return saved


def mixer_is_tuned(tuning: LayerTuning, sites: ProjectionIndices) -> bool:
    """Return whether any tensor of the mixer is trained or adapted, so that its output needs a gradient."""
    readers = count_readers(tuning, (*sites.mixer_in, *sites.inner, *sites.mixer_out, *sites.cross))
    return readers.trained + readers.adapted > 0


def _softmax_precision(mixer: Mixer, formats: Formats) -> Precision:
    """Return the precision of the softmax; models that set its format keep it under autocast (gpt-oss)."""
    keeps_format = isinstance(mixer, Attention) and mixer.sinks and formats.parameter < 4
    return formats.precision._replace(autocast=False) if keeps_format else formats.precision


def _keeps_output(mixer: Mixer, settings: LayerSettings, masked: bool) -> bool:
    """Return whether the attention kernel saves its output in the layout that the output projection reads."""
    if not isinstance(mixer, Attention | LatentAttention):
        return False
    kernel = attention_kernel(mixer, settings.formats.precision, settings.attention, masked)
    return kernel == "fused" and not _copies_output_for_projection(mixer, settings, masked)


def _copies_output_for_projection(mixer: Mixer, settings: LayerSettings, masked: bool) -> bool:
    """Return whether the projection reads a copy of the kernel's output: by head (flash), or of several images."""
    if not isinstance(mixer, Attention):
        return False
    joined = mixer.joined and settings.attention == "sdpa"
    return joined or (mixer.heads_first and settings.formats.computed < 4 and not masked)


def _saved_by_output_projection(
    mixer: Mixer | None, settings: LayerSettings, tuning: LayerTuning, sites: ProjectionIndices, *, kept: bool
) -> SavedPerToken:
    """Return the bytes per token that the output projection and its adapter save as their input."""
    read = saved_input(settings, count_readers(tuning, sites.mixer_out), settings.formats.computed, is_kept=kept)
    width = mixer_output_width(mixer)
    return SavedPerToken(attention=width * (read.whole + read.copies), adapters=width * read.adapters)


def _untrained_mixer_bytes(
    mixer: Mixer, layer: Layer, settings: LayerSettings, tuning: LayerTuning, sites: ProjectionIndices, masked: bool
) -> int:
    """Return the bytes per token that a mixer does not save because output projection or norms are frozen."""
    formats = settings.formats
    kernel = "eager"
    if isinstance(mixer, Attention | LatentAttention):
        kernel = attention_kernel(mixer, formats.precision, settings.attention, masked)
    output = formats.computed * mixer_output_width(mixer)
    counted = output if kernel != "fused" or _copies_output_for_projection(mixer, settings, masked) else 0
    if isinstance(mixer, LatentAttention):
        return counted + _untrained_latent_bytes(mixer, layer, settings, tuning, count_readers(tuning, sites.inner))
    if not isinstance(mixer, Attention) or mixer.qk_norm in ("none", "bare") or layer.norm.native:
        return counted
    trained = any(
        status == "trained" and tensor.role == "norm" and "norm" in tensor.name and tensor.shape[-1] != 0
        for tensor, status in zip(layer.tensors, tuning.statuses, strict=True)
        if ".q" in f".{tensor.name}" or ".k" in f".{tensor.name}"
    )
    product = 4 if layer.norm.fp32_product else formats.computed
    return counted if trained else counted + product * (mixer.q_dim + mixer.kv_dim)


def _untrained_latent_bytes(
    mixer: LatentAttention, layer: Layer, settings: LayerSettings, tuning: LayerTuning, readers: ReaderCounts
) -> int:
    """Return the bytes per token of latents that are not saved because norms or projections are frozen."""
    formats = settings.formats
    latents = (mixer.q_lora_rank or 0) + mixer.kv_lora_rank
    norms = [
        status
        for tensor, status in zip(layer.tensors, tuning.statuses, strict=True)
        if tensor.role == "norm" and tensor.shape[0] in (mixer.q_lora_rank, mixer.kv_lora_rank)
    ]
    counted = 0 if "trained" in norms else formats.computed * latents
    each = ReaderCounts(*(min(count, 1) for count in readers))
    return counted + (formats.computed - saved_input(settings, each, formats.computed).total) * latents


def saved_by_tuned_cross_attention(
    layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, sites: ProjectionIndices
) -> SavedPerToken:
    """Return the bytes saved by cross-attention; only trained keys and values save the encoder's output."""
    formats = settings.formats
    full = saved_by_cross_attention(layer.cross_attention, hidden, formats.precision, settings.attention)
    mixer = layer.cross_attention
    if mixer is None:
        return full
    encoded = count_readers(tuning, sites.cross[1:3])
    copies = saved_input(settings, encoded, formats.stream)
    usual = 2 * formats.computed * hidden if formats.autocast else 0
    written = saved_input(settings, count_readers(tuning, sites.cross[3:]), formats.computed, is_kept=True)
    return full._replace(
        attention=full.attention + mixer.q_dim * written.adapters,
        source=full.source - usual + hidden * (copies.copies + copies.adapters),
    )


def saved_by_feed_forward(
    layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, sites: ProjectionIndices
) -> SavedPerToken:
    """Return the bytes per token saved by the feed-forward block and by its adapters."""
    block = layer.feed_forward
    if block is None:
        return SavedPerToken()
    if isinstance(block, Mlp):
        into, out = count_readers(tuning, sites.forward_in), count_readers(tuning, sites.forward_out)
        reached = tuning.reached or into.trained + into.adapted > 0
        reached = reached or (not layer.parallel and mixer_is_tuned(tuning, sites)) or "trained" in tuning.statuses
        dropped = block.dropout > 0
        return _saved_intermediate(
            block.intermediate, block.gated, block.activation, settings, out, reached=reached, dropped=dropped
        )
    routed = _experts_saved_bytes(block, hidden, settings, count_readers(tuning, sites.experts))
    router = _router_saved_bytes(block, hidden, settings, count_readers(tuning, sites.router))
    saved = SavedPerToken(feed_forward=routed + router)
    if not block.shared_intermediate:
        return saved
    gate = settings.formats.computed * hidden if block.shared_gate else 0
    readers = count_readers(tuning, sites.forward_out)
    shared = _saved_intermediate(block.shared_intermediate, True, block.activation, settings, readers)
    return saved + shared + SavedPerToken(feed_forward=gate)


def _saved_intermediate(
    width: int,
    gated: bool,
    activation: Activation,
    settings: LayerSettings,
    readers: ReaderCounts,
    *,
    reached: bool = True,
    dropped: bool = False,
) -> SavedPerToken:
    """Return the bytes per token saved at intermediate width: activation, gate, input of the last projection."""
    formats = settings.formats
    kept = KEPT_BY_ACTIVATION[activation]
    own_result = saves_activation_output(activation, gated=gated)
    tensors = kept.tensors + 1 if gated else kept.tensors - (0 if own_result else 1)
    if gated and settings.fused.gates:
        tensors = 2
    in_fp32 = kept.fp32 + (1 if gated and kept.fp32 else 0)
    wider = in_fp32 * (4 - formats.computed) if formats.autocast and formats.projected < 4 else 0
    read = saved_input(
        settings, readers, formats.projected, is_kept=own_result and reached and not dropped, reached=reached
    )
    if settings.fused.adapters and readers.adapted:
        read = SavedInput(0, read.copies, read.adapters)
    if not reached:
        tensors = wider = 0
    held = width * (formats.projected * tensors + wider + read.whole + read.copies)
    return SavedPerToken(feed_forward=held, adapters=width * read.adapters)


def _experts_saved_bytes(block: Moe, hidden: int, settings: LayerSettings, readers: ReaderCounts) -> int:
    """Return the bytes per token saved for routed experts; frozen ones save no inputs of their products.

    The output is saved for the gradient of the router's weights.
    """
    size = settings.formats.stream
    kept = KEPT_BY_ACTIVATION[block.activation].tensors + (2 if block.gated else 0)
    if not readers.trained:
        return block.visits * size * (hidden + block.intermediate * (kept - 1))
    if not (block.every_expert and settings.formats.autocast):
        return block.visits * size * (2 * hidden + block.intermediate * kept)
    inner = block.intermediate * kept * settings.formats.computed
    return block.visits * ((size + settings.formats.computed) * hidden + inner)


def _router_saved_bytes(block: Moe, hidden: int, settings: LayerSettings, readers: ReaderCounts) -> int:
    """Return the bytes per token saved by the router: its probabilities, and an fp32 copy of its input."""
    copied = 4 * hidden if block.fp32_router and settings.formats.stream < 4 and readers.trained else 0
    return copied + STATISTIC * block.experts


def last_projection_input_bytes(layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning) -> int:
    """Return the bytes per element that the feed-forward block's last projection saves of its input."""
    readers = count_readers(tuning, projection_indices(layer, hidden).forward_out)
    return saved_input(settings, readers, settings.formats.projected).total


@lru_cache(maxsize=4096)
def saved_by_tuned_layer(
    layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, masked: bool = False
) -> SavedPerToken:
    """Return the activation bytes saved by one `layer` that is trained as `tuning` states.

    **Formula** (bf16, RMSNorm, gated MLP, flash; LoRA on all linears, fp32 adapters, autocast): 18h + 6q + 4kv + 8i +
    4a + 8 + 7 · 2r bytes per token: norms 2 · (4h + 4), copies 5 · 2h + 2q + 2i, attention 4q + 4kv + 4a, feed-forward
    3 · 2i, adapters 7 · 2r.

    **Source**: `peft.tuners.lora.layer.Linear.forward` and `bnb.Linear4bit.forward`; the saved tensors of PyTorch 2.13.
    """
    sites = projection_indices(layer, hidden)
    own = SavedPerToken(
        dropout=dropout_bytes(layer, hidden),
        bias=position_bias_bytes(layer.mixer, settings.formats.precision, settings.attention),
        adapters=adapter_bytes(settings, layer, tuning),
    )
    return (
        own
        + _saved_by_norms(layer, hidden, settings, tuning, sites)
        + saved_by_mixers(layer, settings, tuning, sites, masked)
        + saved_by_tuned_cross_attention(layer, hidden, settings, tuning, sites)
        + saved_by_feed_forward(layer, hidden, settings, tuning, sites)
    )


def adapter_bytes(settings: LayerSettings, layer: Layer, tuning: LayerTuning) -> int:
    """Return the bytes per token that adapters save besides their input: output of A; with DoRA also both products.

    **Formula**: r for each adapted layer; DoRA out · (projected + result of B) more, since their magnitudes are
    trained. **Source**: `peft.tuners.lora.dora.DoraLinearLayer.forward`.
    """
    adapters = settings.adapters
    if adapters is None:
        return 0
    adapted = [tensor for tensor, status in zip(layer.tensors, tuning.statuses, strict=True) if status == "adapted"]
    ranks = 0 if settings.fused.adapters else len(adapted) * adapters.rank * adapters.read
    if not adapters.dora:
        return ranks
    wide = sum(tensor.shape[0] for tensor in adapted)
    return ranks + wide * (settings.formats.projected + adapters.read)


def _saved_by_norms(
    layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, sites: ProjectionIndices
) -> SavedPerToken:
    """Return the bytes per token saved by norms over the hidden width and by projections of their output."""
    formats = settings.formats
    mixer = count_readers(tuning, sites.mixer_in)
    forward = count_readers(tuning, (*sites.forward_in, *sites.shared_gate, *sites.router))
    cross = count_readers(tuning, sites.cross[:1])
    between = tuning.reached or (not layer.parallel and mixer_is_tuned(tuning, sites))
    blocks = [
        (readers, to)
        for readers, to in ((mixer, tuning.reached), (forward, between), (cross, between))
        if readers.total
    ]
    if layer.parallel and layer.norm_count < 2 and blocks:
        blocks = [
            (
                ReaderCounts(*(sum(counts) for counts in zip(*(readers for readers, _ in blocks), strict=True))),
                tuning.reached,
            )
        ]
    reads = [saved_input(settings, readers, formats.normed_bytes(layer.norm), reached=to) for readers, to in blocks]
    inputs = hidden * sum(read.whole + read.copies for read in reads)
    beside = hidden * sum(read.adapters for read in reads)
    norms = _stream_norm_bytes(layer, hidden, settings, tuning, len(blocks), between) + inputs
    return SavedPerToken(norms=norms // layer.stream_shards, adapters=beside // layer.stream_shards)


def _stream_norm_bytes(
    layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, blocks: int, between: bool
) -> int:
    """Return the bytes per token saved by the norms over the hidden width, without their output."""
    trained = _norms_are_trained(layer, hidden, tuning)
    if layer.post_norms:
        each = norm_saved_bytes(layer.norm, hidden, settings.formats.stream, settings, trained=trained)
        return each * (layer.norm_count if between or trained else 1)
    behind = 0 if layer.parallel else max(layer.norm_count - blocks, 0)
    before = layer.norm_count - behind
    own = before * norm_saved_bytes(layer.norm, hidden, settings.formats.stream, settings, trained=trained)
    own += behind * norm_saved_bytes(layer.norm, hidden, settings.formats.projected, settings, trained=trained)
    if layer.parallel and layer.norm.native and not _casts_stream_for_norms(settings):
        own -= (layer.norm_count - 1) * settings.formats.stream * hidden
    if tuning.reached or not before:
        return own
    if trained:
        # Its input needs no gradient: only what the weight scales is saved, unless one kernel does it all.
        return own if layer.norm.native else own - 4 * hidden - STATISTIC
    if layer.parallel or not between:
        return 0
    return own - norm_saved_bytes(layer.norm, hidden, settings.formats.stream, settings, trained=False)


def _casts_stream_for_norms(settings: LayerSettings) -> bool:
    """Return whether autocast makes a separate fp32 copy of the residual stream for each fused norm."""
    return settings.formats.autocast and settings.formats.stream < 4


def _norms_are_trained(layer: Layer, hidden: int, tuning: LayerTuning) -> bool:
    """Return whether any norm over the hidden width is trained; norms without weights never are."""
    return any(
        status == "trained" and tensor.role == "norm" and tensor.shape == (hidden,)
        for tensor, status in zip(layer.tensors, tuning.statuses, strict=True)
    )


def feed_forward_norm_bytes(layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning) -> int:
    """Return the bytes per token saved by the norm before the feed-forward block and by its readers."""
    if layer.parallel or layer.norm_count < 2:
        return 0
    sites = projection_indices(layer, hidden)
    readers = count_readers(tuning, (*sites.forward_in, *sites.shared_gate, *sites.router))
    trained = _norms_are_trained(layer, hidden, tuning)
    own = norm_saved_bytes(layer.norm, hidden, settings.formats.stream, settings, trained=trained)
    return own + hidden * saved_input(settings, readers, settings.formats.normed_bytes(layer.norm)).total
