"""What a forward pass keeps, over the whole network, where some of it is frozen, adapted, quantised or fused."""

from functools import lru_cache

from planner.memory.kernels import MASK, is_masked, mask_bytes
from planner.memory.training.adapters.backward import tuned_backward_points
from planner.memory.training.adapters.layer import saved_by_tuned_layer
from planner.memory.training.adapters.settings import Formats, LayerSettings, norm_kept, read_bytes
from planner.memory.training.adapters.sites import Uses
from planner.memory.training.adapters.trained import TunedLayers, Tuning
from planner.memory.training.autograd.layer import stack_positions
from planner.memory.training.autograd.network import first_input, is_norm, shared_scores, trained_stacks
from planner.memory.training.checkpointing import Checkpoints, saved_outputs, without_core_attention
from planner.memory.training.saved import (
    BackwardPoint,
    SavedActivations,
    SavedByStack,
    SavedBytes,
    SavedPerToken,
    saved_by_stacks,
)
from planner.models.architecture import Architecture, Stack
from planner.units import ceil_div


@lru_cache(maxsize=1024)
def saved_by_tuned_network(
    architecture: Architecture,
    tuning: Tuning,
    settings: LayerSettings,
    sequences: int,
    length: int,
    checkpoints: Checkpoints,
) -> SavedActivations:
    """Return what a forward pass over `sequences` × `length` tokens keeps where `tuning` is trained by `settings`."""
    stacks: list[SavedByStack] = []
    tokens = 0
    for stack in trained_stacks(architecture):
        source, tokens = tokens, stack_positions(stack, length)
        own = settings._replace(formats=_formats_in(stack, settings.formats))
        begins = not any(before.first for before in stacks)
        edges = _edges(architecture, stack, tuning, own, sequences, tokens, source, checkpoints, begins=begins)
        layers = [layers for layers in tuning.layers if layers.stack == stack]
        stacks.append(_with_layers(edges, layers, own, sequences, tokens, source, checkpoints))
    saved = saved_by_stacks(stacks, settings.formats.parameter)
    depth = max(saved.depth, 1)
    return saved._replace(
        one_layer=saved.one_layer * min(checkpoints.every, depth),
        recomputed=min(saved.recomputed, saved.one_layer * depth),
    )


def _formats_in(stack: Stack, formats: Formats) -> Formats:
    """Return the formats within `stack`: a fused norm of the embedding puts the stream in fp32 under autocast."""
    normed = any(is_norm(tensor, stack.hidden) for tensor in stack.before)
    native = stack.groups[0].layer.norm.native
    return formats._replace(stream=4) if formats.autocast and normed and native else formats


def _edges(
    architecture: Architecture,
    stack: Stack,
    tuning: Tuning,
    settings: LayerSettings,
    sequences: int,
    tokens: int,
    source: int,
    checkpoints: Checkpoints,
    *,
    begins: bool,
) -> SavedByStack:
    """Return what stands before the layers of `stack`, behind them, and is shared by them; no layer yet.

    `begins` says that nothing before it is kept.
    """
    formats, every, shards = settings.formats, sequences * tokens, stack.groups[0].layer.stream_shards
    checkpointed, starts = checkpoints.kind != "none", tuning.starts_before
    norm = _edge_norm(stack, settings, trained=tuning.whole)
    before = norm * sum([1 for tensor in stack.before if is_norm(tensor, stack.hidden)]) if starts else 0
    behind = every * _behind(architecture, stack, tuning, settings) // shards
    kept = SavedBytes(
        norms=every * before // shards + behind,
        scores=shared_scores(stack, sequences, tokens, source, formats.precision, settings.attention, checkpointed),
        dropout=every * MASK * stack.hidden // shards if stack.embedding_dropout and starts else 0,
    )
    first = every * before // shards
    if checkpointed:
        first = every * (before + first_input(stack, formats.precision)) // shards
        first += mask_bytes(stack, sequences, tokens, formats.precision, settings.attention, groups=1)
        if begins and not starts:
            kept += SavedBytes(checkpoints=every * _kept_input(stack) * stack.hidden * formats.stream)
    return SavedByStack(kept, first, behind, largest=0, points=(), layers=(), depth=0)


def _with_layers(
    edges: SavedByStack,
    tuned: list[TunedLayers],
    settings: LayerSettings,
    sequences: int,
    tokens: int,
    source: int,
    checkpoints: Checkpoints,
) -> SavedByStack:
    """Return what is kept of a stack with all layers that a derivative goes through, those trained alike together."""
    kept, largest, recomputed = edges.kept, 0, 0
    points: list[BackwardPoint] = []
    layers: list[tuple[int, SavedPerToken]] = []
    for one in tuned:
        hidden, shards = one.stack.hidden, one.layer.stream_shards
        masked = is_masked(one.layer, tokens, settings.attention)
        layer = saved_by_tuned_layer(one.layer, hidden, settings, one.tuning, masked)
        each = layer.of(sequences, tokens, source)
        largest = max(largest, each.total)
        checkpointed = checkpoints.kind != "none"
        points += tuned_backward_points(one, settings, layer, sequences, tokens, checkpointed=checkpointed)
        if checkpointed:
            stream = 0 if checkpoints.offloaded else settings.formats.stream * hidden // shards
            outputs = 0
            if checkpoints.kind == "selective":
                outputs = saved_outputs(one.layer, hidden, settings, one.tuning, masked).total(sequences, tokens)
            inputs = ceil_div(one.number, checkpoints.every) * sequences * tokens * stream
            kept += SavedBytes(checkpoints=inputs + one.number * outputs)
            recomputed = max(recomputed, each.total * checkpoints.every - outputs)
            continue
        if checkpoints.core_attention:
            layer = without_core_attention(layer, one.layer, settings, masked)
            whole, each = each, layer.of(sequences, tokens, source)
            recomputed = max(recomputed, whole.total - each.total)
        kept += each * one.number
        layers.append((one.number, layer))
    return edges._replace(
        kept=kept,
        largest=largest,
        points=tuple(points),
        layers=tuple(layers),
        depth=sum([one.number for one in tuned]),
        recomputed=recomputed,
    )


def _kept_input(stack: Stack) -> int:
    """Return how often the embedding of frozen networks is kept beside the checkpoints.

    With checkpoints transformers lets it need a gradient. It and its gradient live on with the graph of the last loss,
    until the next one takes its name; where more is added to it, it is no checkpoint itself.

    **Source**: transformers `PreTrainedModel.enable_input_require_grads`.
    """
    return 2 if len(stack.before) < 2 else 3


def _edge_norm(stack: Stack, settings: LayerSettings, *, trained: bool) -> int:
    return norm_kept(stack.groups[0].layer.norm, stack.hidden, settings.formats.stream, settings, trained=trained)


def _behind(architecture: Architecture, stack: Stack, tuning: Tuning, settings: LayerSettings) -> int:
    """Return what is kept per token behind the last layer: norms, adapted or trained projections, the head's input."""
    formats = settings.formats
    head = Uses(trained=1) if tuning.head == "trained" else Uses(frozen=1)
    statuses = dict(tuning.behind)
    kept, size = 0, formats.projected
    projected, reached = False, bool(tuning.layers) or tuning.starts_before
    for tensor in stack.after:
        if is_norm(tensor, stack.hidden):
            trained = statuses.get(tensor.name) == "trained"
            kept += _edge_norm(stack, settings, trained=trained) if trained or reached else 0
            size, projected = formats.normed(stack.groups[0].layer.norm), False
        elif tensor.role == "linear" and architecture.labels is None:
            status = statuses.get(tensor.name, "frozen")
            used = Uses(int(status == "trained"), int(status == "adapted"), int(status == "frozen"))
            kept += tensor.shape[1] * read_bytes(settings, used, size).total + formats.projected * tensor.shape[0]
            size, projected = formats.projected, True
    if projected or architecture.labels is not None:
        return kept
    read = read_bytes(settings._replace(adapters=None), head, size)
    is_encoder = stack is not architecture.main
    return kept + stack.hidden * (formats.stream if is_encoder and tuning.whole else read.total)
