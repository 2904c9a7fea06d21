"""What one layer keeps for the backward pass where some of it is frozen, adapted, quantised or fused.

A frozen projection does not keep what it reads, a frozen norm not what its weight multiplies; an adapter keeps a copy
in the format that it computes in. With everything trained the result is that of `activations.layer_ledger`.
"""

from functools import lru_cache
from typing import Final, Literal, NamedTuple

from planner.memory.activations import (
    Ledger,
    crossed_ledger,
    dropout_bytes,
    mixer_bytes,
    position_bias_bytes,
)
from planner.memory.feed_forward import KEPT_BY_ACTIVATION, STATISTIC
from planner.memory.kernels import MASK, AttentionKind, kernel_of
from planner.memory.precision import Precision
from planner.memory.tuning import LayerTuning, Sites, Uses, sites_of, uses
from planner.models.architecture import Activation, Attention, LatentAttention, Layer, Mixer, Mlp, Moe, Norm

_READS_ITS_RESULT: Final[tuple[Activation, ...]] = ("relu",)
"""Activations that keep what they put out, which the next projection reads, too."""


class Formats(NamedTuple):
    """Bytes per element under a precision and a way to store the frozen network.

    `stream` are those of the residual stream, `computed` what matrix products and attention read, `projected` what a
    projection puts out; `parameter` those of the network's own weights. `base` says how its projections are stored.
    """

    stream: int
    computed: int
    projected: int
    parameter: int
    autocast: bool
    base: Literal["plain", "nf4", "int8"] = "plain"

    @property
    def precision(self) -> Precision:
        """Return the same for formulas that know no adapters."""
        return Precision(self.parameter, self.computed, self.stream, self.autocast)

    def normed(self, norm: Norm) -> int:
        """Return the bytes of what `norm` puts out: autocast computes fused norms in fp32."""
        return 4 if self.autocast and norm.native else self.stream


class Adapters(NamedTuple):
    """How adapters compute: rank, bytes of their parameters, and what their products read."""

    rank: int
    parameter: int
    read: int
    dropout: bool
    dora: bool
    converts: bool

    def shares(self, input_bytes: int) -> bool:
        """Return whether they read a tensor of `input_bytes` an element as it is."""
        same = input_bytes == self.read
        return same and not self.dropout and (not self.converts or input_bytes == self.parameter)


class Fused(NamedTuple):
    """What libraries fuse: step-by-step norms, a gate with its activation, and adapters with both."""

    norms: bool = False
    gates: bool = False
    adapters: bool = False


class Recipe(NamedTuple):
    """How a layer is computed and trained, its own tuning aside."""

    formats: Formats
    attention: AttentionKind
    adapters: Adapters | None
    fused: Fused = Fused()


class _Read(NamedTuple):
    """Bytes per element of a tensor that are kept for the projections reading it, and for their adapters apart.

    `whole` of them are those of the tensor as it is.
    """

    whole: int
    copies: int
    adapters: int

    @property
    def total(self) -> int:
        return self.whole + self.copies + self.adapters


@lru_cache(maxsize=4096)
def tuned_ledger(layer: Layer, hidden: int, recipe: Recipe, tuning: LayerTuning, masked: bool = False) -> Ledger:
    """Return what one `layer` keeps under `recipe` if it is trained as `tuning` says.

    **Formula** (bf16, RMSNorm, gated MLP, flash; LoRA on all linears, fp32 adapters, autocast): 18h + 6q + 4kv + 8i +
    4a + 8 + 7 · 2r bytes per token: norms 2 · (4h + 4), copies 5 · 2h + 2q + 2i, attention 4q + 4kv + 4a, feed-forward
    3 · 2i, adapters 7 · 2r.

    **Source**: `peft.tuners.lora.layer.Linear.forward` and `bnb.Linear4bit.forward`; the saved tensors of PyTorch 2.13.
    """
    sites = sites_of(layer, hidden)
    kept = _norms(layer, hidden, recipe, tuning, sites)
    mixed, scores = _mixers(layer, recipe, tuning, sites, masked)
    crossed = _crossed(layer, hidden, recipe, tuning, sites)
    forward, inner = _feed_forward(layer, hidden, recipe, tuning, sites)
    return Ledger(
        norms=kept.total // layer.stream_shards,
        attention=mixed.total + crossed.attention,
        feed_forward=forward.total,
        dropout=dropout_bytes(layer, hidden, recipe.formats.precision),
        scores=scores,
        source=crossed.source,
        source_scores=crossed.source_scores,
        bias=position_bias_bytes(layer.mixer, recipe.formats.precision, recipe.attention),
        adapters=kept.adapters // layer.stream_shards + mixed.adapters + forward.adapters + inner,
    )


class _Kept(NamedTuple):
    """Bytes per token: of the network itself, and of its adapters."""

    total: int
    adapters: int = 0


def read_bytes(recipe: Recipe, used: Uses, input_bytes: int, *, is_kept: bool = False, reached: bool = True) -> _Read:
    """Return what `used` projections keep of an element that they read, in `input_bytes`.

    `is_kept` says that something else keeps the tensor anyway, `reached` that it needs a derivative itself, without
    which adapters' dropout keeps no mask. Projections of LLM.int8 keep what they read, too.
    """
    formats, adapters = recipe.formats, recipe.adapters
    own = input_bytes != formats.computed and formats.autocast
    whole = (used.trained > 0 and not own) or (formats.base == "int8" and used.total > 0)
    copies = used.trained * formats.computed if own else 0
    beside = 0
    if used.adapted and adapters is not None:
        shared = adapters.shares(input_bytes)
        if recipe.fused.adapters or shared:
            whole = True
        else:
            beside = used.adapted * adapters.read
        beside += used.adapted * MASK if adapters.dropout and reached else 0
    return _Read(0 if is_kept or not whole else input_bytes, copies, beside)


def adapter_bytes(recipe: Recipe, layer: Layer, tuning: LayerTuning) -> int:
    """Return what adapters keep per token beside their input: what A put out, and with DoRA both results.

    **Formula**: r for each adapted layer; DoRA out · (projected + result of B) more, since their magnitudes are
    trained. **Source**: `peft.tuners.lora.dora.DoraLinearLayer.forward`.
    """
    adapters = recipe.adapters
    if adapters is None:
        return 0
    adapted = [tensor for tensor, status in zip(layer.tensors, tuning.statuses, strict=True) if status == "adapted"]
    ranks = 0 if recipe.fused.adapters else len(adapted) * adapters.rank * adapters.read
    if not adapters.dora:
        return ranks
    wide = sum(tensor.shape[0] for tensor in adapted)
    return ranks + wide * (recipe.formats.projected + adapters.read)


def norm_kept(norm: Norm, width: int, size: int, recipe: Recipe, *, trained: bool) -> int:
    """Count a norm of an input in `size` bytes an element, through which a derivative goes."""
    if recipe.fused.norms and norm.kind == "rms":
        return size * width + STATISTIC
    if norm.native:
        read = 4 if norm.upcast or recipe.formats.autocast else size
        return read * width + STATISTIC * (2 if norm.kind == "layer" else 1)
    centred = 4 if norm.kind == "layer" else 0
    scaled = size if norm.keeps_input and size < 4 else 0
    product = (4 if norm.fp32_product else size) if trained else 0
    return (4 + centred + scaled + product) * width + STATISTIC


def _norms(layer: Layer, hidden: int, recipe: Recipe, tuning: LayerTuning, sites: Sites) -> _Kept:
    """Count the norms over the hidden width, and what the projections behind them keep of what they put out."""
    formats = recipe.formats
    mixer = uses(tuning, sites.mixer_in)
    forward = uses(tuning, (*sites.forward_in, *sites.shared_gate, *sites.router))
    cross = uses(tuning, sites.cross[:1])
    between = tuning.reached or (not layer.parallel and _mixer_is_tuned(tuning, sites))
    blocks = [(used, to) for used, to in ((mixer, tuning.reached), (forward, between), (cross, between)) if used.total]
    if layer.parallel and layer.norm_count < 2 and blocks:
        blocks = [(Uses(*(sum(counts) for counts in zip(*(used for used, _ in blocks), strict=True))), tuning.reached)]
    reads = [read_bytes(recipe, used, formats.normed(layer.norm), reached=to) for used, to in blocks]
    inputs = hidden * sum(read.whole + read.copies for read in reads)
    beside = hidden * sum(read.adapters for read in reads)
    return _Kept(_stream_norms(layer, hidden, recipe, tuning, len(blocks), between) + inputs, beside)


def _stream_norms(layer: Layer, hidden: int, recipe: Recipe, tuning: LayerTuning, blocks: int, between: bool) -> int:
    trained = _norms_are_trained(layer, hidden, tuning)
    behind = 0 if layer.parallel else max(layer.norm_count - blocks, 0)
    before = layer.norm_count - behind
    own = before * norm_kept(layer.norm, hidden, recipe.formats.stream, recipe, trained=trained)
    own += behind * norm_kept(layer.norm, hidden, recipe.formats.projected, recipe, trained=trained)
    if layer.parallel and layer.norm.native and not _casts_to_norm(recipe):
        own -= (layer.norm_count - 1) * recipe.formats.stream * hidden
    if tuning.reached or not before:
        return own
    if trained:
        # Its input needs no derivative: only what the weight multiplies is kept, unless one kernel does it all.
        return own if layer.norm.native else own - 4 * hidden - STATISTIC
    if layer.parallel or not between:
        return 0
    return own - norm_kept(layer.norm, hidden, recipe.formats.stream, recipe, trained=False)


def _mixer_is_tuned(tuning: LayerTuning, sites: Sites) -> bool:
    """Return whether what the mixer adds to the stream needs a derivative of its own."""
    used = uses(tuning, (*sites.mixer_in, *sites.inner, *sites.mixer_out, *sites.cross))
    return used.trained + used.adapted > 0


def _casts_to_norm(recipe: Recipe) -> bool:
    """Return whether autocast gives each fused norm a copy of the stream of its own, in fp32."""
    return recipe.formats.autocast and recipe.formats.stream < 4


def _norms_are_trained(layer: Layer, hidden: int, tuning: LayerTuning) -> bool:
    """Return whether the norms over the hidden width are trained; those without weights never are."""
    return any(
        status == "trained" and tensor.role == "norm" and tensor.shape == (hidden,)
        for tensor, status in zip(layer.tensors, tuning.statuses, strict=True)
    )


def _mixers(layer: Layer, recipe: Recipe, tuning: LayerTuning, sites: Sites, masked: bool) -> tuple[_Kept, int]:
    """Return what mixers keep per token, and per token and token of context."""
    inside = uses(tuning, (*sites.mixer_in, *sites.inner))
    if not (tuning.reached or inside.trained or inside.adapted or "trained" in tuning.statuses):
        return _Kept(0, _output_of(layer.mixer, recipe, tuning, sites, kept=False).adapters), 0
    kept = adapters = scores = 0
    for mixer in (layer.mixer, layer.second_mixer):
        if mixer is None:
            continue
        bytes_, of_pairs = mixer_bytes(mixer, _precision_of(mixer, recipe.formats), recipe.attention, layer, masked)
        written = _output_of(mixer, recipe, tuning, sites, kept=_keeps_output(mixer, recipe, masked))
        own = bytes_ - _untrained(mixer, layer, recipe, tuning, sites, masked)
        kept, adapters, scores = kept + own + written.total, adapters + written.adapters, scores + of_pairs
    return _Kept(kept, adapters), scores


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


def _output_of(mixer: Mixer | None, recipe: Recipe, tuning: LayerTuning, sites: Sites, *, kept: bool) -> _Kept:
    """Return what the output projection keeps of what it reads, and its adapter."""
    read = read_bytes(recipe, uses(tuning, sites.mixer_out), recipe.formats.computed, is_kept=kept)
    width = _output_width(mixer)
    return _Kept(width * (read.whole + read.copies), width * read.adapters)


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


def _crossed(layer: Layer, hidden: int, recipe: Recipe, tuning: LayerTuning, sites: Sites) -> Ledger:
    """Count cross-attention; its keys and values keep a copy of the encoder's output each only if they are trained."""
    formats = recipe.formats
    full = crossed_ledger(layer.cross_attention, hidden, formats.precision, recipe.attention)
    mixer = layer.cross_attention
    if mixer is None:
        return full
    encoded = uses(tuning, sites.cross[1:3])
    copies = read_bytes(recipe, encoded, formats.stream)
    usual = 2 * formats.computed * hidden if formats.autocast else 0
    return full._replace(source=full.source - usual + hidden * (copies.copies + copies.adapters))


def _feed_forward(layer: Layer, hidden: int, recipe: Recipe, tuning: LayerTuning, sites: Sites) -> tuple[_Kept, int]:
    """Return what the feed-forward block keeps, and what all adapters of the layer keep beside what they read."""
    block, inner = layer.feed_forward, adapter_bytes(recipe, layer, tuning)
    if block is None:
        return _Kept(0), inner
    if isinstance(block, Mlp):
        into, out = uses(tuning, sites.forward_in), uses(tuning, sites.forward_out)
        reached = tuning.reached or into.trained + into.adapted > 0
        reached = reached or (not layer.parallel and _mixer_is_tuned(tuning, sites)) or "trained" in tuning.statuses
        return _dense(block.intermediate, block.gated, block.activation, recipe, out, reached=reached), inner
    shared = _Kept(0)
    if block.shared_intermediate:
        used = uses(tuning, sites.forward_out)
        shared = _dense(block.shared_intermediate, True, block.activation, recipe, used)
        gate = recipe.formats.computed * hidden if block.shared_gate else 0
        shared = _Kept(shared.total + gate, shared.adapters)
    routed = _experts(block, hidden, recipe, uses(tuning, sites.experts))
    return _Kept(routed + _router(block, hidden, recipe, uses(tuning, sites.router)) + shared.total, shared.adapters), (
        inner
    )


def _dense(
    width: int, gated: bool, activation: Activation, recipe: Recipe, used: Uses, *, reached: bool = True
) -> _Kept:
    """Count the tensors of the intermediate width: what the activation and the gate keep, and what is read at last."""
    formats = recipe.formats
    kept = KEPT_BY_ACTIVATION[activation]
    reads_result = activation in _READS_ITS_RESULT and not gated
    tensors = kept.tensors + 1 if gated else kept.tensors - (0 if reads_result else 1)
    if gated and recipe.fused.gates:
        tensors = 2
    in_fp32 = kept.fp32 + (1 if gated and kept.fp32 else 0)
    wider = in_fp32 * (4 - formats.computed) if formats.autocast and formats.projected < 4 else 0
    read = read_bytes(recipe, used, formats.projected, is_kept=reads_result and reached, reached=reached)
    if recipe.fused.adapters and used.adapted:
        read = _Read(0, read.copies, read.adapters)
    if not reached:
        tensors = wider = 0
    return _Kept(width * (formats.projected * tensors + wider + read.whole + read.copies), width * read.adapters)


def _experts(block: Moe, hidden: int, recipe: Recipe, used: Uses) -> int:
    """Count the experts' input and output; frozen ones keep neither what they read nor what their last product reads.

    The output is kept for the router's weights.
    """
    size = recipe.formats.stream
    kept = KEPT_BY_ACTIVATION[block.activation].tensors + (2 if block.gated else 0)
    if not used.trained:
        return block.visits * size * (hidden + block.intermediate * (kept - 1))
    if not (block.every_expert and recipe.formats.autocast):
        return block.visits * size * (2 * hidden + block.intermediate * kept)
    inner = block.intermediate * kept * recipe.formats.computed
    return block.visits * ((size + recipe.formats.computed) * hidden + inner)


def _router(block: Moe, hidden: int, recipe: Recipe, used: Uses) -> int:
    copied = 4 * hidden if block.fp32_router and recipe.formats.stream < 4 and used.trained else 0
    return copied + STATISTIC * block.experts


def last_read(layer: Layer, hidden: int, recipe: Recipe, tuning: LayerTuning) -> int:
    """Return the bytes per element that the feed-forward block's last projection keeps of what it reads."""
    used = uses(tuning, sites_of(layer, hidden).forward_out)
    return read_bytes(recipe, used, recipe.formats.projected).total


def forward_norm_kept(layer: Layer, hidden: int, recipe: Recipe, tuning: LayerTuning) -> int:
    """Return what the norm before the feed-forward block, and the projections that read it, keep per token."""
    if layer.parallel or layer.norm_count < 2:
        return 0
    sites = sites_of(layer, hidden)
    used = uses(tuning, (*sites.forward_in, *sites.shared_gate, *sites.router))
    trained = _norms_are_trained(layer, hidden, tuning)
    own = norm_kept(layer.norm, hidden, recipe.formats.stream, recipe, trained=trained)
    return own + hidden * read_bytes(recipe, used, recipe.formats.normed(layer.norm)).total


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
