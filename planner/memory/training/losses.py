"""What the output head and the loss hold, by how the loss is computed."""

from functools import partial
from typing import Final, NamedTuple

from planner.memory.logits import logits_bytes, logits_term, loss_bytes_per_logit, output_width, predicts_every_token
from planner.memory.phases import Deferred
from planner.memory.precision import Precision
from planner.memory.result import Symbol
from planner.memory.terms import checked, highest, library, lowest, model
from planner.memory.terms import workload as chosen
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.training import Training

_FP32: Final = 4
_FULL: Final = "the derivative of the loss needs several fp32 copies of the logits"
_NO_HEAD: Final = "the network ends without a head: what is put on top of it has the loss, and is not counted"
_CHUNKED: Final = "the derivative of the loss needs fp32 copies of one part of the logits after the other"
_CHUNKED_SOURCE: Final = (
    "torchtune 0.7 (bd2a0fc), LinearCrossEntropyLoss: each part of the logits is made by a product of its own, cast to "
    "fp32, and kept as log-probabilities"
)


class Losses(NamedTuple):
    """What is there of the logits: when the loss is computed, derived, in the head's backward pass, and after it.

    `head_gradient` are the parameters of the head whose gradient comes with the loss.
    """

    forward: Deferred
    loss: Deferred
    head: Deferred
    layers: Deferred
    explanation: str = _FULL
    head_gradient: int = 0


class Head(NamedTuple):
    """An output head: tokens with an output, its width, the width that it reads, and bytes of a logit."""

    outputs: int
    width: int
    hidden: int
    size: int

    @property
    def parameters(self) -> int:
        """Return the elements of its matrix."""
        return self.width * self.hidden

    @property
    def sizes(self) -> tuple[Symbol, ...]:
        """Return the symbols of the logits."""
        return (
            chosen("T", self.outputs, "tokens with an output"),
            model("V", self.width, "width of the output: the vocabulary, or the number of labels"),
            library("w", self.size, "bytes of a logit"),
        )


def head_of(architecture: Architecture, workload: Training, precision: Precision) -> Head:
    """Return the head of a step: with an output for each token, or for each sequence."""
    tokens = workload.sequence_length or 0 if predicts_every_token(architecture) else 1
    return Head(workload.micro_batch * tokens, output_width(architecture), architecture.hidden, precision.compute_bytes)


def full_losses(architecture: Architecture, head: Head, precision: Precision) -> Losses:
    """Return what whole logits take.

    **Formula**: T · V · k, with k bytes per logit from `loss_bytes_per_logit`.
    """
    per_forward, per_backward = loss_bytes_per_logit(architecture, precision)

    def logits(per_logit: int) -> Deferred:
        count_bytes = logits_bytes(architecture, head.outputs, per_logit)
        write = partial(logits_term, architecture, head.outputs, per_logit, precision)
        return Deferred("logits", count_bytes, count_bytes, count_bytes, write)

    # A bias in fp32 makes fp32 logits, which are the model's output.
    output = _FP32 if precision.autocast and architecture.loss_reads == "biased-logits" else head.size
    explanation = _FULL if head.width else _NO_HEAD
    return Losses(logits(per_forward), logits(per_backward), logits(output + head.size), logits(output), explanation)


def chunked_losses(head: Head, chunks: int, gradient_bytes: int) -> Losses:
    """Return the loss of torchtune, whose parts each keep their log-probabilities until their own backward pass.

    **Formula**: in c parts T · V · (4 + (w + 4) / c) when the loss is computed, then T · V · (4 + 8 / c), or a part
    later with gradients of the head, of `gradient_bytes` an element.
    """
    part = ceil_div(head.outputs, chunks) * head.width
    every = head.outputs * head.width
    symbols = (*head.sizes, chosen("c", chunks, "parts"))
    copied = head.size if head.size < _FP32 else 0
    gradient = head.width * head.hidden * gradient_bytes
    derived = (every * _FP32 + part * 2 * _FP32, "T × V × (4 + 8 / c)")
    if chunks > 1:
        # The second part beside the head's gradient by the first, or both gradients and their sum.
        second = ((every + part) * _FP32 + gradient, "T × V × (4 + 4 / c) + V × h × r")
        summed = (max(every - 2 * part, 0) * _FP32 + 3 * gradient, "T × V × 4 × (c − 2) / c + 3 × V × h × r")
        derived = max(derived, second, summed)
    beside = (model("h", head.hidden, "width of the head's input"), library("r", gradient_bytes, "bytes of a gradient"))
    return Losses(
        forward=logits_later(
            every * _FP32 + part * (_FP32 + copied), "T × V × (4 + (w + 4) / c)", symbols, _CHUNKED_SOURCE
        ),
        loss=logits_later(*derived, (*symbols, *beside), _CHUNKED_SOURCE),
        head=logits_later(part * 2 * head.size, "T × V × 2 × w / c", symbols, _CHUNKED_SOURCE),
        layers=logits_later(0, "0", (), _CHUNKED_SOURCE),
        explanation=_CHUNKED,
    )


def logits_later(count_bytes: int, formula: str, symbols: tuple[Symbol, ...], source: str) -> Deferred:
    """Return so many bytes of logits, whose term is written when it is asked for."""
    write = partial(checked, "logits", count_bytes, formula, symbols, source)
    return Deferred("logits", count_bytes, lowest(count_bytes), highest(count_bytes), write)
