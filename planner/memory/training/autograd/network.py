"""What a forward pass keeps for the backward pass, over the whole network, with or without checkpoints."""

from functools import lru_cache
from math import prod
from typing import NamedTuple

from planner.memory.kernels import MASK, AttentionKind, is_masked, mask_bytes
from planner.memory.logits import predicts_every_token
from planner.memory.precision import Precision
from planner.memory.training.autograd.backward import Stage, backward_stages, highest
from planner.memory.training.autograd.layer import INDEX, Ledger, layer_ledger, norm_bytes, stack_positions
from planner.models.architecture import Architecture, Attention, LayerGroup, Stack, Tensor


class Saved(NamedTuple):
    """Bytes the forward pass keeps, by kind, and the largest layer's share.

    `stage` is the point of the backward pass through a layer that holds most beside it. `first` is what stands before
    the layers and their input, `behind` what stands behind them and is freed before the last of them. `layers` says
    how many layers keep what per token, for the formulas; `depth` is their number, checkpointed or not. `recomputed`
    is what the largest layer holds more when it has been computed again. With an encoder before the decoder, `entry` is
    what the encoder's largest layer holds, and `between` all that is alive at the decoder's first layer.
    """

    norms: int
    attention: int
    feed_forward: int
    dropout: int
    scores: int
    checkpoints: int
    one_layer: int
    stage: Stage
    first: int
    behind: int
    layers: tuple[tuple[int, Ledger], ...]
    depth: int
    adapters: int = 0
    recomputed: int = 0
    entry: int = 0
    between: int = 0

    @property
    def in_last_layer(self) -> int:
        """Return what is alive when the backward pass goes through the last layer, computed again if checkpointed."""
        return max(self.total, self.total - self.behind + self.stage.bytes + self.recomputed)

    @property
    def in_first_layer(self) -> int:
        """Return what is alive when the backward pass goes through the first layer, the largest deciding."""
        return self.first + (self.entry or self.one_layer + self.stage.bytes)

    @property
    def freed_with_a_layer(self) -> int:
        """Return what goes when the backward pass has gone through one layer, the largest: all of it, or its input."""
        return self.checkpoints // max(self.depth, 1) if self.checkpoints else self.one_layer

    @property
    def total(self) -> int:
        """Return all bytes alive when the forward pass ends."""
        blocks = self.norms + self.attention + self.feed_forward + self.adapters
        return blocks + self.dropout + self.scores + self.checkpoints


@lru_cache(maxsize=1024)
def saved_activations(
    architecture: Architecture,
    sequences: int,
    length: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> Saved:
    """Return what a forward pass over `sequences` × `length` tokens keeps.

    With checkpointing each layer keeps its input only, and one layer at a time is computed again in the backward pass.
    """
    norms = kept_attention = feed_forward = dropout = scores = checkpoints = largest = first = behind = 0
    layers: list[tuple[int, Ledger]] = []
    depth = 0
    stages: list[Stage] = []
    source = entry = between = shared = 0
    for stack in trained_stacks(architecture):
        if depth:
            # The encoder before it: its layers, what is kept of them, and the gradient of what it put out.
            entry = largest + highest(stages, precision.parameter_bytes).bytes
            between = norms + kept_attention + feed_forward + dropout + scores + checkpoints
            between += sequences * source * stack.hidden * precision.residual_bytes
            largest, stages = 0, []
        depth += stack.layer_count
        tokens = stack_positions(stack, length)
        every = sequences * tokens
        shards = stack.groups[0].layer.stream_shards
        before, behind = (every * kept // shards for kept in _edges(stack, architecture, precision))
        norms += before + behind
        dropout += every * MASK * stack.hidden // shards if stack.embedding_dropout else 0
        if not first:
            first = before
            if checkpointed:
                first += every * first_input(stack, precision) // shards
                first += mask_bytes(stack, sequences, tokens, precision, attention, groups=1)
        shared = shared_scores(stack, sequences, tokens, source, precision, attention, checkpointed)
        inside = _inside(stack.groups, stack.hidden, sequences, tokens, source, precision, attention, checkpointed)
        norms += inside.norms
        kept_attention += inside.attention
        feed_forward += inside.feed_forward
        dropout += inside.dropout
        scores += shared + inside.scores
        checkpoints += inside.checkpoints
        largest = max(largest, inside.largest)
        stages += inside.stages
        layers += inside.layers
        source = tokens
    stage = highest(stages, precision.parameter_bytes)
    return Saved(
        norms,
        kept_attention,
        feed_forward,
        dropout,
        scores,
        checkpoints,
        largest,
        stage,
        first,
        behind,
        tuple(layers),
        depth,
        recomputed=largest if checkpointed else 0,
        entry=entry,
        between=between + shared + largest + stage.bytes if between else 0,
    )


class _Inside(NamedTuple):
    """Bytes that the layers of a stack keep, by kind; `largest` of one layer, `stages` of the backward pass in each."""

    norms: int
    attention: int
    feed_forward: int
    dropout: int
    scores: int
    checkpoints: int
    largest: int
    stages: list[Stage]
    layers: list[tuple[int, Ledger]]


@lru_cache(maxsize=1024)
def _inside(
    groups: tuple[LayerGroup, ...],
    hidden: int,
    sequences: int,
    tokens: int,
    source: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> _Inside:
    """Return what layers keep, the same for all stages of a pipeline that have as many of them."""
    norms = kept_attention = feed_forward = dropout = scores = checkpoints = largest = 0
    layers: list[tuple[int, Ledger]] = []
    stages: list[Stage] = []
    every = sequences * tokens
    for count, layer in [(group.count, group.layer) for group in groups]:
        ledger = layer_ledger(layer, hidden, precision, attention, is_masked(layer, tokens, attention))
        largest = max(largest, ledger.total(sequences, tokens, source))
        stages += backward_stages(layer, hidden, sequences, tokens, precision, attention, checkpointed)
        if checkpointed:
            checkpoints += count * every * hidden * precision.residual_bytes // groups[0].layer.stream_shards
            continue
        layers.append((count, ledger))
        norms += count * every * ledger.norms
        kept_attention += count * ledger.attention_bytes(sequences, tokens, source)
        feed_forward += count * every * ledger.feed_forward
        dropout += count * every * ledger.dropout
        scores += count * ledger.score_bytes(sequences, tokens, source)
    return _Inside(norms, kept_attention, feed_forward, dropout, scores, checkpoints, largest, stages, layers)


def trained_stacks(architecture: Architecture) -> tuple[Stack, ...]:
    """Return the stacks that a step runs through: the towers of vision-language models see nothing."""
    if architecture.kind != "vision-language":
        return architecture.stacks
    return tuple(stack for stack in architecture.stacks if stack.name not in ("vision", "audio"))


def shared_scores(
    stack: Stack,
    sequences: int,
    tokens: int,
    source: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> int:
    """Return the masks and biases that checkpointed layers share, and what position biases are made of.

    **Formula**: 8 · s² for the bucket of each pair of positions; a · s · s' zeros where cross-attention has none; with
    checkpoints the biases of a · s² pairs.
    """
    masks = mask_bytes(stack, sequences, tokens, precision, attention) if checkpointed else 0
    layer = stack.groups[0].layer
    if not isinstance(layer.mixer, Attention) or not layer.mixer.position_bias:
        return masks
    zeros = layer.mixer.heads * tokens * source * precision.compute_bytes if layer.cross_attention else 0
    biases = layer.mixer.heads * precision.parameter_bytes if checkpointed else 0
    return masks + (INDEX + biases) * tokens * tokens + zeros


@lru_cache(maxsize=512)
def _edges(stack: Stack, architecture: Architecture, precision: Precision) -> tuple[int, int]:
    """Return what stands before and behind the layers and is kept per token.

    What the first norms put out is counted with the layer that reads it.
    """
    own = norm_bytes(stack.groups[0].layer.norm, stack.hidden, precision)
    before = sum(own for tensor in stack.before if is_norm(tensor, stack.hidden))
    return before + _stem(stack, precision), _behind(stack, architecture, precision, own)


def _stem(stack: Stack, precision: Precision) -> int:
    """Return what the convolutions before the layers keep per position: the image or the sound, and what is between.

    **Formula**: the elements that a position is made of, in the stream's format and under autocast once more; for
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


def first_input(stack: Stack, precision: Precision) -> int:
    """Return the checkpoint of the first layer per token, unless its norm keeps it itself."""
    kept = stack.groups[0].layer.norm.native or precision.residual_bytes == 4
    return 0 if kept else precision.residual_bytes * stack.hidden


def _behind(stack: Stack, architecture: Architecture, precision: Precision, norm: int) -> int:
    """Return what is kept per token behind the last layer: norms, projections with their activation, the head's input.

    A projection keeps what it puts out for its activation, and what it reads unless a norm behind the layers put it
    out. An encoder's output is also the model's own and stays in the stream's format.
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
    """Return whether `tensor` scales a norm over `width` elements."""
    return tensor.role == "norm" and tensor.shape == (width,) and not tensor.name.endswith("bias")
