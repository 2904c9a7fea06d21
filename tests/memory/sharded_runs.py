"""Training steps on eight cards, for tests of what each of them holds."""

from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.result import MemoryResult
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.workload import Training

SHORT = {"sequence_length": 128}


CARDS = 8


def held(result: MemoryResult, phase: str) -> dict[str, int]:
    found = next(one for one in result.phases if one.name == phase)
    return {share.name: share.bytes for share in found.shares}


def run(model, count: int = CARDS, phase: str = "step", parallel=None, **changes) -> dict[str, int]:
    workload = Training(**SHORT | changes, parallel=Parallel(**(parallel or {})))
    return held(estimate_memory(model, workload, count=count), phase)


def parts(model, phase: str, parallel=None, **changes) -> dict[str, int]:
    """Return the buffers that cards exchange through when most is alive in `phase`."""
    workload = Training(**SHORT | changes, parallel=Parallel(**(parallel or {})))
    snapshots = fullest_timeline(model, with_defaults(workload, model, CARDS)).snapshots
    most = max((snapshot for snapshot in snapshots if snapshot.name == phase), key=lambda snapshot: snapshot.total)
    term = next(term for term in most.written() if term.name == "communication")
    return {part.name: part.bytes for part in term.parts}
