"""Activations that a whole network saves for the backward pass, and gradients alive inside it, in full fine-tuning."""

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

from planner.memory.kernels import MASK, AttentionKind, attention_kernel, mask_bytes, needs_explicit_mask, softmax_bytes
from planner.memory.logits import predicts_every_token
from planner.memory.precision import Precision
from planner.memory.training.autograd.layer import (
    INDEX,
    feed_forward_norm_and_readers_bytes,
    freed_bytes_before_experts,
    mixer_output_width,
    norm_bytes,
    norm_bytes_after_blocks,
    saved_by_layer,
)
from planner.memory.training.saved import (
    BackwardPoint,
    SavedActivations,
    SavedBytes,
    SavedPerToken,
    TokenBatch,
    highest_point,
    saved_by_stacks,
)
from planner.models.architecture import (
    Activation,
    Architecture,
    Attention,
    LatentAttention,
    Layer,
    LayerGroup,
    Mlp,
    Moe,
    Stack,
    Tensor,
)

_TWO_BRANCHES: Final[tuple[Activation, ...]] = ("gelu-new", "gelu-fast", "quick-gelu")
"""Activation functions computed step by step in Python, in which two branches meet in a product.

ReLU counts as two as well: its result is also the next projection's input and stays alive while its gradient is
computed.
"""
_BLOOM_GRADIENTS: Final = 5
"""Tensors in `bloom_gelu_back`: the output's gradient, tanh, 1 − tanh², and two factors of their product, besides that
for which the freed output of the activation makes room."""
SCORE_GRADIENTS: Final = 3
"""Number of score-sized tensors in the softmax's backward pass: output gradient, product, input gradient."""


def backward_points(
    layer: Layer,
    hidden: int,
    tokens: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> tuple[BackwardPoint, ...]:
    """Return the moments of the backward pass through `layer` at which memory may peak, at least one per block.

    Their bytes are those of one token in a sequence of `tokens`.

    **Formula**: in the feed-forward block w · n · i + r · h: the gradients of its n branches (two where a gate or
    an activation computed step by step creates them) and of its last projection; before that, where experts'
    outputs are weighted, 3 · k · h · w for what k experts put out; in the scores of attention 3 · a · s · f, with f
    bytes of the softmax, less everything after attention, which is freed by then. Once a checkpointed layer has been
    computed again, its output and that of its last block, the stream beside it and the gradient: 3 · r · h + w · h.

    **Source**: torch/csrc/autograd/FunctionsManual.cpp; aten/src/ATen/native/cuda/SoftMax.cu
    (`softmax_backward_cuda_out` multiplies gradient and output first).
    """
    block = layer.feed_forward
    stream = precision.residual_bytes * hidden
    points = [
        _feed_forward_point(
            feed_forward_gradient_bytes(block, hidden, precision, checkpointed) + stream,
            block,
            last_projection_parameters(block, hidden),
        )
    ]
    if isinstance(block, Moe) and not block.every_expert:
        points.append(BackwardPoint(expert_weighting_bytes(block, hidden, precision) + 2 * stream))
    if checkpointed:
        points.append(BackwardPoint(3 * stream + precision.compute_bytes * hidden))
    in_scores = _score_gradient_bytes(layer, hidden, tokens, precision, attention)
    if in_scores is not None:
        points.append(_feed_forward_point(in_scores, block, feed_forward_parameters(block, hidden)))
    return tuple(points)


def _feed_forward_point(size_bytes: int, block: Mlp | Moe | None, gradients: int) -> BackwardPoint:
    """Return a peak candidate of the backward pass: `size_bytes`, and the parameters with gradients by then."""
    return BackwardPoint(size_bytes, gradients, 0 if isinstance(block, Moe) else gradients)


def _score_gradient_bytes(
    layer: Layer, hidden: int, tokens: int, precision: Precision, attention: AttentionKind
) -> int | None:
    """Return the bytes per token of gradients alive in eager attention's scores, None for fused kernels."""
    mixer = layer.mixer
    if not isinstance(mixer, Attention | LatentAttention):
        return None
    masked = needs_explicit_mask(layer, tokens, attention)
    kernel = attention_kernel(mixer, precision, attention, masked)
    if kernel == "fused":
        return None
    ledger = saved_by_layer(layer, hidden, precision, attention, masked)
    softmax = mixer.heads * softmax_bytes(mixer, kernel, precision)
    capped = mixer.heads * precision.compute_bytes if isinstance(mixer, Attention) and mixer.softcap else 0
    scores = tokens * (SCORE_GRADIENTS * softmax - (ledger.scores - softmax - capped))
    return scores + precision.residual_bytes * hidden - _freed_before_attention(layer, hidden, ledger, precision)


def _freed_before_attention(layer: Layer, hidden: int, ledger: SavedPerToken, precision: Precision) -> int:
    """Return the saved bytes per token that are freed before the backward pass reaches attention."""
    norms = feed_forward_norm_and_readers_bytes(layer, hidden, precision) + norm_bytes_after_blocks(
        layer, hidden, precision
    )
    return ledger.feed_forward + norms + precision.compute_bytes * mixer_output_width(layer.mixer)


def feed_forward_gradient_bytes(block: Mlp | Moe | None, hidden: int, precision: Precision, checkpointed: bool) -> int:
    """Return the gradient bytes per token alive in the backward pass of the feed-forward `block`."""
    size = precision.compute_bytes
    if block is None:
        return size * hidden
    if isinstance(block, Moe):
        return expert_gradient_bytes(block, hidden, precision)
    if block.activation == "relu2":
        # PyTorch's pow_backward: the gradient, base, doubled base and product, after the square's copy is freed. A norm
        # after it (BitNet) squares in fp32, with its input's other gradient, after its output and what it scaled.
        wide = 4 if precision.autocast else size
        return max(4 * wide - size, 5 * 4 - wide - size if block.inner_norm else 0) * block.intermediate
    if block.activation == "gelu-new" and precision.autocast:
        # Three gradients in fp32, while the product's copy is freed. One of them is then copied to the computing
        # format; without checkpointing the values that it was computed from are still alive.
        return (3 * 4 - (size if checkpointed else 0)) * block.intermediate
    if block.activation == "gelu-bloom":
        return size * block.intermediate * _BLOOM_GRADIENTS
    branches = block.gated or block.activation in _TWO_BRANCHES or (block.activation == "relu" and not block.dropout)
    return size * block.intermediate * (2 if branches else 1)


def expert_gradient_bytes(block: Moe, hidden: int, precision: Precision) -> int:
    """Return the bytes per token of experts' gate and up gradients, after the experts' outputs are freed."""
    freed = freed_bytes_before_experts(block, hidden, precision)
    if block.every_expert:
        return precision.compute_bytes * block.visits * block.intermediate * 2 - freed
    return precision.residual_bytes * block.visits * (2 * block.intermediate - hidden) - freed


def expert_weighting_bytes(block: Moe, hidden: int, precision: Precision) -> int:
    """Return the gradient bytes per token at the weighting of expert outputs: sum, reordered sum, each output.

    **Source**: transformers `integrations.moe.grouped_mm_experts_forward`; an fp32 router's weights are in fp32, and so
    is what they are multiplied with.
    """
    weighted = 4 if block.fp32_router else precision.residual_bytes
    return 3 * block.visits * hidden * weighted - freed_bytes_before_experts(block, hidden, precision)


def last_projection_parameters(block: Mlp | Moe | None, hidden: int) -> int:
    """Return the parameters of the feed-forward projection that the backward pass reaches first."""
    if block is None:
        return 0
    if not isinstance(block, Moe):
        return hidden * block.intermediate
    behind = 0 if block.shared_gate else 3 * block.shared_intermediate
    return hidden * (block.intermediate * block.experts + behind)


def feed_forward_parameters(block: Mlp | Moe | None, hidden: int) -> int:
    """Return the number of parameters in all projections of the feed-forward block."""
    if block is None:
        return 0
    every = block.intermediate * (block.experts if isinstance(block, Moe) else 1) * (3 if block.gated else 2)
    return hidden * (every + (3 * block.shared_intermediate if isinstance(block, Moe) else 0))


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
    batch = TokenBatch(sequences, 0)
    for stack in trained_stacks(architecture):
        batch = stack_batch(stack, sequences, length, batch.tokens)
        stacks.append(_saved_by_stack(architecture, stack, batch, precision, attention, checkpointed))
    saved = saved_by_stacks(stacks[-1:], precision.parameter_bytes)
    if len(stacks) == 1:
        return saved
    # The encoder runs before it: its layers, their saved activations, and the gradient of its output.
    encoder, decoder = saved_by_stacks(stacks[:-1], precision.parameter_bytes), architecture.main
    output = _encoder_output_tokens(architecture, batch) * decoder.hidden * precision.residual_bytes
    shared = shared_score_bytes(decoder, batch, precision, attention, checkpointed)
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
    batch: TokenBatch,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> SavedActivations:
    """Return the activations saved by one stack that reads `batch`."""
    total_tokens, shards = batch.total_tokens, stack.groups[0].layer.stream_shards
    before_each, behind_each = _bytes_outside_layers(stack, architecture, precision)
    before, behind = total_tokens * before_each // shards, total_tokens * behind_each // shards
    if stack.images.count:
        trained = not is_frozen(stack)
        behind = tower_end_bytes(
            stack, batch, precision, lambda one: 0 if one.frozen else precision.compute_bytes, reached=trained
        )
        if not trained:
            return SavedActivations(SavedBytes(norms=behind), 0, BackwardPoint(0), 0, behind, (), 0)
    kept = SavedBytes(
        norms=before + behind,
        scores=shared_score_bytes(stack, batch, precision, attention, checkpointed),
        dropout=total_tokens * MASK * stack.hidden // shards if stack.embedding_dropout else 0,
    )
    first = before
    if checkpointed:
        first += total_tokens * first_checkpoint_bytes(stack, precision) // shards
        first += mask_bytes(stack, batch.sequences, batch.tokens, precision, attention, groups=1)
    layers = _saved_by_layers(stack.groups, stack.hidden, batch, precision, attention, checkpointed)
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
    batch: TokenBatch,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> _SavedByLayers:
    """Return what `groups` of layers save for a batch, cached since the stages of a pipeline have the same layers."""
    kept, largest, total_tokens = SavedBytes(), 0, batch.total_tokens
    layers: list[tuple[int, SavedPerToken]] = []
    points: list[BackwardPoint] = []
    for group in groups:
        masked = needs_explicit_mask(group.layer, batch.tokens, attention)
        per_token = saved_by_layer(group.layer, hidden, precision, attention, masked)
        saved = per_token.for_batch(*layer_batch(group.layer, batch))
        if checkpointed:
            inputs = group.count * total_tokens * hidden * precision.residual_bytes
            kept += SavedBytes(checkpoints=inputs // group.layer.stream_shards)
        else:
            kept += saved * group.count
            layers.append((group.count, per_token))
        largest = max(largest, saved.total)
        tokens = layer_batch(group.layer, batch).tokens
        points += backward_points(group.layer, hidden, tokens, precision, attention, checkpointed)
    point = highest_point([point.for_tokens(total_tokens) for point in points], precision.parameter_bytes)
    return _SavedByLayers(kept, largest, point, tuple(layers))


def trained_stacks(architecture: Architecture) -> tuple[Stack, ...]:
    """Return the stacks that run in a training step; a tower before a language model runs if it gets images."""
    if architecture.kind != "vision-language":
        return architecture.stacks
    return tuple(stack for stack in architecture.stacks if is_run(stack))


def is_frozen(tower: Stack) -> bool:
    """Return whether the layers of `tower` are not trained, and save nothing, since nothing before them is trained."""
    return all(tensor.frozen for group in tower.groups for tensor in group.layer.tensors)


def is_run(stack: Stack) -> bool:
    """Return whether a training step of a vision-language model runs `stack`: towers run if they get images."""
    return stack.images.count > 0 or stack.name not in ("vision", "audio")


def stack_batch(stack: Stack, sequences: int, length: int, encoder_tokens: int = 0) -> TokenBatch:
    """Return what `stack` reads of `sequences` × `length` tokens: as many tokens, or patches of the images in them.

    Images that go through a tower with a mask for each pair of patches are one sequence (Pixtral).
    """
    images = stack.images
    if not images.count:
        return TokenBatch(sequences, stack.token_count(length), encoder_tokens)
    count = sequences * images.count
    return TokenBatch(1, count * images.patches) if images.packing == "masked" else TokenBatch(count, images.patches)


def layer_batch(layer: Layer, batch: TokenBatch) -> TokenBatch:
    """Return what the attention of `layer` reads of `batch` at once: sequences, or windows of images."""
    mixer = layer.mixer
    split = isinstance(mixer, Attention) and mixer.joined and mixer.window
    return batch.within(split) if split else batch


def image_token_count(tower: Stack, batch: TokenBatch) -> int:
    """Return the tokens that the language model gets of the patches in `batch`."""
    images = tower.images
    return batch.total_tokens // images.patches * max(1, (images.patches - images.skipped) // (tower.merge or 1))


def tower_end_bytes(
    tower: Stack, batch: TokenBatch, precision: Precision, read_bytes: Callable[[Tensor], int], *, reached: bool
) -> int:
    """Return what a tower's final norms and its projector save; `reached` if a gradient continues to its layers.

    `read_bytes` are those of an element that a product keeps of its input.

    **Formula**: patches · what the norm of one saves; for each image token the inputs of products, and what the
    activation between two of them reads.

    **Source**: transformers 5.23 `LlavaMultiModalProjector`, `PatchMerger` of Qwen2-VL and similar classes.
    """
    found, tokens, norm = 0, image_token_count(tower, batch), tower.groups[0].layer.norm
    linear = [tensor for tensor in tower.after if tensor.role == "linear"]
    for tensor in tower.after:
        if tensor.role == "norm" and not tensor.name.endswith("bias") and (reached or not tensor.frozen):
            rows = batch.total_tokens * tower.hidden // tensor.size
            found += rows * norm_bytes(norm, tensor.size, precision)
    for tensor, following in zip(linear, (*linear[1:], None), strict=True):
        reached = reached or not tensor.frozen
        activated = following is not None and _parent(tensor) == _parent(following) and reached
        found += tokens * (tensor.shape[1] * read_bytes(tensor) + activated * precision.compute_bytes * tensor.shape[0])
    return found


def _parent(tensor: Tensor) -> str:
    """Return the name of the module that holds the layer of `tensor`."""
    return tensor.name.rpartition(".")[0].rpartition(".")[0]


def shared_score_bytes(
    stack: Stack, batch: TokenBatch, precision: Precision, attention: AttentionKind, checkpointed: bool
) -> int:
    """Return the bytes of masks and position biases that layers share, and of the biases' bucket indices.

    **Formula**: t · (8 · s² for the bucket of each pair of positions + a · s · s' zeros where cross-attention has
    none), with t layers that have a table of their own: the first of T5, every one of UMT5, whose checkpoints
    recompute it. With checkpoints also the biases of a · s² pairs. Every layer of DeBERTa keeps 8 · s² for the index
    with which it gathers scores from each table of relative positions, and the projected table once per sequence.

    **Source**: transformers 5.23 `DisentangledSelfAttention.disentangled_attention_bias`.
    """
    masks = mask_bytes(stack, batch.sequences, batch.tokens, precision, attention) if checkpointed else 0
    layer = stack.groups[0].layer
    if not isinstance(layer.mixer, Attention):
        return masks
    rows = layer.mixer.gathered_rows
    if rows:
        tables = batch.sequences * sum(rows) * layer.mixer.q_dim * precision.compute_bytes
        return masks + (1 if checkpointed else stack.layer_count) * (len(rows) * INDEX * batch.tokens**2 + tables)
    if not layer.mixer.position_bias:
        return masks
    pairs = batch.tokens * batch.encoder_tokens if layer.cross_attention else 0
    zeros = layer.mixer.heads * pairs * precision.compute_bytes
    biases = layer.mixer.heads * precision.parameter_bytes if checkpointed else 0
    tables = 1 if checkpointed else max(1, _bias_tables(stack))
    return masks + tables * (INDEX * batch.tokens**2 + zeros) + biases * batch.tokens**2


def _bias_tables(stack: Stack) -> int:
    """Return the number of layers with a table of position biases; MPNet's stands before them."""
    return sum(
        group.count
        for group in stack.groups
        if any("relative_attention_bias" in tensor.name for tensor in group.layer.tensors)
    )


def _encoder_output_tokens(architecture: Architecture, batch: TokenBatch) -> int:
    """Return how many tokens the decoder gets from what runs before it, given the decoder's `batch`."""
    tower = architecture.stacks[0]
    if not tower.images.count:
        return batch.sequences * batch.encoder_tokens
    return image_token_count(tower, stack_batch(tower, batch.sequences, 0))


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
