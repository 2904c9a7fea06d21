"""Activations that a whole network saves for the backward pass, with or without checkpointing."""

from functools import lru_cache
from math import prod
from typing import NamedTuple

from planner.memory.kernels import MASK, AttentionKind, mask_bytes, needs_explicit_mask
from planner.memory.logits import predicts_every_token
from planner.memory.precision import Precision
from planner.memory.training.autograd.backward import backward_points
from planner.memory.training.autograd.layer import INDEX, norm_bytes, saved_by_layer
from planner.memory.training.saved import (
    BackwardPoint,
    SavedActivations,
    SavedBytes,
    SavedPerToken,
    highest_point,
    saved_by_stacks,
)
from planner.models.architecture import Architecture, Attention, LayerGroup, Stack, Tensor


def saved_by_network(
    architecture: Architecture,
    sequences: int,
    length: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> SavedActivations:
    """Return the activations saved by a forward pass over `sequences` × `length` tokens in full fine-tuning.

    With checkpointing each layer saves its input only, and one layer at a time is recomputed in the backward pass.
    """
    stacks: list[SavedActivations] = []
    tokens = 0
    for stack in trained_stacks(architecture):
        source, tokens = tokens, stack.token_count(length)
        stacks.append(
            _saved_by_stack(architecture, stack, sequences, tokens, source, precision, attention, checkpointed)
        )
    saved = saved_by_stacks(stacks[-1:], precision.parameter_bytes)
    if len(stacks) == 1:
        return saved
    # The encoder runs before it: its layers, their saved activations, and the gradient of its output.
    encoder, decoder = saved_by_stacks(stacks[:-1], precision.parameter_bytes), architecture.main
    output = sequences * source * decoder.hidden * precision.residual_bytes
    shared = shared_score_bytes(decoder, sequences, tokens, source, precision, attention, checkpointed)
    return saved._replace(
        kept=encoder.kept + saved.kept,
        first=encoder.first or saved.first,
        layers=(*encoder.layers, *saved.layers),
        depth=encoder.depth + saved.depth,
        entry=encoder.one_layer + encoder.point.bytes,
        between=encoder.total + output + shared + saved.one_layer + saved.point.bytes,
    )


def _saved_by_stack(
    architecture: Architecture,
    stack: Stack,
    sequences: int,
    tokens: int,
    encoder_tokens: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> SavedActivations:
    """Return the activations saved by one stack for `tokens` per sequence, after `encoder_tokens` of an encoder."""
    total_tokens, shards = sequences * tokens, stack.groups[0].layer.stream_shards
    before_each, behind_each = _bytes_outside_layers(stack, architecture, precision)
    before, behind = total_tokens * before_each // shards, total_tokens * behind_each // shards
    kept = SavedBytes(
        norms=before + behind,
        scores=shared_score_bytes(stack, sequences, tokens, encoder_tokens, precision, attention, checkpointed),
        dropout=total_tokens * MASK * stack.hidden // shards if stack.embedding_dropout else 0,
    )
    first = before
    if checkpointed:
        first += total_tokens * first_checkpoint_bytes(stack, precision) // shards
        first += mask_bytes(stack, sequences, tokens, precision, attention, groups=1)
    layers = _saved_by_layers(
        stack.groups, stack.hidden, sequences, tokens, encoder_tokens, precision, attention, checkpointed
    )
    return SavedActivations(
        kept + layers.kept,
        layers.largest,
        layers.point,
        first,
        behind,
        layers.layers,
        stack.layer_count,
        layers.largest if checkpointed else 0,
    )


class _SavedByLayers(NamedTuple):
    """Activations kept by a stack's layers and saved by the largest, the peak of its backward pass, and all per token.

    `layers` are empty with checkpointing.
    """

    kept: SavedBytes
    largest: int
    point: BackwardPoint
    layers: tuple[tuple[int, SavedPerToken], ...]


@lru_cache(maxsize=512)
def _saved_by_layers(
    groups: tuple[LayerGroup, ...],
    hidden: int,
    sequences: int,
    tokens: int,
    encoder_tokens: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> _SavedByLayers:
    """Return what `groups` of layers save for a batch, cached since the stages of a pipeline have the same layers."""
    kept, largest = SavedBytes(), 0
    layers: list[tuple[int, SavedPerToken]] = []
    points: list[BackwardPoint] = []
    for group in groups:
        masked = needs_explicit_mask(group.layer, tokens, attention)
        per_token = saved_by_layer(group.layer, hidden, precision, attention, masked)
        saved = per_token.for_batch(sequences, tokens, encoder_tokens)
        if checkpointed:
            inputs = group.count * sequences * tokens * hidden * precision.residual_bytes
            kept += SavedBytes(checkpoints=inputs // group.layer.stream_shards)
        else:
            kept += saved * group.count
            layers.append((group.count, per_token))
        largest = max(largest, saved.total)
        points += backward_points(group.layer, hidden, tokens, precision, attention, checkpointed)
    point = highest_point([point.for_tokens(sequences * tokens) for point in points], precision.parameter_bytes)
    return _SavedByLayers(kept, largest, point, tuple(layers))


def trained_stacks(architecture: Architecture) -> tuple[Stack, ...]:
    """Return the stacks that run in a training step; vision and audio towers get no input."""
    if architecture.kind != "vision-language":
        return architecture.stacks
    return tuple(stack for stack in architecture.stacks if stack.name not in ("vision", "audio"))


def shared_score_bytes(
    stack: Stack,
    sequences: int,
    tokens: int,
    encoder_tokens: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> int:
    """Return the bytes of masks and position biases that layers share, and of the biases' bucket indices.

    **Formula**: t · (8 · s² for the bucket of each pair of positions + a · s · s' zeros where cross-attention has
    none), with t layers that have a table of their own: the first of T5, every one of UMT5, whose checkpoints
    recompute it. With checkpoints also the biases of a · s² pairs.
    """
    masks = mask_bytes(stack, sequences, tokens, precision, attention) if checkpointed else 0
    layer = stack.groups[0].layer
    if not isinstance(layer.mixer, Attention) or not layer.mixer.position_bias:
        return masks
    zeros = layer.mixer.heads * tokens * encoder_tokens * precision.compute_bytes if layer.cross_attention else 0
    biases = layer.mixer.heads * precision.parameter_bytes if checkpointed else 0
    tables = 1 if checkpointed else max(1, _bias_tables(stack))
    return masks + tables * (INDEX * tokens * tokens + zeros) + biases * tokens * tokens


def _bias_tables(stack: Stack) -> int:
    """Return the number of layers with a table of position biases; MPNet's stands before them."""
    return sum(
        group.count
        for group in stack.groups
        if any("relative_attention_bias" in tensor.name for tensor in group.layer.tensors)
    )


@lru_cache(maxsize=512)
def _bytes_outside_layers(stack: Stack, architecture: Architecture, precision: Precision) -> tuple[int, int]:
    """Return the bytes per token that a stack saves before its layers, and after its layers.

    The first norms' output is counted with the layer that reads it.
    """
    own = norm_bytes(stack.groups[0].layer.norm, stack.hidden, precision)
    before = sum(own for tensor in stack.before if is_norm(tensor, stack.hidden))
    return before + _stem_bytes(stack, precision), _bytes_after_layers(stack, architecture, precision, own)


def _stem_bytes(stack: Stack, precision: Precision) -> int:
    """Return the bytes per position saved by the convolutions before the layers of an image or audio encoder.

    **Formula**: the elements of each position, in the stream's format and under autocast once more; for
    sound the first convolution's output and its GELU, twice as long, and the second one's output: 5 · h · w.

    **Source**: transformers `modeling_vit.ViTPatchEmbeddings`, `modeling_whisper.WhisperEncoder`.
    """
    convolutions = [tensor for tensor in stack.before if tensor.role == "conv"]
    if not convolutions:
        return 0
    copied = precision.compute_bytes if precision.autocast else 0
    if stack.name == "audio":
        frames = 2 * convolutions[0].shape[1]
        return (precision.residual_bytes + copied) * frames + precision.compute_bytes * 5 * stack.hidden
    return (precision.residual_bytes + copied) * prod(convolutions[0].shape[1:])


def first_checkpoint_bytes(stack: Stack, precision: Precision) -> int:
    """Return the bytes per token of the first layer's checkpoint, 0 if its norm saves the same input."""
    kept = stack.groups[0].layer.norm.native or precision.residual_bytes == 4
    return 0 if kept else precision.residual_bytes * stack.hidden


def _bytes_after_layers(stack: Stack, architecture: Architecture, precision: Precision, norm: int) -> int:
    """Return the bytes per token saved after the last layer: norms, projections, input of the head.

    A projection's output is saved for its activation, its input unless a norm after the layers saves it as its
    output. An encoder's output is also the model's own and stays in the stream's format.
    """
    is_output = architecture.kind == "encoder-decoder" and stack is not architecture.main
    read = (precision.residual_bytes if is_output else precision.compute_bytes) * stack.hidden
    for_each_token = predicts_every_token(architecture)
    kept, is_read = 0, not for_each_token
    for tensor in stack.after:
        if is_norm(tensor, stack.hidden):
            kept, is_read = kept + norm + read, True
        elif tensor.role == "linear" and for_each_token:
            out, into = tensor.shape
            kept += precision.compute_bytes * (out if is_read else out + into)
            is_read = True
    return kept if is_read else kept + read


def is_norm(tensor: Tensor, width: int) -> bool:
    """Return whether `tensor` is the weight of a norm over `width` elements."""
    return tensor.role == "norm" and tensor.shape == (width,) and not tensor.name.endswith("bias")
