"""The phases of a training step (load, forward, loss, backward, optimizer step) and the memory in each."""

from functools import lru_cache, partial
from typing import Final, NamedTuple

from planner.memory.phases import DeferredTerm, PhaseSnapshots, Snapshot
from planner.memory.result import Term
from planner.memory.terms import deferred_measured_term, format_symbol, model_symbol, term
from planner.memory.training.optimizer_steps import OptimizerTerms, optimizer_terms
from planner.memory.training.saved import activations_term
from planner.memory.training.setup import TrainingSetup
from planner.workload.training import Training

_FORWARD_AND_BACKWARD: Final = 2
"""Number of threads that launch matrix products: the caller's, and the autograd engine's for the device."""


class _TrainingStep(NamedTuple):
    """One optimizer step: workload, memory inputs, the optimizer's terms, and the terms alive throughout.

    `accumulates` means that gradients of earlier micro-batches are alive throughout, in `persistent`.
    """

    workload: Training
    setup: TrainingSetup
    optimizer: OptimizerTerms
    persistent: list[Term]
    accumulates: bool
    selective_source: str

    def activations(self, alive_bytes: int) -> DeferredTerm:
        """Return the memory term of `alive_bytes` of activations, with a formula written on demand."""
        write = partial(activations_term, self.setup.saved, alive_bytes, self.workload, self.selective_source)
        return deferred_measured_term("activations", alive_bytes, write)

    def gradient_terms(self, parameters: int) -> list[Term]:
        """Return the memory of `parameters` gradients as a term; empty if accumulated gradients include it."""
        return [] if self.accumulates else [gradients_term(parameters, self.setup.gradient_bytes)]


def training_timeline(
    setup: TrainingSetup, workload: Training, selective_source: str, unsplit_bytes: int
) -> PhaseSnapshots:
    """Return the memory in each phase of an optimizer step of `workload` (defaults filled in).

    `selective_source` documents its selective checkpointing, `unsplit_bytes` are those of `PhaseSnapshots`.

    **Formula**: the peak is the largest of: load; forward (everything saved, with the loss being computed); loss (its
    derivative); backward (first the head, last the first layer with all gradients); step.
    """
    all_gradients = gradients_term(setup.gradients.all, setup.gradient_bytes)
    optimizer = optimizer_terms(
        setup.trained, workload.optimizer, workload.optimizer_step or "fused", setup.state_bytes
    )
    accumulates = workload.gradient_accumulation > 1
    persistent = list(setup.kept)
    if optimizer.states:
        persistent.append(optimizer.states)
    if accumulates:
        persistent.append(all_gradients)
    step = _TrainingStep(workload, setup, optimizer, persistent, accumulates, selective_source)
    saved_bytes = setup.saved.total
    every_activation = step.activations(saved_bytes)
    snapshots = (
        Snapshot("load", list(setup.loaded), "the parameters are on the card"),
        *_forward_and_loss_snapshots(step, every_activation),
        *_backward_snapshots(step, every_activation),
        *_optimizer_step_snapshots(step, all_gradients),
    )
    return PhaseSnapshots(
        snapshots,
        dynamic=saved_bytes,
        threads=_FORWARD_AND_BACKWARD,
        layer_bytes=setup.saved.freed_with_a_layer,
        behind_bytes=setup.saved.behind,
        notes=setup.notes,
        unsplit_bytes=unsplit_bytes,
    )


def _forward_and_loss_snapshots(step: _TrainingStep, every_activation: DeferredTerm) -> list[Snapshot]:
    """Return the memory snapshots at the end of the forward pass and at the loss, with all activations saved."""
    setup, losses = step.setup, step.setup.losses
    kept: list[Term | DeferredTerm] = [*step.persistent, every_activation, *setup.left]
    gradients = step.gradient_terms(losses.head_gradient) if losses.head_gradient else []
    snapshots = [
        Snapshot(
            "forward",
            [*kept, *gradients, *setup.casts.forward, losses.forward],
            "the forward pass has finished: all activations for the backward pass are held, and the loss is computed",
        ),
        Snapshot("loss", [*kept, *gradients, *setup.casts.loss, losses.loss], losses.explanation),
    ]
    if setup.scratch_head:
        explanation = "the output head runs, with all activations of the forward pass alive"
        snapshots = [Snapshot("forward", [*kept, *setup.scratch_head, losses.head], explanation), *snapshots]
    if not setup.scratch_forward:
        return snapshots
    explanation = "the forward pass runs the last layer, with nearly all activations saved"
    return [Snapshot("forward", [*kept, *setup.casts.last, *setup.scratch_forward], explanation), *snapshots]


def _backward_snapshots(step: _TrainingStep, every_activation: DeferredTerm) -> list[Snapshot]:
    """Return the memory snapshots of the backward pass from head to embedding, as gradients replace activations."""
    setup, saved, losses = step.setup, step.setup.saved, step.setup.losses
    gradients = setup.gradients
    snapshots = [
        Snapshot(
            "backward",
            [
                *step.persistent,
                *step.gradient_terms(gradients.head),
                every_activation,
                *setup.casts.loss,
                *setup.scratch_head,
                losses.head,
            ],
            "the backward pass starts at the head, with all activations still saved",
        ),
        Snapshot(
            "backward",
            [
                *step.persistent,
                *step.gradient_terms(gradients.last_layer),
                step.activations(saved.in_last_layer),
                *setup.casts.last,
                *setup.scratch,
                losses.layers,
            ],
            "the backward pass runs the last layer, with nearly all activations still saved",
        ),
        Snapshot(
            "backward",
            [
                *step.persistent,
                *step.gradient_terms(gradients.first_layer),
                step.activations(saved.in_first_layer),
                *setup.casts.first,
                *setup.scratch,
                losses.layers,
            ],
            "the backward pass has reached the first layer: the gradients of all other layers are in memory",
        ),
    ]
    if saved.between:
        there: list[Term | DeferredTerm] = [
            *step.persistent,
            *step.gradient_terms(gradients.decoder),
            *setup.casts.first,
        ]
        there += [step.activations(saved.between), *setup.scratch, losses.layers]
        explanation = "the backward pass runs the decoder's first layer: the encoder's activations are still saved"
        snapshots.insert(2, Snapshot("backward", there, explanation))
    if setup.embedding is None:
        return snapshots
    reached: list[Term | DeferredTerm] = [
        *step.persistent,
        *step.gradient_terms(gradients.all),
        *setup.embedding,
        losses.layers,
    ]
    return [*snapshots, Snapshot("backward", reached, "the backward pass reaches the embedding: its gradient is dense")]


def _optimizer_step_snapshots(step: _TrainingStep, all_gradients: Term) -> list[Snapshot]:
    """Return the memory snapshots of gradient clipping, if enabled, and of the optimizer's update."""
    alive = step.persistent if step.accumulates else [*step.persistent, all_gradients]
    beside = step.optimizer.step
    stepped = Snapshot(
        "step",
        [*alive, *([beside] if beside else [])],
        "the optimizer updates the parameters: gradients and optimizer states are in memory",
    )
    if not step.workload.gradient_clipping:
        return [stepped]
    clipped = [*alive, step.optimizer.clipping]
    return [Snapshot("step", clipped, "the gradients are clipped: the norm of each gradient is computed"), stepped]


@lru_cache(maxsize=256)
def gradients_term(trainable: int, gradient_bytes: int) -> Term:
    """Return the memory of gradients: `gradient_bytes` for each of `trainable` parameters.

    **Formula**: P_t · w, in the format of the parameters.

    **Source**: torch.autograd: a leaf's `.grad` has the leaf's dtype.
    """
    return term(
        "gradients",
        trainable * gradient_bytes,
        "P_t × w",
        (
            model_symbol("P_t", trainable, "trained parameters"),
            format_symbol("w", gradient_bytes, "bytes per gradient element, in the parameters' format"),
        ),
        "torch.autograd: .grad has the dtype of its parameter",
    )
