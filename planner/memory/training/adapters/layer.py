"""What one layer keeps for the backward pass where some of it is frozen, adapted, quantised or fused.

A frozen projection does not keep what it reads, a frozen norm not what its weight multiplies; an adapter keeps a copy
in the format that it computes in. With everything trained the result is that of `activations.saved_by_layer`.
"""

from functools import lru_cache

from planner.memory.training.adapters.feed_forward import saved_by_feed_forward
from planner.memory.training.adapters.mixers import mixer_is_tuned, saved_by_mixers, saved_by_tuned_cross_attention
from planner.memory.training.adapters.settings import LayerSettings, norm_kept, read_bytes
from planner.memory.training.adapters.sites import LayerTuning, Sites, Uses, sites_of, uses
from planner.memory.training.autograd.feed_forward import STATISTIC
from planner.memory.training.autograd.layer import dropout_bytes, position_bias_bytes
from planner.memory.training.saved import SavedPerToken
from planner.models.architecture import Layer


@lru_cache(maxsize=4096)
def saved_by_tuned_layer(
    layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, masked: bool = False
) -> SavedPerToken:
    """Return what one `layer` keeps under `settings` if it is trained as `tuning` says.

    **Formula** (bf16, RMSNorm, gated MLP, flash; LoRA on all linears, fp32 adapters, autocast): 18h + 6q + 4kv + 8i +
    4a + 8 + 7 · 2r bytes per token: norms 2 · (4h + 4), copies 5 · 2h + 2q + 2i, attention 4q + 4kv + 4a, feed-forward
    3 · 2i, adapters 7 · 2r.

    **Source**: `peft.tuners.lora.layer.Linear.forward` and `bnb.Linear4bit.forward`; the saved tensors of PyTorch 2.13.
    """
    sites = sites_of(layer, hidden)
    own = SavedPerToken(
        dropout=dropout_bytes(layer, hidden),
        bias=position_bias_bytes(layer.mixer, settings.formats.precision, settings.attention),
        adapters=adapter_bytes(settings, layer, tuning),
    )
    return (
        own
        + _norms(layer, hidden, settings, tuning, sites)
        + saved_by_mixers(layer, settings, tuning, sites, masked)
        + saved_by_tuned_cross_attention(layer, hidden, settings, tuning, sites)
        + saved_by_feed_forward(layer, hidden, settings, tuning, sites)
    )


def adapter_bytes(settings: LayerSettings, layer: Layer, tuning: LayerTuning) -> int:
    """Return what adapters keep per token beside their input: what A put out, and with DoRA both results.

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


def _norms(layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, sites: Sites) -> SavedPerToken:
    """Count the norms over the hidden width, and what the projections behind them keep of what they put out."""
    formats = settings.formats
    mixer = uses(tuning, sites.mixer_in)
    forward = uses(tuning, (*sites.forward_in, *sites.shared_gate, *sites.router))
    cross = uses(tuning, sites.cross[:1])
    between = tuning.reached or (not layer.parallel and mixer_is_tuned(tuning, sites))
    blocks = [(used, to) for used, to in ((mixer, tuning.reached), (forward, between), (cross, between)) if used.total]
    if layer.parallel and layer.norm_count < 2 and blocks:
        blocks = [(Uses(*(sum(counts) for counts in zip(*(used for used, _ in blocks), strict=True))), tuning.reached)]
    reads = [read_bytes(settings, used, formats.normed(layer.norm), reached=to) for used, to in blocks]
    inputs = hidden * sum(read.whole + read.copies for read in reads)
    beside = hidden * sum(read.adapters for read in reads)
    norms = _stream_norms(layer, hidden, settings, tuning, len(blocks), between) + inputs
    return SavedPerToken(norms=norms // layer.stream_shards, adapters=beside // layer.stream_shards)


def _stream_norms(
    layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, blocks: int, between: bool
) -> int:
    trained = _norms_are_trained(layer, hidden, tuning)
    if layer.post_norms:
        each = norm_kept(layer.norm, hidden, settings.formats.stream, settings, trained=trained)
        return each * (layer.norm_count if between or trained else 1)
    behind = 0 if layer.parallel else max(layer.norm_count - blocks, 0)
    before = layer.norm_count - behind
    own = before * norm_kept(layer.norm, hidden, settings.formats.stream, settings, trained=trained)
    own += behind * norm_kept(layer.norm, hidden, settings.formats.projected, settings, trained=trained)
    if layer.parallel and layer.norm.native and not _casts_to_norm(settings):
        own -= (layer.norm_count - 1) * settings.formats.stream * hidden
    if tuning.reached or not before:
        return own
    if trained:
        # Its input needs no derivative: only what the weight multiplies is kept, unless one kernel does it all.
        return own if layer.norm.native else own - 4 * hidden - STATISTIC
    if layer.parallel or not between:
        return 0
    return own - norm_kept(layer.norm, hidden, settings.formats.stream, settings, trained=False)


def _casts_to_norm(settings: LayerSettings) -> bool:
    """Return whether autocast gives each fused norm a copy of the stream of its own, in fp32."""
    return settings.formats.autocast and settings.formats.stream < 4


def _norms_are_trained(layer: Layer, hidden: int, tuning: LayerTuning) -> bool:
    """Return whether the norms over the hidden width are trained; those without weights never are."""
    return any(
        status == "trained" and tensor.role == "norm" and tensor.shape == (hidden,)
        for tensor, status in zip(layer.tensors, tuning.statuses, strict=True)
    )


def forward_norm_kept(layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning) -> int:
    """Return what the norm before the feed-forward block, and the projections that read it, keep per token."""
    if layer.parallel or layer.norm_count < 2:
        return 0
    sites = sites_of(layer, hidden)
    used = uses(tuning, (*sites.forward_in, *sites.shared_gate, *sites.router))
    trained = _norms_are_trained(layer, hidden, tuning)
    own = norm_kept(layer.norm, hidden, settings.formats.stream, settings, trained=trained)
    return own + hidden * read_bytes(settings, used, settings.formats.normed(layer.norm)).total
