"""Replicas that share routed experts and take their steps together."""

from collections.abc import Sequence
from math import inf

from planner.serving.replica import Replica, StepPlan


class LockstepGroup:
    """Replicas whose experts are divided among them: each step lasts until the slowest of them has taken its own.

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
        """Return the number of requests of all replicas that wait, are read or are answered."""
        return sum([rank.load for rank in self._ranks])

    def advance(self, until: float = inf) -> None:
        """Take all steps that begin before `until`, with the requests submitted so far."""
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
        """Take the next step of all replicas, or several in which all of them only decode."""
        working = [(rank, plan) for rank, plan in zip(self._ranks, plans, strict=True) if plan is not None]
        experts = working[0][0].times.experts(sum([plan.decoding + plan.tokens for _, plan in working]))
        first, more = max([_seconds(rank, plan, experts) for rank, plan in working])
        steps = 1
        if not any(plan.begins for _, plan in working):
            steps = min([rank.steps_within(plan, first, more, until) for rank, plan in working])
            idle = [
                rank.next_arrival - self.clock for rank, plan in zip(self._ranks, plans, strict=True) if plan is None
            ]
            steps = max(1, min([steps, *(int(seconds / first) for seconds in idle if seconds < inf)]))
        for rank, plan in working:
            if plan.begins:
                rank.take_prompts(plan, first)
            else:
                rank.take_steps(plan, steps, first, more)
        ended = working[0][0].clock
        for rank, own in zip(self._ranks, plans, strict=True):
            if own is None:
                rank.start_at(ended)


def _seconds(rank: Replica, plan: StepPlan, experts: float) -> tuple[float, float]:
    """Return the seconds of a replica's step with the `experts` of all, and how much longer each following one is."""
    if plan.begins:
        return rank.own_seconds(plan, experts), 0.0
    first, more = rank.decoding_seconds(plan)
    return first + experts, more
