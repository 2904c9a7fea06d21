"""Memory of a training step: its inputs, and the amounts in its phases, from loading to the optimizer's update."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple, Protocol

from planner.memory.phases import AnyTerm, DeferredTerm, PhaseSnapshots, Snapshot, lasting_terms
from planner.memory.precision import Precision
from planner.memory.result import PhaseName, Term
from planner.memory.terms import deferred_measured_term, format_symbol, measured_term, model_symbol, term
from planner.memory.training.losses import LossMemory
from planner.memory.training.optimizer_steps import OptimizerTerms
from planner.memory.training.saved import SavedActivations, activations_term
from planner.models.architecture import Architecture
from planner.workload.training import Training


class LossEstimator(Protocol):
    """Function that returns the memory of output head and loss for a network and a training workload."""

    def __call__(
        self, architecture: Architecture, workload: Training, precision: Precision, *, head_is_trained: bool = True
    ) -> LossMemory:
        """Return the memory of output head and loss in each phase of a training step."""


class AutocastCopies(NamedTuple):
    """Memory of autocast's weight copies at four moments of a training step.

    The moments are: the end of the forward pass, the loss, and the backward pass in the last and in the first layer.
    """

    forward: tuple[Term, ...]
    loss: tuple[Term, ...]
    last: tuple[Term, ...]
    first: tuple[Term, ...]


class GradientCounts(NamedTuple):
    """Number of parameters that already have gradients at four moments of the backward pass.

    The moments are: after the output head, in the last layer, in the first layer, and at the end of the pass. `decoder`
    is the number in the first layer of a decoder that has an encoder before it, `decoder_layers` that after it.
    """

    head: int
    last_layer: int
    first_layer: int
    all: int
    decoder: int = 0
    decoder_layers: int = 0


class TrainingSetup(NamedTuple):
    """Memory inputs of a training step: parameters, optimizer, saved activations, casts and losses.

    `gradient_bytes` are those of one gradient. `held` are terms alive throughout besides parameters, gradients and
    states. `scratch` is the workspace of the backward pass through a layer, `scratch_forward` that of the forward pass;
    `scratch_head` that of the output head in both; `left` are tensors of the previous step alive until the new loss;
    `embedding` is alive when the backward pass reaches the embedding, None if it does not, and `shared_embedding` where
    it reaches that of a decoder with an encoder before it.
    """

    weights: Term
    optimizer: OptimizerTerms
    gradients: GradientCounts
    gradient_bytes: int
    saved: SavedActivations
    casts: AutocastCopies
    losses: LossMemory
    embedding: tuple[Term, ...] | None
    shared_embedding: tuple[Term, ...] = ()
    adapters: Term | None = None
    held: tuple[Term, ...] = ()
    scratch: tuple[Term, ...] = ()
    scratch_forward: tuple[Term, ...] = ()
    scratch_head: tuple[Term, ...] = ()
    left: tuple[Term, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> list[AnyTerm]:
        """Return the terms alive throughout besides gradients and states: weights, adapters and what else is held."""
        return [self.weights, *((self.adapters,) if self.adapters else ()), *self.held]

    @property
    def all_gradients(self) -> Term:
        """Return the memory of the gradients of all trained parameters."""
        return gradients_term(self.gradients.all, self.gradient_bytes)


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


@lru_cache(maxsize=1024)
def cast_terms(elements: int, element_bytes: int) -> tuple[Term, ...]:
    """Return the memory of autocast's copies of `elements` parameters; empty if there are none."""
    if not elements:
        return ()
    cast = measured_term(
        "temporaries",
        elements * element_bytes,
        "P_c × w",
        (
            model_symbol("P_c", elements, "parameters of the projections cast for the step"),
            format_symbol("w", element_bytes, "bytes per element of the autocast format"),
        ),
        "torch.autocast caches the cast of each fp32 weight; the graph keeps it until its backward",
    )
    return (cast,)


LOADED: Final = "the parameters are on the GPU"
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
        *optimizer_step_moments(setup, workload),
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
        if setup.shared_embedding:
            ahead = activations(saved.between - saved.one_layer - saved.point.bytes)
            explanation = "the backward pass reaches the decoder's embedding: its gradient is added to the tied head's"
            there = [ahead, *setup.shared_embedding, losses.layers]
            moments.insert(3, Moment("backward", gradients.decoder_layers, there, explanation))
    if setup.embedding is not None:
        explanation = "the backward pass reaches the embedding: its gradient is dense"
        moments.append(Moment("backward", gradients.all, (*setup.embedding, losses.layers), explanation))
    return moments


def optimizer_step_moments(setup: TrainingSetup, workload: Training) -> list[Moment]:
    """Return gradient clipping, if enabled, and the optimizer's update."""
    gradients, optimizer = setup.gradients.all, setup.optimizer
    explanation = "the optimizer updates the parameters: gradients and optimizer states are in memory"
    update = Moment("step", gradients, (optimizer.step,) if optimizer.step else (), explanation)
    if not workload.gradient_clipping:
        return [update]
    explanation = "the gradients are clipped: the norm of each gradient is computed"
    return [Moment("step", gradients, (optimizer.clipping,), explanation), update]
