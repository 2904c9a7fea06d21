"""The replicas of a deployment, the router before them, and a run of requests through them.

Replicas work alone, in groups that share experts and step together, or apart for prompts and for answers.
"""

from collections.abc import Sequence
from math import inf
from statistics import fmean
from typing import Final, NamedTuple

from planner.base import Stop
from planner.performance.inference.steps import StepScale, StepTimes
from planner.serving.deployment import Deployment, Router
from planner.serving.replica import RamCache, Replica, StaticReplica, StepPlan
from planner.serving.requests import NEVER, Requests


class LockstepGroup:
    """Replicas that share their experts and step together: each step lasts as long as that of the slowest replica.

    **Formula**: the longest of the replicas' times, each with the experts for the tokens of all replicas.

    **Source**: vLLM data parallel deployment with expert parallelism: every rank takes part in each pass, if need be
    with an empty batch.

    **Assumes** that all layers of the slowest replica are the slowest.
    """

    def __init__(self, ranks: Sequence[Replica]) -> None:
        self._ranks = ranks

    @property
    def clock(self) -> float:
        """Return the time at which the next step begins, in seconds."""
        return self._ranks[0].clock

    @property
    def load(self) -> int:
        """Return the number of requests that wait, prefill or decode in all replicas."""
        return sum([rank.load for rank in self._ranks])

    def advance(self, until: float = inf) -> None:
        """Run all steps that begin before `until`, with the requests submitted so far."""
        while True:
            busy = [rank.receive_arrivals() for rank in self._ranks]
            if not any(busy):
                arrival = min(rank.next_arrival for rank in self._ranks)
                if arrival >= until:
                    return
                self._start_at(max(self.clock, arrival))
                continue
            if self.clock >= until:
                return
            self._step([rank.compose() if own else None for rank, own in zip(self._ranks, busy, strict=True)], until)

    def _start_at(self, time: float) -> None:
        for rank in self._ranks:
            rank.start_at(time)

    def _step(self, plans: Sequence[StepPlan | None], until: float) -> None:
        """Run the next step of all replicas, or several steps if all of them only decode."""
        working = [(rank, plan) for rank, plan in zip(self._ranks, plans, strict=True) if plan is not None]
        experts = working[0][0].times.experts(sum([plan.decoding + plan.tokens for _, plan in working]))
        first, more = max([_rank_step_seconds(rank, plan, experts) for rank, plan in working])
        steps = 1
        if not any(plan.prompt_chunks for _, plan in working):
            steps = min([rank.steps_within(plan, first, more, until) for rank, plan in working])
            idle = [
                rank.next_arrival - self.clock for rank, plan in zip(self._ranks, plans, strict=True) if plan is None
            ]
            steps = max(1, min([steps, *(int(seconds / first) for seconds in idle if seconds < inf)]))
        for rank, plan in working:
            if plan.prompt_chunks:
                rank.take_prefill_step(plan, first)
            else:
                rank.take_decoding_steps(plan, steps, first, more)
        ended = working[0][0].clock
        for rank, own in zip(self._ranks, plans, strict=True):
            if own is None:
                rank.start_at(ended)


def _rank_step_seconds(rank: Replica, plan: StepPlan, experts: float) -> tuple[float, float]:
    """Return the seconds of a replica's step with the `experts` of all, and how much longer each following one is."""
    if plan.prompt_chunks:
        return rank.prefill_step_seconds(plan, experts), 0.0
    first, more = rank.decoding_seconds(plan)
    return first + experts, more


ReplicaOrGroup = Replica | StaticReplica | LockstepGroup

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
    return StepTimes(deployment.served, context, deployment.scheduling.padded_rows, scale, deployment.expert_ranks)


def make_replica(
    deployment: Deployment, index: int, times: StepTimes, requests: Requests, recorded_window: tuple[float, float]
) -> Replica | StaticReplica:
    """Return a replica of the deployment that has no requests yet."""
    scheduling = deployment.scheduling
    if scheduling.static_batching:
        return StaticReplica(index, times, scheduling, requests)
    ram = RamCache(deployment.ram_blocks, deployment.ram_token_seconds) if deployment.ram_blocks else None
    blocks, over_http = deployment.cache_blocks, deployment.setup.over_http
    return Replica(index, times, scheduling, blocks, requests, recorded_window, ram, over_http)


def serve(
    replicas: Sequence[Replica | StaticReplica], requests: Requests, router: Router, stop: Stop, ranks: int = 1
) -> bool:
    """Run all requests through the replicas; return False if `stop` returned true before the end.

    Each `ranks` replicas in a row share their experts.
    """
    units = _independent_units(replicas, ranks)
    if router == "round-robin" or len(replicas) == 1:
        for place, number in enumerate(requests.initial):
            replicas[place % len(replicas)].submit(number, requests.arrival[number])
        return all(finish(unit, stop) for unit in units)
    choose = _ROUTERS[router]
    for place, number in enumerate(requests.initial):
        time = requests.arrival[number]
        for unit in units:
            unit.advance(time)
        choose(replicas, number).submit(number, time)
        if place % _CHECKED_EVERY == 0 and stop():
            return False
    return all(finish(unit, stop) for unit in units)


def _independent_units(replicas: Sequence[Replica | StaticReplica], ranks: int) -> Sequence[ReplicaOrGroup]:
    """Return the units that advance independently: the replicas, or the groups that share experts."""
    sharing = [replica for replica in replicas if isinstance(replica, Replica)]
    if ranks == 1 or len(sharing) < len(replicas):
        return replicas
    return [LockstepGroup(sharing[place : place + ranks]) for place in range(0, len(sharing), ranks)]


def finish(unit: ReplicaOrGroup, stop: Stop) -> bool:
    """Run a replica or a group until all its requests are answered; return False as soon as `stop` returns true."""
    until = max(unit.clock, 1.0)
    while unit.load:
        if stop():
            return False
        unit.advance(until)
        until = 2 * until
    return True


def _least_loaded(replicas: Sequence[Replica | StaticReplica], _number: int) -> Replica | StaticReplica:
    return min(replicas, key=lambda replica: (replica.load, replica.index))


def _with_prefix(replicas: Sequence[Replica | StaticReplica], number: int) -> Replica | StaticReplica:
    """Return the replica whose cache has most of the prompt, unless it has far more requests than the others."""
    least = _least_loaded(replicas, number)
    limit = _OVERLOADED * least.load + _LOAD_GAP
    best = max(replicas, key=lambda replica: (replica.cached_prompt_tokens(number), -replica.load, -replica.index))
    return best if best.cached_prompt_tokens(number) and best.load <= limit else least


_ROUTERS: Final = {"least-loaded": _least_loaded, "prefix-aware": _with_prefix}


def run_disaggregated(
    deployment: Deployment, requests: Requests, times: StepTimes, recorded_window: tuple[float, float], stop: Stop
) -> SimulatedRun | None:
    """Return the run of `requests` through replicas for prompts, then through others for answers; None if stopped.

    A prompt gives the first token where it was read; its cache is then sent, one request after the other from each
    replica, and the answer goes on with the cache received. Requests are handed out in turn.

    **Source**: vLLM's disaggregated prefill (NixlConnector) and the xPyD deployments of NVIDIA Dynamo.

    **Assumes** that the cache of a prompt is free as soon as it was sent, and that requests do not follow each other.
    """
    split = deployment.setup.disaggregation
    assert split is not None
    prompts = _prefill_requests(requests)
    prefill_replicas = [
        _prefill_replica(deployment, index, times, prompts, recorded_window) for index in range(split.prefill_replicas)
    ]
    for place, number in enumerate(requests.initial):
        prefill_replicas[place % len(prefill_replicas)].submit(number, requests.arrival[number])
    if not all(finish(replica, stop) for replica in prefill_replicas):
        return None
    arrivals = _cache_arrivals(deployment, prompts, requests.output)
    answers = _continued_requests(requests, prompts)
    decode_replicas = [
        _decode_replica(deployment, split.prefill_replicas + index, times, answers, recorded_window)
        for index in range(split.decode_replicas)
    ]
    for place, number in enumerate(sorted(arrivals, key=lambda number: arrivals[number])):
        decode_replicas[place % len(decode_replicas)].submit(number, arrivals[number])
    if not all(finish(replica, stop) for replica in decode_replicas):
        return None
    _merge_times(requests, prompts, answers)
    replicas = (*prefill_replicas, *decode_replicas)
    return SimulatedRun(requests, replicas, max(replica.clock for replica in replicas))


def _prefill_requests(requests: Requests) -> Requests:
    """Return the requests as prefill replicas see them: each ends with its first token."""
    found = Requests()
    for number in range(len(requests)):
        found.add(requests.arrival[number], requests.prompt[number], 1, requests.prefixes[number])
    return found


def _continued_requests(requests: Requests, prompts: Requests) -> Requests:
    """Return the requests as decode replicas see them: the prompt is in the cache, and the first token is known."""
    found = Requests()
    for number in range(len(requests)):
        found.add(NEVER, requests.prompt[number], requests.output[number])
        found.first[number] = prompts.first[number]
    return found


def _prefill_replica(
    deployment: Deployment, index: int, times: StepTimes, requests: Requests, recorded_window: tuple[float, float]
) -> Replica:
    scheduling, blocks, over_http = deployment.scheduling, deployment.cache_blocks, deployment.setup.over_http
    return Replica(index, times, scheduling, blocks, requests, recorded_window, over_http=over_http)


def _decode_replica(
    deployment: Deployment, index: int, times: StepTimes, requests: Requests, recorded_window: tuple[float, float]
) -> Replica:
    scheduling = deployment.scheduling.without_prefixes()
    received = Replica(index, times, scheduling, deployment.cache_blocks, requests, recorded_window)
    received.receives_cache = True
    return received


def _cache_arrivals(deployment: Deployment, prompts: Requests, whole: list[int]) -> dict[int, float]:
    """Return when the KV cache of each unfinished request arrives; each replica sends one cache after the other.

    `whole` are the tokens of the answers.
    """
    free: dict[int, float] = {}
    arrivals = {}
    for number in sorted(range(len(prompts)), key=lambda number: prompts.first[number]):
        if prompts.end[number] == NEVER or whole[number] == 1:
            continue
        begin = max(prompts.first[number], free.get(prompts.replica[number], 0.0))
        arrivals[number] = free[prompts.replica[number]] = begin + deployment.transfer_seconds(prompts.prompt[number])
    return arrivals


def _merge_times(requests: Requests, prompts: Requests, answers: Requests) -> None:
    """Write the times of prefill and decode of each request into `requests`."""
    for number in range(len(requests)):
        requests.scheduled[number] = prompts.scheduled[number]
        requests.first[number], requests.cached[number] = prompts.first[number], prompts.cached[number]
        requests.replica[number] = prompts.replica[number]
        only_first = requests.output[number] == 1
        requests.end[number] = prompts.end[number] if only_first else answers.end[number]
