"""The models besides the trained one: reference, reward model and value model."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from planner.memory.phases import AnyTerm, PhaseSnapshots, Snapshot
from planner.memory.result import PhaseName, Term, TermPart
from planner.memory.terms import library_symbol, term
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture, Tensor
from planner.units import ceil_div
from planner.workload.alignment import Alignment
from planner.workload.defaults import default_weight_format
from planner.workload.training import Training

_SHARDED: Final = 3
"""ZeRO stage from which the parameters of frozen models are sharded, too."""
_SOURCE: Final = (
    "TRL 1.10 (f2cd577): grpo_trainer.py and dpo_trainer.py load the reference as the model itself, "
    "experimental/ppo/ppo_trainer.py adds a reward model and trains policy and value model by one optimizer"
)
_STATES: Final = ("weights", "master_weights", "adapters", "optimizer_states")
_VALUE_LABEL: Final = 1


class ModelBytes(NamedTuple):
    """A model besides the trained one: what it is, and its bytes at a moment."""

    name: str
    bytes: int


def other_models_term(models: Sequence[ModelBytes]) -> Term | None:
    """Return the memory of models besides the trained one, None without any."""
    held = [each for each in models if each.bytes]
    if not held:
        return None
    return term(
        "other_models",
        sum(each.bytes for each in held),
        " + ".join(f"M{place}" for place, _ in enumerate(held, 1)),
        tuple(library_symbol(f"M{place}", each.bytes, f"bytes: {each.name}") for place, each in enumerate(held, 1)),
        _SOURCE,
        certainty="measured",
        parts=tuple(TermPart(each.name, each.bytes, f"{each.bytes:,}", _SOURCE) for each in held),
    )


def frozen_models(architecture: Architecture, workload: Training) -> list[ModelBytes]:
    """Return the frozen models on a card: the reference, if a copy is kept, and a reward model.

    **Formula**: bytes of the trained model's weights in its format, for the reward model in proportion to its
    parameters; over the cards that share parameters in ZeRO-3.
    """
    alignment, parallel = workload.alignment, workload.parallel
    shards = parallel.state_shards if parallel.zero == _SHARDED else 1
    whole = weights_term(architecture, workload.weights or "fp32").bytes
    found = []
    if alignment.reference == "kept":
        found.append(ModelBytes("weights of the reference model", ceil_div(whole, shards)))
    if alignment.generates and alignment.reward == "model":
        size = whole * (alignment.reward_parameters or architecture.parameters) // architecture.parameters
        found.append(ModelBytes("weights of the reward model", ceil_div(size, shards)))
    return found


def value_network(architecture: Architecture) -> Architecture:
    """Return the value model of `architecture`: the same network with one output, as sequence classifiers have."""
    head = Tensor(name="score", shape=(_VALUE_LABEL, architecture.hidden), role="linear")
    return architecture.evolve(head=(head,), tied_head=False)


class ValueModel(NamedTuple):
    """The value model of PPO: its lasting bytes, and those at each phase of a training step."""

    lasting: int
    by_phase: dict[PhaseName, int]

    def at(self, phase: PhaseName) -> list[ModelBytes]:
        """Return the value model's bytes at `phase` of a step."""
        return [
            ModelBytes("weights and optimizer states of the value model", self.lasting),
            ModelBytes("gradients and activations of the value model", self.by_phase.get(phase, 0)),
        ]


def value_model(timeline: PhaseSnapshots) -> ValueModel:
    """Return the value model whose training step has this `timeline`.

    **Formula**: in forward pass and loss its activations besides those of the policy; in the policy's backward pass,
    which comes after its own, all its gradients; in the optimizer step all that this step holds.
    """
    step = _largest(timeline, "step")
    sizes = {each.name: 0 for each in step.terms}
    for each in step.terms:
        sizes[each.name] += each.bytes
    lasting = sum(size for name, size in sizes.items() if name in _STATES)
    activations = max(
        sum(each.bytes for each in one.terms if each.name == "activations")
        for one in timeline.snapshots
        if one.name in ("forward", "loss")
    )
    return ValueModel(
        lasting,
        {
            "forward": activations,
            "loss": activations,
            "backward": sizes.get("gradients", 0),
            "step": sizes.get("gradients", 0) + sizes.get("temporaries", 0),
        },
    )


def _largest(timeline: PhaseSnapshots, phase: PhaseName) -> Snapshot:
    return max((one for one in timeline.snapshots if one.name == phase), key=lambda one: one.total)


def value_training(workload: Training) -> Training:
    """Return the training of the value model, with the loss of one output per token: as the policy's, or in full.

    **Source**: OpenRLHF 0.11 gives adapters to actor and critic alike (`--ds.lora.rank`), as ms-swift does; TRL 1.10
    ppo_trainer.py to the policy alone, and verl 0.9 to the critic by `critic.model.lora_rank`.
    """
    plain = workload.replaced(alignment=Alignment(), loss="full-logits")
    if not workload.adapts or workload.alignment.value == "as-policy":
        return plain
    weights = default_weight_format(plain.replaced(method="full"))
    return plain.replaced(method="full", lora=None, weights=weights, trainable=())


def lasting_terms_of(snapshot: Snapshot, *left_out: str) -> list[AnyTerm]:
    """Return the terms of `snapshot` but those called `left_out`."""
    return [each for each in snapshot.terms if each.name not in left_out]
