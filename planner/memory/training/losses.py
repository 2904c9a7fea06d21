"""Memory of the output head and the loss in each phase, by the way the loss is computed."""

from functools import partial
from typing import Final, NamedTuple

from planner.memory.logits import logits_term, loss_bytes_per_logit, output_width, predicts_every_token
from planner.memory.phases import DeferredTerm
from planner.memory.precision import Precision
from planner.memory.result import Symbol
from planner.memory.terms import deferred_measured_term, library_symbol, measured_term, model_symbol, workload_symbol
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.training import Training

_FP32: Final = 4
_FULL: Final = "the derivative of the loss needs several fp32 copies of the logits"
_NO_HEAD: Final = "the network has no output head: a head and loss added by the user are not counted"
_CHUNKED: Final = "the derivative of the loss needs fp32 copies of one chunk of the logits at a time"
_CHUNKED_SOURCE: Final = (
    "torchtune 0.7 (bd2a0fc), LinearCrossEntropyLoss: each part of the logits is made by a product of its own, cast to "
    "fp32, and kept as log-probabilities"
)


class LossMemory(NamedTuple):
    """Memory of the logits in the forward pass, at the loss, in the head's backward pass, and afterwards.

    `head_gradient` is the number of head parameters whose gradient is computed with the loss.
    """

    forward: DeferredTerm
    loss: DeferredTerm
    head: DeferredTerm
    layers: DeferredTerm
    explanation: str = _FULL
    head_gradient: int = 0


class OutputHead(NamedTuple):
    """Sizes of an output head: tokens with logits, logits per token, input width, bytes per logit."""

    outputs: int
    width: int
    hidden: int
    size: int

    @property
    def parameters(self) -> int:
        """Return the number of elements in the head's matrix."""
        return self.width * self.hidden

    @property
    def size_symbols(self) -> tuple[Symbol, ...]:
        """Return the formula symbols for the number of logits and the bytes per logit."""
        return (
            workload_symbol("T", self.outputs, "tokens for which logits are computed"),
            model_symbol("V", self.width, "logits per token: the vocabulary, or the number of labels"),
            library_symbol("w", self.size, "bytes per logit"),
        )


def output_head(architecture: Architecture, workload: Training, precision: Precision) -> OutputHead:
    """Return the sizes of the output head in a training step, with logits per token or per sequence."""
    tokens = workload.sequence_length or 0 if predicts_every_token(architecture) else 1
    return OutputHead(
        workload.micro_batch * tokens, output_width(architecture), architecture.hidden, precision.compute_bytes
    )


def full_loss_memory(architecture: Architecture, head: OutputHead, precision: Precision) -> LossMemory:
    """Return the memory of a loss that is computed from all logits at once.

    **Formula**: T · V · k, with k bytes per logit from `loss_bytes_per_logit`.
    """
    if not head.width:
        return _WITHOUT_HEAD
    per_forward, per_backward = loss_bytes_per_logit(architecture, precision)

    def deferred_term(per_logit: int) -> DeferredTerm:
        """Return the logits term at `per_logit` bytes per logit, whose formula is written on demand."""
        size_bytes = head.outputs * head.width * per_logit
        write = partial(logits_term, architecture, head.outputs, per_logit, precision)
        return DeferredTerm("logits", size_bytes, size_bytes, size_bytes, write)

    # A bias in fp32 makes fp32 logits, which are the model's output.
    output = _FP32 if precision.autocast and architecture.loss_reads == "biased-logits" else head.size
    return LossMemory(
        deferred_term(per_forward),
        deferred_term(per_backward),
        deferred_term(output + head.size),
        deferred_term(output),
    )


def deferred_logits(size_bytes: int, formula: str, symbols: tuple[Symbol, ...], source: str) -> DeferredTerm:
    """Return a term of `size_bytes` of logits, whose formula is written on demand."""
    write = partial(measured_term, "logits", size_bytes, formula, symbols, source)
    return deferred_measured_term("logits", size_bytes, write)


_NO_LOGITS: Final = deferred_logits(0, "0", (), "a network without an output head")
_WITHOUT_HEAD: Final = LossMemory(_NO_LOGITS, _NO_LOGITS, _NO_LOGITS, _NO_LOGITS, _NO_HEAD)


def chunked_loss_memory(head: OutputHead, chunks: int, gradient_bytes: int) -> LossMemory:
    """Return the memory of torchtune's loss, computed in `chunks` chunks that each save their log-probabilities.

    **Formula**: in c parts T · V · (4 + (w + 4) / c) when the loss is computed, then T · V · (4 + 8 / c), or a part
    later with gradients of the head, of `gradient_bytes` an element.
    """
    part = ceil_div(head.outputs, chunks) * head.width
    every = head.outputs * head.width
    symbols = (*head.size_symbols, workload_symbol("c", chunks, "parts"))
    copied = head.size if head.size < _FP32 else 0
    gradient = head.width * head.hidden * gradient_bytes
    derived = (every * _FP32 + part * 2 * _FP32, "T × V × (4 + 8 / c)")
    if chunks > 1:
        # The second chunk besides the head's gradient of the first, or both gradients and their sum.
        second = ((every + part) * _FP32 + gradient, "T × V × (4 + 4 / c) + V × h × r")
        summed = (max(every - 2 * part, 0) * _FP32 + 3 * gradient, "T × V × 4 × (c − 2) / c + 3 × V × h × r")
        derived = max(derived, second, summed)
    beside = (
        model_symbol("h", head.hidden, "width of the head's input"),
        library_symbol("r", gradient_bytes, "bytes per gradient element"),
    )
    return LossMemory(
        forward=deferred_logits(
            every * _FP32 + part * (_FP32 + copied), "T × V × (4 + (w + 4) / c)", symbols, _CHUNKED_SOURCE
        ),
        loss=deferred_logits(*derived, (*symbols, *beside), _CHUNKED_SOURCE),
        head=deferred_logits(part * 2 * head.size, "T × V × 2 × w / c", symbols, _CHUNKED_SOURCE),
        layers=deferred_logits(0, "0", (), _CHUNKED_SOURCE),
        explanation=_CHUNKED,
    )
