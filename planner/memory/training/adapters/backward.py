"""What the backward pass through one layer holds beside what was kept, where some of it is frozen or adapted."""

from planner.memory.kernels import is_masked, kernel_of, softmax_bytes
from planner.memory.training.adapters.feed_forward import last_read
from planner.memory.training.adapters.layer import forward_norm_kept
from planner.memory.training.adapters.settings import LayerSettings
from planner.memory.training.adapters.sites import sites_of, uses
from planner.memory.training.adapters.trained import TunedLayers
from planner.memory.training.autograd.backward import (
    block_flight,
    experts_flight,
    last_projection,
    projections,
    weighting_flight,
)
from planner.memory.training.saved import BackwardPoint, SavedPerToken
from planner.models.architecture import Attention, LatentAttention, Mlp, Moe

_SCORE_GRADIENTS = 3
"""Of the softmax: its output's gradient, the product of both inside the kernel, and its input's gradient."""


def tuned_backward_points(
    tuned: TunedLayers,
    settings: LayerSettings,
    ledger: SavedPerToken,
    sequences: int,
    tokens: int,
    *,
    checkpointed: bool,
) -> tuple[BackwardPoint, ...]:
    """Return the points at which the backward pass through a layer may hold most beside what it kept.

    **Formula**: as `backward.backward_points`, with (n + 1) · p · i less what the last projection kept of its input
    (p bytes of a projection's output, n branches); where it is adapted at least the gradient of its input in the
    adapters' format; where its matrix is frozen there is no gradient of it.
    """
    layer, hidden, formats = tuned.layer, tuned.stack.hidden, settings.formats
    block, every = layer.feed_forward, sequences * tokens
    stream = formats.stream * hidden
    stages = [_in_block(tuned, settings, every, stream, checkpointed)]
    if settings.adapters is not None and isinstance(block, Mlp) and not settings.fused.adapters:
        stages.append(BackwardPoint(every * _computing(tuned, settings, block, checkpointed), 0, 0))
    if isinstance(block, Moe) and not block.every_expert:
        flight = weighting_flight(block, hidden, formats.precision) + 2 * stream
        stages.append(BackwardPoint(every * flight, 0, 0))
    if checkpointed:
        stages.append(BackwardPoint(every * (3 * stream + formats.computed * hidden), 0, 0))
    scores = _in_scores(tuned, settings, ledger, tokens)
    if scores is not None:
        trained = projections(block, hidden) if _forward_is_trained(tuned) else 0
        stages.append(BackwardPoint(every * scores, trained, 0))
    return tuple(stages)


def _in_block(
    tuned: TunedLayers, settings: LayerSettings, every: int, stream: int, checkpointed: bool
) -> BackwardPoint:
    layer, hidden, formats = tuned.layer, tuned.stack.hidden, settings.formats
    block = layer.feed_forward
    trained = last_projection(block, hidden) if _forward_is_trained(tuned) else 0
    if isinstance(block, Moe):
        flight = experts_flight(block, hidden, formats.precision)
        if not block.every_expert and not trained:
            # What their last product reads was not kept.
            flight += formats.stream * block.visits * block.intermediate
        return BackwardPoint(every * (flight + stream), trained, 0)
    if not isinstance(block, Mlp):
        return BackwardPoint(
            every * (block_flight(block, hidden, formats.precision, checkpointed) + stream), trained, 0
        )
    width = block.intermediate
    kept = last_read(layer, hidden, settings, tuned.tuning)
    as_projected = formats.precision._replace(compute_bytes=formats.projected)
    whole = block_flight(block, hidden, as_projected, checkpointed)
    flight = 0 if settings.fused.gates and block.gated else whole + width * (formats.projected - kept)
    if kept and settings.adapters is not None:
        flight = max(flight, width * max(settings.adapters.read, settings.adapters.parameter))
    uncast = last_projection(block, hidden) if formats.base == "plain" else 0
    return BackwardPoint(every * (max(flight, 0) + stream), trained, uncast)


def _computing(tuned: TunedLayers, settings: LayerSettings, block: Mlp, checkpointed: bool) -> int:
    """Return what the adapted feed-forward block holds while it is computed, beside what it keeps, per token.

    **Formula**: at its last projection i · (p + a): what it reads, and under autocast a copy in the adapters' format,
    which is cast once more; without autocast, at the projection before, i · 2a for what B puts out, as it is and
    scaled, before the last one has copied its input. The stream, its normed values, and the gradients that wait where
    a checkpointed layer is computed again.
    """
    formats, adapters, hidden = settings.formats, settings.adapters, tuned.stack.hidden
    sites = sites_of(tuned.layer, hidden)
    out, into = uses(tuned.tuning, sites.forward_out), uses(tuned.tuning, sites.forward_in)
    if adapters is None or not (out.adapted or into.adapted):
        return 0
    kept = last_read(tuned.layer, hidden, settings, tuned.tuning)
    normed = formats.normed(tuned.layer.norm)
    wide, narrow = 0, formats.stream + (0 if adapters.shares(normed) else normed)
    if out.adapted and formats.autocast:
        copied = adapters.parameter if adapters.converts and adapters.parameter != formats.projected else 0
        wide = copied + (formats.projected if kept and not adapters.shares(formats.projected) else 0)
        narrow += formats.projected
    elif into.adapted and not formats.autocast:
        wide = 2 * adapters.read - kept
    made = formats.computed if formats.autocast else adapters.parameter
    return wide * block.intermediate + hidden * (narrow + (formats.stream + made if checkpointed else 0))


def _forward_is_trained(tuned: TunedLayers) -> bool:
    sites = sites_of(tuned.layer, tuned.stack.hidden)
    return any(tuned.tuning.statuses[place] == "trained" for place in (*sites.forward_out, *sites.experts))


def _in_scores(tuned: TunedLayers, settings: LayerSettings, ledger: SavedPerToken, tokens: int) -> int | None:
    layer, hidden, formats = tuned.layer, tuned.stack.hidden, settings.formats
    mixer = layer.mixer
    if not isinstance(mixer, Attention | LatentAttention):
        return None
    kernel = kernel_of(mixer, formats.precision, settings.attention, is_masked(layer, tokens, settings.attention))
    if kernel == "fused":
        return None
    softmax = mixer.heads * softmax_bytes(mixer, kernel, formats.precision)
    capped = mixer.heads * formats.computed if isinstance(mixer, Attention) and mixer.softcap else 0
    flight = tokens * (_SCORE_GRADIENTS * softmax - (ledger.scores - softmax - capped)) + formats.stream * hidden
    freed = ledger.feed_forward + forward_norm_kept(layer, hidden, settings, tuned.tuning)
    return flight - freed
