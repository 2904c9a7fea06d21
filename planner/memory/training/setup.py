"""The numbers that the snapshots of a training step are made of, however the network is trained."""

from functools import lru_cache
from typing import NamedTuple, Protocol

from planner.memory.precision import Precision
from planner.memory.result import Term
from planner.memory.terms import checked, model, number_format
from planner.memory.training.losses import Losses
from planner.memory.training.optimizer_states import Trained
from planner.memory.training.saved import SavedActivations
from planner.models.architecture import Architecture
from planner.workload.training import Training


class LossesOf(Protocol):
    """From a network, a step, its formats, and whether the head is trained to what the head and the loss hold."""

    def __call__(
        self, architecture: Architecture, workload: Training, precision: Precision, *, head_is_trained: bool = True
    ) -> Losses:
        """Return what the head and the loss hold."""


class Casts(NamedTuple):
    """Copies of weights in autocast's format: when the forward pass ends, at the loss, and in both outer layers."""

    forward: tuple[Term, ...]
    loss: tuple[Term, ...]
    last: tuple[Term, ...]
    first: tuple[Term, ...]


class Gradients(NamedTuple):
    """Trained parameters whose gradients are there: behind the head, in the last layer, in the first, and all.

    `decoder` are those in the first layer of a decoder that has an encoder before it.
    """

    head: int
    last_layer: int
    first_layer: int
    all: int
    decoder: int = 0


class TrainingSetup(NamedTuple):
    """One step: parameters, what is trained, what is kept and copied, and how the loss is computed.

    `kept` are the terms that live throughout beside gradients and states, `loaded` those that are there first.
    `gradient_bytes` are those of one gradient, `state_bytes` of an element that the optimizer updates. `scratch` is
    what the backward pass through a layer works with beside activations, `scratch_forward` what the forward pass does;
    `scratch_head` what the output head works with in both; `left` is what the step before left until there is a loss;
    `embedding` what is there when the backward pass reaches the embedding, none if it does not.
    """

    loaded: tuple[Term, ...]
    kept: tuple[Term, ...]
    trained: Trained
    gradients: Gradients
    gradient_bytes: int
    state_bytes: int
    saved: SavedActivations
    casts: Casts
    losses: Losses
    embedding: tuple[Term, ...] | None
    scratch: tuple[Term, ...] = ()
    scratch_forward: tuple[Term, ...] = ()
    scratch_head: tuple[Term, ...] = ()
    left: tuple[Term, ...] = ()
    notes: tuple[str, ...] = ()


@lru_cache(maxsize=1024)
def cast_term(elements: int, size: int) -> tuple[Term, ...]:
    """Return the copies of `elements` parameters in autocast's format of `size` bytes, nothing where there are none."""
    if not elements:
        return ()
    cast = checked(
        "temporaries",
        elements * size,
        "P_c × w",
        (
            model("P_c", elements, "parameters of the projections cast for the step"),
            number_format("w", size, "bytes per element of the autocast format"),
        ),
        "torch.autocast caches the cast of each fp32 weight; the graph keeps it until its backward",
    )
    return (cast,)
