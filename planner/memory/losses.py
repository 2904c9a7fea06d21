"""What the output head and the loss hold, by how the loss is computed."""

from functools import partial
from typing import Final, NamedTuple

from planner.memory.logits import logits_bytes, logits_term, loss_bytes_per_logit, output_width, predicts_every_token
from planner.memory.phases import Deferred
from planner.memory.precision import Precision
from planner.memory.result import Symbol, Term
from planner.memory.terms import checked, highest, library, lowest, model
from planner.memory.terms import workload as chosen
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.training import Training

_FP32: Final = 4
_FULL: Final = "the derivative of the loss needs several fp32 copies of the logits"
_CHUNKED: Final = "the derivative of the loss needs fp32 copies of one part of the logits after the other"
_FUSED: Final = "the derivatives that the fused loss has made are kept until the backward pass"
_CHUNKED_SOURCE: Final = (
    "torchtune 0.6, CEWithChunkedOutputLoss: each part of the logits is made by a product of its own and cast to fp32"
)
_FUSED_SOURCE: Final = (
    "Liger-Kernel 0.6, fused_linear_cross_entropy_forward: parts of next_power_of_2(⌈T / ⌈V / h⌉⌉) tokens, gradients "
    "made with the loss"
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


class _Head(NamedTuple):
    outputs: int
    width: int
    hidden: int
    size: int


def losses_of(
    architecture: Architecture, workload: Training, precision: Precision, *, head_is_trained: bool = True
) -> Losses:
    """Return what `workload` holds of logits in each phase.

    **Formula**: full logits T · V · k; chunked, in c parts: T · V · (w + 4 + 4 / c) when the loss is computed, then
    T · V · (4 + (8 + w) / c); fused with the head: the logits of C tokens and the gradient of the head's input, and of
    the head itself with it.
    """
    tokens = workload.sequence_length or 0 if predicts_every_token(architecture) else 1
    head = _Head(
        workload.micro_batch * tokens, output_width(architecture), architecture.hidden, precision.compute_bytes
    )
    if workload.loss == "chunked":
        return _chunked(head, workload.loss_chunks)
    if workload.loss == "fused-linear":
        gradient = head.width * head.hidden if head_is_trained else 0
        return _fused(head, precision.residual_bytes, gradient)
    return _full(architecture, head, precision)


def _full(architecture: Architecture, head: _Head, precision: Precision) -> Losses:
    per_forward, per_backward = loss_bytes_per_logit(architecture, precision)

    def logits(per_logit: int) -> Deferred:
        count_bytes = logits_bytes(architecture, head.outputs, per_logit)
        write = partial(logits_term, architecture, head.outputs, per_logit, precision)
        return Deferred("logits", count_bytes, count_bytes, count_bytes, write)

    return Losses(logits(per_forward), logits(per_backward), logits(2 * head.size), logits(head.size))


def _chunked(head: _Head, chunks: int) -> Losses:
    """Return the loss of torchtune, whose recipes drop the logits before the backward pass."""
    part = ceil_div(head.outputs, chunks) * head.width
    every = head.outputs * head.width
    symbols = (*_sizes(head), chosen("c", chunks, "parts"))
    return Losses(
        forward=_term(every * (head.size + _FP32) + part * _FP32, "T × V × (w + 4 + 4 / c)", symbols, _CHUNKED_SOURCE),
        loss=_term(
            every * _FP32 + part * (2 * _FP32 + head.size), "T × V × (4 + (8 + w) / c)", symbols, _CHUNKED_SOURCE
        ),
        head=_term(part * 2 * head.size, "T × V × 2 × w / c", symbols, _CHUNKED_SOURCE),
        layers=_term(0, "0", (), _CHUNKED_SOURCE),
        explanation=_CHUNKED,
    )


def _fused(head: _Head, input_bytes: int, gradient: int) -> Losses:
    tokens = fused_chunk(head.outputs, head.width, head.hidden)
    made = head.outputs * head.hidden * input_bytes
    logits = tokens * head.width * head.size
    symbols = (
        *_sizes(head),
        library("C", tokens, "tokens whose logits are there at once"),
        model("h", head.hidden, "width of the head's input"),
        library("r", input_bytes, "bytes of its gradient"),
    )
    kept = _term(made, "T × h × r", symbols, _FUSED_SOURCE)
    return Losses(
        forward=_term(logits + made, "C × V × w + T × h × r", symbols, _FUSED_SOURCE),
        loss=kept,
        head=kept,
        layers=_term(0, "0", (), _FUSED_SOURCE),
        explanation=_FUSED,
        head_gradient=gradient,
    )


def fused_chunk(outputs: int, width: int, hidden: int) -> int:
    """Return the tokens whose logits Liger computes at once: a power of two, so that they are about T · h numbers."""
    parts = max(ceil_div(width, max(hidden, 1)), 1)
    each = max(ceil_div(outputs, parts), 1)
    return min(1 << (each - 1).bit_length(), outputs)


def _sizes(head: _Head) -> tuple[Symbol, ...]:
    return (
        chosen("T", head.outputs, "tokens with an output"),
        model("V", head.width, "width of the output: the vocabulary, or the number of labels"),
        library("w", head.size, "bytes of a logit"),
    )


def _term(count_bytes: int, formula: str, symbols: tuple[Symbol, ...], source: str) -> Deferred:
    def write() -> Term:
        return checked("logits", count_bytes, formula, symbols, source)

    return Deferred("logits", count_bytes, lowest(count_bytes), highest(count_bytes), write)
