"""Terms alive in a phase of inference, for tests."""

from planner.memory.inference.timeline import inference_timeline
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


def alive(model, phase, explanation="", **changes) -> dict[str, int]:
    found = inference_timeline(model, with_defaults(Inference(**changes), model, 1))
    snapshot = next(m for m in found.snapshots if m.name == phase and explanation in m.explanation)
    return {term.name: term.bytes for term in snapshot.terms}
