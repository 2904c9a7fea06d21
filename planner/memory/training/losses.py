"""What the output head and the loss hold, by how the loss is computed."""

from functools import partial
from typing import Final, NamedTuple

from planner.memory.logits import logits_bytes, logits_term, loss_bytes_per_logit, output_width, predicts_every_token
from planner.memory.phases import Deferred
from planner.memory.precision import Precision
from planner.memory.result import Symbol, Term
from planner.memory.terms import checked, highest, library, lowest, model, term
from planner.memory.terms import workload as chosen
from planner.models.architecture import Architecture
from planner.units import GIB, ceil_div
from planner.workload.training import Training

_FP32: Final = 4
_FULL: Final = "the derivative of the loss needs several fp32 copies of the logits"
_NO_HEAD: Final = "the network ends without a head: what is put on top of it has the loss, and is not counted"
_CHUNKED: Final = "the derivative of the loss needs fp32 copies of one part of the logits after the other"
_FUSED: Final = "the derivatives that the fused loss has made are kept until the backward pass"
_CHUNKED_SOURCE: Final = (
    "torchtune 0.7 (bd2a0fc), LinearCrossEntropyLoss: each part of the logits is made by a product of its own, cast to "
    "fp32, and kept as log-probabilities"
)
_FUSED_SOURCE: Final = (
    "Liger-Kernel 0.8.2, fused_linear_cross_entropy_forward: parts of next_power_of_2(⌈T / ⌈V / h⌉⌉) tokens, gradients "
    "made with the loss; that of the head added from an fp32 copy of each part's"
)
_UNSLOTH_SOURCE: Final = (
    "unsloth_zoo ce232d6 (2026-08), fused_losses/cross_entropy_loss.py: parts whose fp32 logits are 4 GiB at most, on "
    "cards with 8 GiB free, compiled"
)
_UNSLOTH_PART: Final = 4 * GIB
"""Bytes of fp32 logits that Unsloth computes at once where at least twice as much is free."""
_UNCOMPILED: Final = 12
"""Bytes per logit beside the logits where the loss is not compiled: fp32 copy, log-probabilities and a gradient."""


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

    **Formula**: full logits T · V · k; chunked, in c parts: T · V · (4 + (w + 4) / c) when the loss is computed, then
    T · V · (4 + 8 / c), or a part later with gradients of the head; fused with the head: the logits of C
    tokens and the gradient of the head's input, and of the head itself with it, where it is trained V · h · (w + 4)
    more for that of one part and its fp32 copy.
    """
    tokens = workload.sequence_length or 0 if predicts_every_token(architecture) else 1
    head = _Head(
        workload.micro_batch * tokens, output_width(architecture), architecture.hidden, precision.compute_bytes
    )
    if workload.loss == "chunked":
        return _chunked(head, workload.loss_chunks, precision.parameter_bytes if head_is_trained else 0)
    if workload.loss == "fused-linear":
        gradient = head.width * head.hidden if head_is_trained else 0
        fused = _unsloth if workload.profile == "unsloth" else _fused
        return fused(head, precision.residual_bytes, gradient)
    return _full(architecture, head, precision)


def _full(architecture: Architecture, head: _Head, precision: Precision) -> Losses:
    per_forward, per_backward = loss_bytes_per_logit(architecture, precision)

    def logits(per_logit: int) -> Deferred:
        count_bytes = logits_bytes(architecture, head.outputs, per_logit)
        write = partial(logits_term, architecture, head.outputs, per_logit, precision)
        return Deferred("logits", count_bytes, count_bytes, count_bytes, write)

    # A bias in fp32 makes fp32 logits, which are the model's output.
    output = _FP32 if precision.autocast and architecture.loss_reads == "biased-logits" else head.size
    explanation = _FULL if head.width else _NO_HEAD
    return Losses(logits(per_forward), logits(per_backward), logits(output + head.size), logits(output), explanation)


def _chunked(head: _Head, chunks: int, gradient_bytes: int) -> Losses:
    """Return the loss of torchtune, whose parts each keep their log-probabilities until their own backward pass."""
    part = ceil_div(head.outputs, chunks) * head.width
    every = head.outputs * head.width
    symbols = (*_sizes(head), chosen("c", chunks, "parts"))
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
        forward=_term(every * _FP32 + part * (_FP32 + copied), "T × V × (4 + (w + 4) / c)", symbols, _CHUNKED_SOURCE),
        loss=_term(*derived, (*symbols, *beside), _CHUNKED_SOURCE),
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
    added = gradient * (head.size + (_FP32 if head.size < _FP32 else 0))
    formula = "C × V × w + T × h × r" + (" + V × h × (w + 4)" if added else "")
    return Losses(
        forward=_term(logits + made + added, formula, symbols, _FUSED_SOURCE),
        loss=kept,
        head=kept,
        layers=_term(0, "0", (), _FUSED_SOURCE),
        explanation=_FUSED,
        head_gradient=gradient,
    )


def _unsloth(head: _Head, input_bytes: int, gradient: int) -> Losses:
    """Return the loss of Unsloth.

    **Assumes** that its compiled parts hold the logits and their gradient; without compilation it is as much as full
    logits take.
    """
    parts = unsloth_parts(head.outputs, head.width)
    tokens = ceil_div(head.outputs, parts)
    made = head.outputs * head.hidden * input_bytes
    added = gradient * head.size
    symbols = (
        *_sizes(head),
        library("C", tokens, f"tokens whose logits are there at once, in {parts:,} parts"),
        model("h", head.hidden, "width of the head's input"),
        library("r", input_bytes, "bytes of its gradient"),
    )
    kept = _term(made, "T × h × r", symbols, _UNSLOTH_SOURCE)
    usual = tokens * head.width * 2 * head.size + made + added
    least, most = usual - tokens * head.width * head.size, usual + tokens * head.width * (_UNCOMPILED - head.size)
    formula = "C × V × 2 × w + T × h × r" + (" + V × h × w" if added else "")

    def write() -> Term:
        return term(
            "logits", usual, formula, symbols, _UNSLOTH_SOURCE, certainty="assumed", low_bytes=least, high_bytes=most
        )

    return Losses(
        forward=Deferred("logits", usual, least, most, write),
        loss=kept,
        head=kept,
        layers=_term(0, "0", (), _UNSLOTH_SOURCE),
        explanation=_FUSED,
        head_gradient=gradient,
    )


def unsloth_parts(outputs: int, width: int) -> int:
    """Return into how many parts Unsloth divides the tokens: one if their fp32 logits fit, else a multiple of four.

    **Source**: unsloth_zoo `fused_losses.cross_entropy_loss.get_chunk_size`.
    """
    whole = outputs * width * _FP32
    return 1 if whole <= _UNSLOTH_PART else 4 * ceil_div(ceil_div(whole, _UNSLOTH_PART), 4)


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
