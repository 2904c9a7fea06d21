"""Activations saved by a whole network that is partly frozen, adapted, quantized or fused."""

from planner.memory.kernels import MASK, attention_kernel, mask_bytes, needs_explicit_mask, softmax_bytes
from planner.memory.training.adapters.layer import (
    feed_forward_norm_bytes,
    last_projection_input_bytes,
    saved_by_tuned_layer,
)
from planner.memory.training.adapters.settings import Formats, LayerSettings, norm_saved_bytes, saved_input
from planner.memory.training.adapters.trained import (
    ReaderCounts,
    TunedLayers,
    Tuning,
    count_readers,
    projection_indices,
)
from planner.memory.training.autograd.network import (
    SCORE_GRADIENTS,
    expert_gradient_bytes,
    expert_weighting_bytes,
    feed_forward_gradient_bytes,
    feed_forward_parameters,
    first_checkpoint_bytes,
    is_norm,
    last_projection_parameters,
    layer_batch,
    shared_score_bytes,
    stack_batch,
    tower_end_bytes,
    trained_stacks,
)
from planner.memory.training.checkpointing import Checkpoints, saved_outputs, without_core_attention
from planner.memory.training.saved import (
    BackwardPoint,
    SavedActivations,
    SavedBytes,
    SavedPerToken,
    TokenBatch,
    highest_point,
    saved_by_stacks,
)
from planner.models.architecture import Architecture, Attention, LatentAttention, Mlp, Moe, Stack, Tensor
from planner.units import ceil_div


def tuned_backward_points(
    tuned: TunedLayers,
    settings: LayerSettings,
    ledger: SavedPerToken,
    tokens: int,
    *,
    checkpointed: bool,
) -> tuple[BackwardPoint, ...]:
    """Return the moments of the backward pass through a partly trained layer at which memory may peak, per token.

    **Formula**: as `backward.backward_points`, with (n + 1) · p · i less what the last projection saved of its input
    (p bytes of a projection's output, n branches); where it is adapted at least the gradient of its input in the
    adapters' format; where its matrix is frozen there is no gradient of it.
    """
    layer, hidden, formats = tuned.layer, tuned.stack.hidden, settings.formats
    block, stream = layer.feed_forward, formats.stream * hidden
    stages = [_feed_forward_point(tuned, settings, stream, checkpointed)]
    if settings.adapters is not None and isinstance(block, Mlp) and not settings.fused.adapters:
        stages.append(BackwardPoint(_adapted_feed_forward_bytes(tuned, settings, block, checkpointed)))
    if isinstance(block, Moe) and not block.every_expert:
        flight = expert_weighting_bytes(block, hidden, formats.precision) + 2 * stream
        stages.append(BackwardPoint(flight))
    if checkpointed:
        stages.append(BackwardPoint(3 * stream + formats.computed * hidden))
    scores = _score_gradient_bytes(tuned, settings, ledger, tokens)
    if scores is not None:
        trained = feed_forward_parameters(block, hidden) if _feed_forward_is_trained(tuned) else 0
        stages.append(BackwardPoint(scores, trained))
    return tuple(stages)


def _feed_forward_point(
    tuned: TunedLayers, settings: LayerSettings, stream_bytes: int, checkpointed: bool
) -> BackwardPoint:
    """Return the moment of the backward pass at which the feed-forward block's gradients peak, per token."""
    layer, hidden, formats = tuned.layer, tuned.stack.hidden, settings.formats
    block = layer.feed_forward
    trained = last_projection_parameters(block, hidden) if _feed_forward_is_trained(tuned) else 0
    if isinstance(block, Moe):
        flight = expert_gradient_bytes(block, hidden, formats.precision)
        if not block.every_expert and not trained:
            # The input of their last product was not saved.
            flight += formats.stream * block.visits * block.intermediate
        return BackwardPoint(flight + stream_bytes, trained)
    if not isinstance(block, Mlp):
        flight = feed_forward_gradient_bytes(block, hidden, formats.precision, checkpointed)
        return BackwardPoint(flight + stream_bytes, trained)
    width = block.intermediate
    kept = last_projection_input_bytes(layer, hidden, settings, tuned.tuning)
    as_projected = formats.precision._replace(compute_bytes=formats.projected)
    whole = feed_forward_gradient_bytes(block, hidden, as_projected, checkpointed)
    flight = 0 if settings.fused.gates and block.gated else whole + width * (formats.projected - kept)
    if kept and settings.adapters is not None:
        flight = max(flight, width * max(settings.adapters.read, settings.adapters.parameter))
    uncast = last_projection_parameters(block, hidden) if formats.base == "plain" else 0
    return BackwardPoint(max(flight, 0) + stream_bytes, trained, uncast)


def _adapted_feed_forward_bytes(tuned: TunedLayers, settings: LayerSettings, block: Mlp, checkpointed: bool) -> int:
    """Return the bytes per token of temporary tensors while an adapted feed-forward block runs.

    **Formula**: at its last projection i · (p + a): its input, and under autocast a copy in the adapters' format,
    which is cast once more; 2a if dropout's result is cast instead. Without autocast the copy is what is saved, but
    for dropout, whose result is: i · (p + a) then, and h · (p + 2a) for the base's output and B's, as it is and scaled;
    or at the projection before i · 2a for B's output, before the last one has copied its input. The stream, its
    normed values, and the gradients that wait where a checkpointed layer is recomputed.

    **Source**: peft 0.21 `tuners.lora.layer.Linear.forward`: `x` is cast, and refers to the copy to the end.
    """
    formats, adapters, hidden = settings.formats, settings.adapters, tuned.stack.hidden
    sites = projection_indices(tuned.layer, hidden)
    out, into = count_readers(tuned.tuning, sites.forward_out), count_readers(tuned.tuning, sites.forward_in)
    if adapters is None or not (out.adapted or into.adapted):
        return 0
    kept = last_projection_input_bytes(tuned.layer, hidden, settings, tuned.tuning)
    normed = formats.normed_bytes(tuned.layer.norm)
    narrow = formats.stream + (0 if adapters.shares_input(normed) else normed)
    unsaved = 0 if adapters.shares_input(formats.projected) else formats.projected
    copied = adapters.parameter if adapters.converts and adapters.parameter != formats.projected else 0
    stages = [(0, narrow)]
    if out.adapted and formats.autocast:
        stages = [(copied * (1 + adapters.dropout) + (unsaved if kept else 0), narrow + formats.projected)]
    elif not formats.autocast:
        if out.adapted and adapters.dropout:
            stages.append((copied + unsaved, narrow + formats.projected + 2 * adapters.parameter))
        if into.adapted:
            stages.append((2 * adapters.read - kept, narrow))
    made = formats.computed if formats.autocast else adapters.parameter
    beside = formats.stream + made if checkpointed else 0
    return max(wide * block.intermediate + hidden * (small + beside) for wide, small in stages)


def _feed_forward_is_trained(tuned: TunedLayers) -> bool:
    """Return whether the last projection or any expert of the feed-forward block is trained."""
    sites = projection_indices(tuned.layer, tuned.stack.hidden)
    return any(tuned.tuning.statuses[place] == "trained" for place in (*sites.forward_out, *sites.experts))


def _score_gradient_bytes(
    tuned: TunedLayers, settings: LayerSettings, ledger: SavedPerToken, tokens: int
) -> int | None:
    """Return the bytes per token of gradients alive in eager attention's scores, None for fused kernels."""
    layer, hidden, formats = tuned.layer, tuned.stack.hidden, settings.formats
    mixer = layer.mixer
    if not isinstance(mixer, Attention | LatentAttention):
        return None
    kernel = attention_kernel(
        mixer, formats.precision, settings.attention, needs_explicit_mask(layer, tokens, settings.attention)
    )
    if kernel == "fused":
        return None
    softmax = mixer.heads * softmax_bytes(mixer, kernel, formats.precision)
    capped = mixer.heads * formats.computed if isinstance(mixer, Attention) and mixer.softcap else 0
    flight = tokens * (SCORE_GRADIENTS * softmax - (ledger.scores - softmax - capped)) + formats.stream * hidden
    freed = ledger.feed_forward + feed_forward_norm_bytes(layer, hidden, settings, tuned.tuning)
    return flight - freed


def saved_by_tuned_network(
    architecture: Architecture,
    tuning: Tuning,
    settings: LayerSettings,
    sequences: int,
    length: int,
    checkpoints: Checkpoints,
) -> SavedActivations:
    """Return the activations saved by a forward pass of a network whose trained tensors are those in `tuning`."""
    stacks: list[SavedActivations] = []
    batch = TokenBatch(sequences, 0)
    for stack in trained_stacks(architecture):
        batch = stack_batch(stack, sequences, length, batch.tokens)
        own = settings._replace(formats=_stack_formats(stack, settings.formats))
        begins = not any(before.first for before in stacks)
        edges = _saved_outside_layers(architecture, stack, tuning, own, batch, checkpoints, nothing_saved_before=begins)
        layers = [layers for layers in tuning.layers if layers.stack == stack]
        stacks.append(_saved_with_layers(edges, layers, own, batch, checkpoints))
    saved = saved_by_stacks(stacks, settings.formats.parameter)
    depth = max(saved.depth, 1)
    return saved._replace(
        one_layer=saved.one_layer * min(checkpoints.every, depth),
        recomputed=min(saved.recomputed, saved.one_layer * depth),
    )


def _stack_formats(stack: Stack, formats: Formats) -> Formats:
    """Return the bytes per element within `stack`: a fused embedding norm makes the stream fp32 under autocast."""
    normed = any(is_norm(tensor, stack.hidden) for tensor in stack.before)
    native = stack.groups[0].layer.norm.native
    return formats._replace(stream=4) if formats.autocast and normed and native else formats


def _saved_outside_layers(
    architecture: Architecture,
    stack: Stack,
    tuning: Tuning,
    settings: LayerSettings,
    batch: TokenBatch,
    checkpoints: Checkpoints,
    *,
    nothing_saved_before: bool,
) -> SavedActivations:
    """Return the activations of `stack` saved outside its layers, or once for all its layers.

    `nothing_saved_before` means that nothing before the stack is saved.
    """
    formats, every, shards = settings.formats, batch.total_tokens, stack.groups[0].layer.stream_shards
    checkpointed, starts = checkpoints.kind != "none", tuning.starts_before
    norm = _edge_norm_bytes(stack, settings, trained=tuning.whole)
    before = norm * sum([1 for tensor in stack.before if is_norm(tensor, stack.hidden)]) if starts else 0
    if stack.images.count:
        behind = _tower_end_bytes(stack, tuning, settings, batch)
    else:
        behind = every * _bytes_after_layers(architecture, stack, tuning, settings) // shards
    kept = SavedBytes(
        norms=every * before // shards + behind,
        scores=shared_score_bytes(stack, batch, formats.precision, settings.attention, checkpointed),
        dropout=every * MASK * stack.hidden // shards if stack.embedding_dropout and starts else 0,
    )
    first = every * before // shards
    if checkpointed:
        first = every * (before + first_checkpoint_bytes(stack, formats.precision)) // shards
        first += mask_bytes(stack, batch.sequences, batch.tokens, formats.precision, settings.attention, groups=1)
        if nothing_saved_before and not starts and architecture.kind != "vision-encoder":
            kept += SavedBytes(checkpoints=every * _kept_embedding_copies(stack) * stack.hidden * formats.stream)
    return SavedActivations(kept, one_layer=0, point=BackwardPoint(0), first=first, behind=behind, layers=(), depth=0)


def _saved_with_layers(
    edges: SavedActivations,
    tuned: list[TunedLayers],
    settings: LayerSettings,
    batch: TokenBatch,
    checkpoints: Checkpoints,
) -> SavedActivations:
    """Return the activations in `edges`, plus those of all layers that a gradient passes through."""
    kept, largest, recomputed = edges.kept, 0, 0
    points: list[BackwardPoint] = []
    layers: list[tuple[int, SavedPerToken]] = []
    for tuned_layers in tuned:
        hidden, shards = tuned_layers.stack.hidden, tuned_layers.layer.stream_shards
        masked = needs_explicit_mask(tuned_layers.layer, batch.tokens, settings.attention)
        own = layer_batch(tuned_layers.layer, batch)
        layer = saved_by_tuned_layer(tuned_layers.layer, hidden, settings, tuned_layers.tuning, masked)
        each = layer.for_batch(*own)
        largest = max(largest, each.total)
        checkpointed = checkpoints.kind != "none"
        points += tuned_backward_points(tuned_layers, settings, layer, own.tokens, checkpointed=checkpointed)
        if checkpointed:
            stream = 0 if checkpoints.offloaded else settings.formats.stream * hidden // shards
            outputs = 0
            if checkpoints.kind == "selective":
                saved = saved_outputs(tuned_layers.layer, hidden, settings, tuned_layers.tuning, masked)
                outputs = saved.total(batch.sequences, batch.tokens)
            inputs = ceil_div(tuned_layers.number, checkpoints.every) * batch.total_tokens * stream
            kept += SavedBytes(checkpoints=inputs + tuned_layers.number * outputs)
            recomputed = max(recomputed, each.total * checkpoints.every - outputs)
            continue
        if checkpoints.core_attention:
            layer = without_core_attention(layer, tuned_layers.layer, settings, masked)
            whole, each = each, layer.for_batch(*own)
            recomputed = max(recomputed, whole.total - each.total)
        kept += each * tuned_layers.number
        layers.append((tuned_layers.number, layer))
    return edges._replace(
        kept=kept,
        one_layer=largest,
        point=highest_point([point.for_tokens(batch.total_tokens) for point in points], settings.formats.parameter),
        layers=tuple(layers),
        depth=sum([tuned_layers.number for tuned_layers in tuned]),
        recomputed=recomputed,
    )


def _kept_embedding_copies(stack: Stack) -> int:
    """Return how many copies of the embedding's output checkpointing keeps alive in a frozen network.

    With checkpointing transformers marks it as requiring a gradient. It and its gradient live on with the last loss's
    graph, until the next loss replaces that; if positions are added to it, it is no checkpoint itself.

    **Source**: transformers `PreTrainedModel.enable_input_require_grads`.
    """
    return 2 if len(stack.before) < 2 else 3


def _tower_end_bytes(stack: Stack, tuning: Tuning, settings: LayerSettings, batch: TokenBatch) -> int:
    """Return the bytes saved by the final norm and the projector of a vision tower."""
    statuses, size = dict(tuning.behind), settings.formats.projected

    def read_bytes(tensor: Tensor) -> int:
        status = statuses[tensor.name]
        used = ReaderCounts(int(status == "trained"), int(status == "adapted"), int(status == "frozen"))
        return saved_input(settings, used, size).total

    reached = any(layers.stack == stack for layers in tuning.layers) or tuning.starts_before
    return tower_end_bytes(stack, batch, settings.formats.precision, read_bytes, reached=reached)


def _edge_norm_bytes(stack: Stack, settings: LayerSettings, *, trained: bool) -> int:
    """Return the bytes per token saved by a norm before or after the layers."""
    return norm_saved_bytes(
        stack.groups[0].layer.norm, stack.hidden, settings.formats.stream, settings, trained=trained
    )


def _bytes_after_layers(architecture: Architecture, stack: Stack, tuning: Tuning, settings: LayerSettings) -> int:
    """Return the bytes per token saved after the last layer: norms, tuned projections, input of the head."""
    formats = settings.formats
    head = ReaderCounts(trained=1) if tuning.head == "trained" else ReaderCounts(frozen=1)
    statuses = dict(tuning.behind)
    kept, size = 0, formats.projected
    projected, reached = False, bool(tuning.layers) or tuning.starts_before
    for tensor in stack.after:
        if is_norm(tensor, stack.hidden):
            trained = statuses.get(tensor.name) == "trained"
            kept += _edge_norm_bytes(stack, settings, trained=trained) if trained or reached else 0
            size, projected = formats.normed_bytes(stack.groups[0].layer.norm), False
        elif tensor.role == "linear" and architecture.labels is None:
            status = statuses.get(tensor.name, "frozen")
            used = ReaderCounts(int(status == "trained"), int(status == "adapted"), int(status == "frozen"))
            kept += tensor.shape[1] * saved_input(settings, used, size).total + formats.projected * tensor.shape[0]
            size, projected = formats.projected, True
    if projected or architecture.labels is not None:
        return kept
    read = saved_input(settings._replace(adapters=None), head, size)
    is_encoder = stack is not architecture.main
    return kept + stack.hidden * (formats.stream if is_encoder and tuning.whole else read.total)
