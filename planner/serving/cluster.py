"""The replicas of a deployment, the router before them, and a run of requests through them."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from planner.performance.inference.steps import StepScale, StepTimes
from planner.serving.deployment import Deployment, Router
from planner.serving.lockstep import LockstepGroup
from planner.serving.replica import RamCache, Replica
from planner.serving.requests import NEVER, Requests
from planner.serving.static_batches import StaticReplica

Stop = Callable[[], bool]
Mover = Replica | StaticReplica | LockstepGroup

_OVERLOADED: Final = 1.5
_LOAD_GAP: Final = 8
_CHECKED_EVERY: Final = 512


class SimulatedRun(NamedTuple):
    """A finished run of a simulation: the requests with their times, and the replicas."""

    requests: Requests
    replicas: Sequence[Replica | StaticReplica]
    seconds: float

    @property
    def ended(self) -> list[int]:
        """Return the numbers of the requests that were answered."""
        return [number for number, time in enumerate(self.requests.end) if time != NEVER]

    @property
    def queue_seconds(self) -> list[float]:
        """Return how long each answered request waited until it was scheduled."""
        requests = self.requests
        return [requests.scheduled[number] - requests.arrival[number] for number in self.ended]


def step_times(deployment: Deployment, requests: Requests, scale: StepScale) -> StepTimes:
    """Return the times of steps with requests of these lengths."""
    context = fmean(requests.prompt) + fmean(requests.output) / 2
    return StepTimes(deployment.run, context, deployment.scheduling.padded, scale, deployment.expert_ranks)


def make_replica(
    deployment: Deployment, index: int, times: StepTimes, requests: Requests, watched: tuple[float, float]
) -> Replica | StaticReplica:
    """Return a replica of the deployment that has no requests yet."""
    rules = deployment.scheduling
    if rules.static:
        return StaticReplica(index, times, rules, requests)
    ram = RamCache(deployment.ram_blocks, deployment.ram_token_seconds) if deployment.ram_blocks else None
    blocks, over_http = deployment.cache_blocks, deployment.setup.over_http
    return Replica(index, times, rules, blocks, requests, deployment.fixed_blocks, watched, ram, over_http)


def serve(
    replicas: Sequence[Replica | StaticReplica], requests: Requests, router: Router, stop: Stop, ranks: int = 1
) -> bool:
    """Let all requests through the replicas; return False if `stop` returned true before the end.

    Each `ranks` replicas in a row share their experts.
    """
    movers = _movers(replicas, ranks)
    if router == "round-robin" or len(replicas) == 1:
        for place, number in enumerate(requests.initial):
            replicas[place % len(replicas)].submit(number, requests.arrival[number])
        return all(finish(mover, stop) for mover in movers)
    choose = _ROUTERS[router]
    for place, number in enumerate(requests.initial):
        time = requests.arrival[number]
        for mover in movers:
            mover.advance(time)
        choose(replicas, number).submit(number, time)
        if place % _CHECKED_EVERY == 0 and stop():
            return False
    return all(finish(mover, stop) for mover in movers)


def _movers(replicas: Sequence[Replica | StaticReplica], ranks: int) -> Sequence[Mover]:
    """Return what advances by itself: the replicas, or the groups of those that share their experts."""
    sharing = [replica for replica in replicas if isinstance(replica, Replica)]
    if ranks == 1 or len(sharing) < len(replicas):
        return replicas
    return [LockstepGroup(sharing[place : place + ranks]) for place in range(0, len(sharing), ranks)]


def finish(mover: Mover, stop: Stop) -> bool:
    """Let a replica or a group answer all requests, in slices between which it is asked whether to stop."""
    until = max(mover.clock, 1.0)
    while mover.load:
        if stop():
            return False
        mover.advance(until)
        until = 2 * until
    return True


def _least_loaded(replicas: Sequence[Replica | StaticReplica], _number: int) -> Replica | StaticReplica:
    return min(replicas, key=lambda replica: (replica.load, replica.index))


def _with_prefix(replicas: Sequence[Replica | StaticReplica], number: int) -> Replica | StaticReplica:
    """Return the replica that has most of the prompt, unless it has many more requests than the others."""
    least = _least_loaded(replicas, number)
    limit = _OVERLOADED * least.load + _LOAD_GAP
    best = max(replicas, key=lambda replica: (replica.cached_part(number), -replica.load, -replica.index))
    return best if best.cached_part(number) and best.load <= limit else least


_ROUTERS: Final = {"least-loaded": _least_loaded, "prefix-aware": _with_prefix}
