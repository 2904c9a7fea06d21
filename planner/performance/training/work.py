"""Work of one card in one micro-batch: products, attention, and bytes moved by all other operations."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import SCHEMES
from planner.memory.kernels import needs_explicit_mask
from planner.memory.precision import Precision, training_precision
from planner.memory.software import training_memory
from planner.memory.training.adapters.trained import tuning_of
from planner.memory.training.autograd.layer import saved_by_layer
from planner.memory.training.autograd.network import trained_stacks
from planner.memory.weights import parameter_counts, weight_bytes
from planner.models.architecture import Architecture, Attention, LatentAttention
from planner.performance.flops import ForwardWork, forward_work
from planner.performance.setting import Graphs, TimeSetting
from planner.performance.software import training_pace
from planner.workload.choices import Loss
from planner.workload.parallel import Parallel
from planner.workload.training import Training

_LOGIT_BYTES: Final[dict[Loss, int]] = {"full-logits": 34, "chunked": 34, "fused-linear": 12}
"""Bytes moved for each logit by the loss implementation: the product writes 2 and a copy in fp32 reads 2 and writes
4; the softmax reads 4 three times; its derivative writes 4, which are read and written as 2 for both products of the
backward pass (4 + 2 + 2 · 2). A fused loss keeps 16-bit logits: 2 written, 2 · 2 read, 2 written in place, 2 · 2
read."""
_BASE_BYTES: Final = 2


class MicroBatch(NamedTuple):
    """Work of one micro-batch on one card.

    `kept_bytes` are saved by its forward pass for the backward pass, a measure of what element-wise operations read and
    write. `weight_gradient_share` is the share of the matrices that have gradients of their own; `casts_apart` means
    that kernels of their own cast the matrices of products to fp8, as torchao's do. `merged_bytes` are what a pass
    moves to sum the parts of ring attention. `fused` means that kernels combine several element-wise operations, and
    `graphs` which layers' kernels are launched together.
    """

    forward: ForwardWork
    tokens: float
    kept_bytes: float
    logit_bytes: float
    cast_bytes: int
    merged_bytes: float
    quantised_bytes: int
    whole_bytes: int
    weight_gradient_share: float
    adapted: bool
    sharded: bool
    fused: bool
    compiled: bool
    graphs: Graphs | None
    casts_apart: bool


def sequences_work(
    architecture: Architecture, sequences: float, length: int, context: int, setting: TimeSetting
) -> ForwardWork:
    """Return the work of a forward pass over a card's `length` tokens of each sequence, which `context` cards share.

    Every token attends to its whole sequence, on whichever card it is, or to its own sample if samples are packed.
    """
    work, whole = forward_work(architecture, sequences, length), length * context
    reads = min(setting.packed_tokens or whole, whole)
    if reads == length:
        return work
    samples = forward_work(architecture, sequences * length / reads, reads)
    return work._replace(attention_flops=samples.attention_flops)


@lru_cache(maxsize=1024)
def micro_batch(
    architecture: Architecture, own: Training, whole: Architecture, parallel: Parallel, setting: TimeSetting
) -> MicroBatch:
    """Return one card's work in a micro-batch; `architecture` is the card's share of `whole`, `own` its workload.

    **Source**: the bytes that operators save: `planner.memory.training.autograd.layer`.
    """
    length, sequences = own.sequence_length or 1, own.micro_batch
    work = sequences_work(architecture, sequences, length, parallel.context, setting)
    precision = training_precision(own)
    counts = parameter_counts(architecture)
    quantised = own.weights is not None and SCHEMES[own.weights].family != "plain"
    whole_parameters = counts.linear + counts.experts
    return MicroBatch(
        forward=work,
        tokens=float(sequences * length),
        kept_bytes=_saved_bytes(architecture, own, precision),
        logit_bytes=work.logits * _LOGIT_BYTES[own.loss or "full-logits"],
        cast_bytes=counts.cast * (precision.parameter_bytes + precision.compute_bytes) if precision.autocast else 0,
        merged_bytes=_merged_bytes(architecture, sequences * length, parallel.context),
        quantised_bytes=weight_bytes(architecture, own.weights) if quantised and own.weights else 0,
        whole_bytes=whole_parameters * _BASE_BYTES if quantised else 0,
        weight_gradient_share=weight_gradient_share(whole, own),
        adapted=own.adapts,
        sharded=parallel.zero == 3 and parallel.state_shards > 1 and not setting.compiled,
        fused=setting.compiled or any(training_memory(own.profile).fused),
        compiled=setting.compiled,
        graphs=setting.graphs,
        casts_apart=own.compute == "fp8",
    )


_MERGED_ELEMENT_BYTES: Final = 10
"""Bytes moved for each element of a part of ring attention that is added to the whole: read in 16 bits, and the sum
read and written in fp32.

**Source**: NVIDIA/TransformerEngine attention/dot_product_attention/context_parallel.py: each pass corrects the output
of every step by its softmax and sums it, and the backward pass sums the derivative of the queries.
"""


def _merged_bytes(architecture: Architecture, tokens: int, context: int) -> float:
    """Return the bytes that a pass moves to sum the parts of ring attention over `context` cards; 0 on one card."""
    if context == 1:
        return 0.0
    widths = [group.count * _query_width(group.layer.mixer) for group in architecture.main.groups]
    return float(_MERGED_ELEMENT_BYTES * context * tokens * sum(widths))


def _query_width(mixer: object) -> int:
    """Return the elements per token that attention of `mixer` puts out; 0 for other mixers."""
    if isinstance(mixer, Attention):
        return mixer.q_dim
    return mixer.heads * mixer.v_head_dim if isinstance(mixer, LatentAttention) else 0


def _saved_bytes(architecture: Architecture, own: Training, precision: Precision) -> float:
    """Return the saved activation bytes of a micro-batch that separate operations move through memory."""
    length, sequences = own.sequence_length or 1, own.micro_batch
    pace, found = training_pace(own), 0.0
    source = 0
    for stack in trained_stacks(architecture):
        tokens = stack.token_count(length)
        for group in stack.groups:
            masked = needs_explicit_mask(group.layer, tokens, own.attention)
            ledger = pace.moved_activations(saved_by_layer(group.layer, stack.hidden, precision, own.attention, masked))
            found += group.count * ledger.total(sequences, tokens, source or tokens)
        source = tokens
    return found


@lru_cache(maxsize=256)
def weight_gradient_share(architecture: Architecture, own: Training) -> float:
    """Return the share of the weights with gradients: 1 in full training, 0 with adapters, between with `trainable`."""
    if own.adapts:
        return 0.0
    if not own.trainable:
        return 1.0
    trained = sum([tensor.size * number for tensor, number in tuning_of(architecture, own).trained])
    return min(trained / max(architecture.parameters, 1), 1.0)
