"""The phases of one training step and what is alive in each."""

from functools import lru_cache, partial
from typing import Final, NamedTuple

from planner.memory.communication import communication_term
from planner.memory.gradients import gradients_term
from planner.memory.logits import logits_bytes, logits_term, loss_bytes_per_logit, output_width, predicts_every_token
from planner.memory.optimizer import optimizer_term
from planner.memory.phases import Deferred, Moment, Moments
from planner.memory.precision import Precision, training_precision
from planner.memory.result import Term
from planner.memory.saved import Saved, activations_term, saved_activations
from planner.memory.tensors import parameter_counts
from planner.memory.terms import checked, highest, library, model, number_format
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture
from planner.workload.workload import Training

_FORWARD_AND_BACKWARD: Final = 2
"""Threads that launch matrix products: the caller's, and the autograd engine's for the device."""


class _Step(NamedTuple):
    """One optimizer step: what runs, and what is alive throughout.

    `growing` are the gradients that the backward pass makes; accumulated ones are in `persistent` instead.
    """

    architecture: Architecture
    workload: Training
    precision: Precision
    saved: Saved
    persistent: list[Term]
    growing: list[Term]

    def activations(self, alive: int) -> Deferred:
        return Deferred(
            "activations", alive, highest(alive), partial(activations_term, self.saved, alive, self.workload)
        )

    def logits(self, per_logit: int) -> Deferred:
        tokens = self.workload.sequence_length or 0 if predicts_every_token(self.architecture) else 1
        outputs = self.workload.micro_batch * tokens
        write = partial(logits_term, self.architecture, outputs, per_logit, self.precision)
        count_bytes = logits_bytes(self.architecture, outputs, per_logit)
        return Deferred("logits", count_bytes, count_bytes, write)


def training_moments(architecture: Architecture, workload: Training) -> Moments:
    """Return what is alive in each phase of one optimizer step of `workload` (defaults filled in).

    **Formula**: the peak is the largest of: load; forward (everything saved, with the loss being computed); loss (its
    derivative); backward (first the head, last the first layer with all gradients); step.

    **Assumes** fused optimizer kernels, which need no copy of the parameters, as transformers chooses on PyTorch ≥ 2.8.
    """
    precision = training_precision(workload)
    weights = weights_term(architecture, workload.weights or "fp32")
    gradients = gradients_term(parameter_counts(architecture).total, precision)
    states = optimizer_term(architecture, workload.optimizer, precision)
    communication = communication_term(gradients.bytes, workload.parallel.data or 1)
    accumulated = [gradients] if workload.gradient_accumulation > 1 else []
    step = _Step(
        architecture,
        workload,
        precision,
        _saved(architecture, workload, precision),
        persistent=[weights, *(item for item in (states, communication) if item is not None), *accumulated],
        growing=[] if accumulated else [gradients],
    )
    moments = (
        Moment("load", [weights], "the parameters are on the card"),
        *_through_the_loss(step),
        *_through_the_layers(step),
        Moment(
            "step",
            [*step.persistent, *step.growing],
            "the optimizer updates: parameters, gradients and its states",
        ),
    )
    return Moments(
        moments, dynamic=step.saved.total, threads=_FORWARD_AND_BACKWARD, layer_bytes=step.saved.freed_with_a_layer
    )


def _saved(architecture: Architecture, workload: Training, precision: Precision) -> Saved:
    return saved_activations(
        architecture,
        workload.micro_batch,
        workload.sequence_length or 0,
        precision,
        workload.attention,
        workload.activation_checkpointing == "full",
    )


def _through_the_loss(step: _Step) -> list[Moment]:
    """Return the end of the forward pass and the derivative of the loss: everything saved is alive."""
    kept: list[Term | Deferred] = [*step.persistent, step.activations(step.saved.total)]
    per_forward, per_backward = loss_bytes_per_logit(step.architecture, step.precision)
    return [
        Moment(
            "forward",
            [*kept, *_cast_term(_cast_elements(step.architecture), step.precision), step.logits(per_forward)],
            "the forward pass is through: everything kept for the backward pass is there, and the loss is computed",
        ),
        Moment(
            "loss",
            [*kept, *_held_casts(step), step.logits(per_backward)],
            "the derivative of the loss needs several fp32 copies of the logits",
        ),
    ]


def _through_the_layers(step: _Step) -> list[Moment]:
    """Return the backward pass from the head to the embedding: what is kept shrinks while the gradients grow."""
    size = step.precision.compute_bytes
    head = _head_matrix(step.architecture)
    saved = step.saved
    return [
        Moment(
            "backward",
            [
                *step.persistent,
                *_grown(step, head),
                step.activations(saved.total),
                *_held_casts(step),
                step.logits(2 * size),
            ],
            "the backward pass starts at the head, with everything still kept",
        ),
        Moment(
            "backward",
            [
                *step.persistent,
                *_grown(step, head + saved.stage.gradients),
                step.activations(saved.in_last_layer),
                *_held_casts(step, in_a_layer=True),
                step.logits(size),
            ],
            "the backward pass works on the last layer, with nearly everything still kept",
        ),
        Moment(
            "backward",
            [
                *step.persistent,
                *_grown(step, _grown_before_first_layer(step.architecture) + saved.stage.gradients),
                step.activations(saved.in_first_layer),
                *_cast_term(_cast_in_a_layer(step), step.precision),
                step.logits(size),
            ],
            "the backward pass works on the first layer: the gradients of all others are there",
        ),
        Moment(
            "backward",
            [
                *step.persistent,
                *step.growing,
                *_tied_gradient_term(step.architecture, step.precision),
                step.logits(size),
            ],
            "the backward pass reaches the embedding: its gradient is dense",
        ),
    ]


def _grown(step: _Step, parameters: int) -> list[Term]:
    """Return the gradients of `parameters`, unless accumulated ones are there anyway."""
    return [gradients_term(parameters, step.precision)] if step.growing else []


def _grown_before_first_layer(architecture: Architecture) -> int:
    """Return all parameters but those whose gradients come last: a layer's, and what is before it and no head."""
    counts = parameter_counts(architecture)
    tied = counts.token_embedding if architecture.tied_head else 0
    return counts.total - counts.smallest_layer - counts.before_layers + tied


def _held_casts(step: _Step, *, in_a_layer: bool = False) -> tuple[Term, ...]:
    """Return the casts that the graph still holds when the backward pass starts.

    Checkpoints hold the head's only, and those of the layer that is computed again.
    """
    counts = parameter_counts(step.architecture)
    checkpointed = step.workload.activation_checkpointing == "full"
    if not in_a_layer:
        return _cast_term(
            _head_matrix(step.architecture) + (counts.cast_behind if checkpointed else counts.cast), step.precision
        )
    held = _cast_in_a_layer(step) if checkpointed else counts.cast - step.saved.stage.uncast
    return _cast_term(held, step.precision)


def _cast_in_a_layer(step: _Step) -> int:
    """Return the cast parameters of one layer, those aside whose copies its backward pass has freed."""
    return parameter_counts(step.architecture).cast_in_a_layer - step.saved.stage.uncast


@lru_cache(maxsize=256)
def _cast_term(elements: int, precision: Precision) -> tuple[Term, ...]:
    if not precision.autocast or not elements:
        return ()
    cast = checked(
        "temporaries",
        elements * precision.compute_bytes,
        "P_c × w",
        (
            model("P_c", elements, "parameters of the projections cast for the step"),
            number_format("w", precision.compute_bytes, "bytes per element of the autocast format"),
        ),
        "torch.autocast caches the cast of each fp32 weight; the graph keeps it until its backward",
    )
    return (cast,)


@lru_cache(maxsize=256)
def _tied_gradient_term(architecture: Architecture, precision: Precision) -> tuple[Term, ...]:
    if not architecture.tied_head:
        return ()
    elements = parameter_counts(architecture).token_embedding
    # A gradient that nothing else refers to is added to in place: one cast from autocast's copy, or a sum.
    in_place = precision.autocast or architecture.kind == "encoder-decoder"
    copies = 1 if in_place else 2
    both = checked(
        "temporaries",
        copies * elements * precision.parameter_bytes,
        "n × V × h × w",
        (
            library("n", copies, "gradients: the embedding's own, and the sum where it is not made in place"),
            model("V × h", elements, "elements of the token embedding"),
            number_format("w", precision.parameter_bytes, "bytes per gradient"),
        ),
        "torch/csrc/autograd/input_buffer.cpp: the embedding's dense gradient is added to the tied head's, in place "
        "where that is a tensor of its own to which nothing else refers",
    )
    return (both,)


def _cast_elements(architecture: Architecture) -> int:
    counts = parameter_counts(architecture)
    return counts.cast + _head_matrix(architecture)


def _head_matrix(architecture: Architecture) -> int:
    return output_width(architecture) * architecture.hidden
