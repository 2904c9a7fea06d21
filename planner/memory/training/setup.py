"""Memory inputs of a training step: parameters, gradients, saved activations, autocast copies and losses."""

from functools import lru_cache
from typing import NamedTuple, Protocol

from planner.memory.phases import AnyTerm
from planner.memory.precision import Precision
from planner.memory.result import Term
from planner.memory.terms import format_symbol, measured_term, model_symbol, term
from planner.memory.training.losses import LossMemory
from planner.memory.training.optimizer_steps import OptimizerTerms
from planner.memory.training.saved import SavedActivations
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
    is the number in the first layer of a decoder that has an encoder before it.
    """

    head: int
    last_layer: int
    first_layer: int
    all: int
    decoder: int = 0


class TrainingSetup(NamedTuple):
    """Memory inputs of a training step: parameters, optimizer, saved activations, casts and losses.

    `gradient_bytes` are those of one gradient. `held` are terms alive throughout besides parameters, gradients and
    states. `scratch` is the workspace of the backward pass through a layer, `scratch_forward` that of the forward pass;
    `scratch_head` that of the output head in both; `left` are tensors of the previous step alive until the new loss;
    `embedding` is alive when the backward pass reaches the embedding, None if it does not.
    """

    weights: Term
    optimizer: OptimizerTerms
    gradients: GradientCounts
    gradient_bytes: int
    saved: SavedActivations
    casts: AutocastCopies
    losses: LossMemory
    embedding: tuple[Term, ...] | None
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
