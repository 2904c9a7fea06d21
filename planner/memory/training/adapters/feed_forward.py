"""What the feed-forward block of one layer keeps where its projections are frozen, adapted, quantised or fused."""

from planner.memory.training.adapters.mixers import mixer_is_tuned
from planner.memory.training.adapters.settings import LayerSettings, Read, read_bytes
from planner.memory.training.adapters.sites import LayerTuning, Sites, Uses, sites_of, uses
from planner.memory.training.autograd.feed_forward import KEPT_BY_ACTIVATION, STATISTIC, keeps_result
from planner.memory.training.saved import SavedPerToken
from planner.models.architecture import Activation, Layer, Mlp, Moe


def saved_by_feed_forward(
    layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning, sites: Sites
) -> SavedPerToken:
    """Return what the feed-forward block keeps, and what the adapter of its last projection reads."""
    block = layer.feed_forward
    if block is None:
        return SavedPerToken()
    if isinstance(block, Mlp):
        into, out = uses(tuning, sites.forward_in), uses(tuning, sites.forward_out)
        reached = tuning.reached or into.trained + into.adapted > 0
        reached = reached or (not layer.parallel and mixer_is_tuned(tuning, sites)) or "trained" in tuning.statuses
        dropped = block.dropout > 0
        return _dense(
            block.intermediate, block.gated, block.activation, settings, out, reached=reached, dropped=dropped
        )
    routed = _experts(block, hidden, settings, uses(tuning, sites.experts))
    router = _router(block, hidden, settings, uses(tuning, sites.router))
    saved = SavedPerToken(feed_forward=routed + router)
    if not block.shared_intermediate:
        return saved
    gate = settings.formats.computed * hidden if block.shared_gate else 0
    used = uses(tuning, sites.forward_out)
    shared = _dense(block.shared_intermediate, True, block.activation, settings, used)
    return saved + shared + SavedPerToken(feed_forward=gate)


def _dense(
    width: int,
    gated: bool,
    activation: Activation,
    settings: LayerSettings,
    used: Uses,
    *,
    reached: bool = True,
    dropped: bool = False,
) -> SavedPerToken:
    """Count the tensors of the intermediate width: what the activation and the gate keep, and what is read at last."""
    formats = settings.formats
    kept = KEPT_BY_ACTIVATION[activation]
    own_result = keeps_result(activation, gated=gated)
    tensors = kept.tensors + 1 if gated else kept.tensors - (0 if own_result else 1)
    if gated and settings.fused.gates:
        tensors = 2
    in_fp32 = kept.fp32 + (1 if gated and kept.fp32 else 0)
    wider = in_fp32 * (4 - formats.computed) if formats.autocast and formats.projected < 4 else 0
    read = read_bytes(
        settings, used, formats.projected, is_kept=own_result and reached and not dropped, reached=reached
    )
    if settings.fused.adapters and used.adapted:
        read = Read(0, read.copies, read.adapters)
    if not reached:
        tensors = wider = 0
    held = width * (formats.projected * tensors + wider + read.whole + read.copies)
    return SavedPerToken(feed_forward=held, adapters=width * read.adapters)


def _experts(block: Moe, hidden: int, settings: LayerSettings, used: Uses) -> int:
    """Count the experts' input and output; frozen ones keep neither what they read nor what their last product reads.

    The output is kept for the router's weights.
    """
    size = settings.formats.stream
    kept = KEPT_BY_ACTIVATION[block.activation].tensors + (2 if block.gated else 0)
    if not used.trained:
        return block.visits * size * (hidden + block.intermediate * (kept - 1))
    if not (block.every_expert and settings.formats.autocast):
        return block.visits * size * (2 * hidden + block.intermediate * kept)
    inner = block.intermediate * kept * settings.formats.computed
    return block.visits * ((size + settings.formats.computed) * hidden + inner)


def _router(block: Moe, hidden: int, settings: LayerSettings, used: Uses) -> int:
    copied = 4 * hidden if block.fp32_router and settings.formats.stream < 4 and used.trained else 0
    return copied + STATISTIC * block.experts


def last_read(layer: Layer, hidden: int, settings: LayerSettings, tuning: LayerTuning) -> int:
    """Return the bytes per element that the feed-forward block's last projection keeps of what it reads."""
    used = uses(tuning, sites_of(layer, hidden).forward_out)
    return read_bytes(settings, used, settings.formats.projected).total
