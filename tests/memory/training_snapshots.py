"""Snapshots of training steps, and the terms alive in a phase, for tests."""

from small_models import llama

from planner.memory.estimate import fullest_timeline
from planner.memory.phases import PhaseSnapshots
from planner.workload.defaults import with_defaults
from planner.workload.workload import Training

TOKENS = 2048


def snapshots(model, count=1, **changes) -> PhaseSnapshots:
    return fullest_timeline(model, with_defaults(Training(**{"compute": "bf16"} | changes), model, count))


def alive(found: PhaseSnapshots, phase: str, explanation: str = "") -> dict[str, int]:
    """Return the bytes of each term in the first snapshot of `phase` whose explanation has these words."""
    snapshot = next(m for m in found.snapshots if m.name == phase and explanation in m.explanation)
    shares: dict[str, int] = {}
    for term in snapshot.terms:
        shares[term.name] = shares.get(term.name, 0) + term.bytes
    return shares


def layer_difference(**changes) -> int:
    """Return what 3 layers of Llama-3.1-8B keep more than 2 when the forward pass is through."""
    sizes = {"num_key_value_heads": 8, "intermediate_size": 14_336}
    kept = [
        alive(snapshots(llama(num_hidden_layers=depth, **sizes), sequence_length=TOKENS, **changes), "forward")
        for depth in (2, 3)
    ]
    return kept[1]["activations"] - kept[0]["activations"]
