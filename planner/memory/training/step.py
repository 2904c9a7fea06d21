"""The phases of a training step (load, forward, loss, backward, optimizer step) and the memory in each."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from planner.memory.phases import AnyTerm, DeferredTerm, PhaseSnapshots, Snapshot, lasting_terms
from planner.memory.result import PhaseName
from planner.memory.terms import deferred_measured_term
from planner.memory.training.saved import activations_term
from planner.memory.training.setup import TrainingSetup, gradients_term
from planner.workload.training import Training

LOADED: Final = "the parameters are on the card"
"""Explanation of the load phase."""
_FORWARD_AND_BACKWARD: Final = 2
"""Number of threads that launch matrix products: the caller's, and the autograd engine's for the device."""


class Moment(NamedTuple):
    """A moment of a training step: how many parameters have gradients by then, and the short-lived terms.

    The latter are in the order in which results list them: `before` the gradients, and after them.
    """

    phase: PhaseName
    gradients: int
    after: Sequence[AnyTerm]
    explanation: str
    before: Sequence[AnyTerm] = ()


class StepMoments(NamedTuple):
    """One optimizer step on a card: its memory inputs, and its moments after loading.

    What lives throughout is added to each moment by whatever shares the step between cards. `unsplit_bytes` are those
    of `PhaseSnapshots`.
    """

    setup: TrainingSetup
    moments: tuple[Moment, ...]
    unsplit_bytes: int

    @property
    def lasting(self) -> list[AnyTerm]:
        """Return the terms alive throughout besides gradients: parameters and optimizer states."""
        states = self.setup.optimizer.states
        return [*self.setup.parameters, states] if states else self.setup.parameters

    def timeline(self, *snapshots: Snapshot, host_bytes: int | None = None) -> PhaseSnapshots:
        """Return `snapshots` of the step, from loading on, as a timeline; `host_bytes` are offloaded."""
        return PhaseSnapshots(
            snapshots,
            dynamic=self.setup.saved.total,
            threads=_FORWARD_AND_BACKWARD,
            host_bytes=host_bytes,
            notes=self.setup.notes,
            unsplit_bytes=self.unsplit_bytes,
        )

    def replica_timeline(self, accumulates: bool, beside: Sequence[AnyTerm] = ()) -> PhaseSnapshots:
        """Return the timeline of a card that shares nothing; `accumulates` means that gradients are alive throughout.

        `beside` are further terms alive throughout, listed last.
        """
        if accumulates:
            return self.unsharded_timeline([*self.lasting, self.setup.all_gradients], beside, has_gradients=False)
        return self.unsharded_timeline(self.lasting, beside)

    def unsharded_timeline(
        self, lasting: Sequence[AnyTerm], beside: Sequence[AnyTerm] = (), *, has_gradients: bool = True
    ) -> PhaseSnapshots:
        """Return the timeline of a card with all parameters, whose gradients are made in the backward pass.

        `lasting` and `beside` are alive throughout, listed first and last. Without `has_gradients` these are in them.
        """
        alive, each = lasting_terms(lasting, beside), self.setup.gradient_bytes
        return self.timeline(
            Snapshot("load", [self.setup.weights], LOADED),
            *[
                Snapshot(
                    phase,
                    [*before, *([gradients_term(made, each)] if made and has_gradients else ()), *after],
                    explanation,
                    alive,
                )
                for phase, made, after, explanation, before in self.moments
            ],
        )


def training_step(setup: TrainingSetup, workload: Training, selective_source: str, unsplit_bytes: int) -> StepMoments:
    """Return the moments of an optimizer step of `workload` (defaults filled in) with the memory in each.

    `selective_source` documents its selective checkpointing, `unsplit_bytes` are those of `PhaseSnapshots`.

    **Formula**: the peak is the largest of: load; forward (everything saved, with the loss being computed); loss (its
    derivative); backward (first the head, last the first layer with all gradients); step.
    """

    def activations(alive_bytes: int) -> DeferredTerm:
        """Return the memory term of `alive_bytes` of activations, with a formula written on demand."""
        write = partial(activations_term, setup.saved, alive_bytes, workload, selective_source)
        return deferred_measured_term("activations", alive_bytes, write)

    every_activation = activations(setup.saved.total)
    moments = (
        *_forward_and_loss_moments(setup, every_activation),
        *_backward_moments(setup, every_activation, activations),
        *_optimizer_step_moments(setup, workload),
    )
    return StepMoments(setup, moments, unsplit_bytes)


def _forward_and_loss_moments(setup: TrainingSetup, every_activation: DeferredTerm) -> list[Moment]:
    """Return the last layer and the end of the forward pass, and the loss, with all activations saved."""
    losses = setup.losses
    kept: list[AnyTerm] = [every_activation, *setup.left]
    moments = []
    if setup.scratch_forward:
        explanation = "the forward pass runs the last layer, with nearly all activations saved"
        moments.append(Moment("forward", 0, (*setup.casts.last, *setup.scratch_forward), explanation, kept))
    if setup.scratch_head:
        explanation = "the output head runs, with all activations of the forward pass alive"
        moments.append(Moment("forward", 0, (*setup.scratch_head, losses.head), explanation, kept))
    explanation = (
        "the forward pass has finished: all activations for the backward pass are held, and the loss is computed"
    )
    return [
        *moments,
        Moment("forward", losses.head_gradient, (*setup.casts.forward, losses.forward), explanation, kept),
        Moment("loss", losses.head_gradient, (*setup.casts.loss, losses.loss), losses.explanation, kept),
    ]


def _backward_moments(
    setup: TrainingSetup, every_activation: DeferredTerm, activations: Callable[[int], DeferredTerm]
) -> list[Moment]:
    """Return the moments of the backward pass from head to embedding, as gradients replace `activations`."""
    saved, losses, gradients, casts = setup.saved, setup.losses, setup.gradients, setup.casts
    moments = [
        Moment(
            "backward",
            gradients.head,
            (every_activation, *casts.loss, *setup.scratch_head, losses.head),
            "the backward pass starts at the head, with all activations still saved",
        ),
        Moment(
            "backward",
            gradients.last_layer,
            (activations(saved.in_last_layer), *casts.last, *setup.scratch, losses.layers),
            "the backward pass runs the last layer, with nearly all activations still saved",
        ),
        Moment(
            "backward",
            gradients.first_layer,
            (activations(saved.in_first_layer), *casts.first, *setup.scratch, losses.layers),
            "the backward pass has reached the first layer: the gradients of all other layers are in memory",
        ),
    ]
    if saved.between:
        there: list[AnyTerm] = [*casts.first, activations(saved.between), *setup.scratch, losses.layers]
        explanation = "the backward pass runs the decoder's first layer: the encoder's activations are still saved"
        moments.insert(2, Moment("backward", gradients.decoder, there, explanation))
    if setup.embedding is not None:
        explanation = "the backward pass reaches the embedding: its gradient is dense"
        moments.append(Moment("backward", gradients.all, (*setup.embedding, losses.layers), explanation))
    return moments


def _optimizer_step_moments(setup: TrainingSetup, workload: Training) -> list[Moment]:
    """Return gradient clipping, if enabled, and the optimizer's update."""
    gradients, optimizer = setup.gradients.all, setup.optimizer
    explanation = "the optimizer updates the parameters: gradients and optimizer states are in memory"
    update = Moment("step", gradients, (optimizer.step,) if optimizer.step else (), explanation)
    if not workload.gradient_clipping:
        return [update]
    explanation = "the gradients are clipped: the norm of each gradient is computed"
    return [Moment("step", gradients, (optimizer.clipping,), explanation), update]
