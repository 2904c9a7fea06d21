"""A replica that answers one batch of requests after the other, as a program without continuous batching does."""

from collections import deque
from heapq import heappop, heappush
from math import inf

from planner.performance.inference.steps import StepTimes
from planner.serving.latencies import DurationCounts
from planner.serving.replica import Preemption
from planner.serving.requests import Requests
from planner.serving.result import MinuteMoment
from planner.serving.scheduling import Scheduling


class StaticReplica:
    """A replica whose batches begin when the one before has ended, with all requests that wait, up to its size.

    Prompts are padded to the longest of a batch, and the batch ends with its longest answer; a request has its answer
    when its own last token is written.
    """

    def __init__(self, index: int, times: StepTimes, scheduling: Scheduling, requests: Requests) -> None:
        self.index, self.times, self.scheduling, self.requests = index, times, scheduling, requests
        self.clock = 0.0
        self.intervals = DurationCounts()
        self.moments: list[MinuteMoment] = []
        self.preemptions: list[Preemption] = []
        self.rejected: list[int] = []
        self.busy_seconds = self.prompt_seconds = 0.0
        self.watched = (inf, inf)
        self.was_full = self.lacked_room = False
        self._pending: list[tuple[float, int]] = []
        self._waiting: deque[int] = deque()

    @property
    def load(self) -> int:
        """Return the number of requests that wait."""
        return len(self._waiting) + len(self._pending)

    def cached_part(self, _number: int) -> int:
        """Return the tokens of a request's prompt that are cached, which is none."""
        return 0

    def submit(self, number: int, time: float) -> None:
        """Let a request arrive at `time`."""
        self.requests.arrival[number] = time
        self.requests.replica[number] = self.index
        heappush(self._pending, (time, number))

    def advance(self, until: float = inf) -> None:
        """Answer all batches that begin before `until`, with the requests submitted so far."""
        while True:
            while self._pending and self._pending[0][0] <= self.clock:
                self._waiting.append(heappop(self._pending)[1])
            if self._waiting:
                if self.clock >= until:
                    return
                self._answer()
            elif self._pending and self._pending[0][0] < until:
                self.clock = self._pending[0][0]
            else:
                return

    def _answer(self) -> None:
        """Answer the next batch."""
        size = min(self.scheduling.sequences, len(self._waiting))
        self.was_full = self.was_full or len(self._waiting) > size
        batch = [self._waiting.popleft() for _ in range(size)]
        requests, begin = self.requests, self.clock
        longest = max(requests.prompt[number] for number in batch)
        reading = self.times.mixed(0, 0, size * longest, size * self.times.attention(0, longest))
        step = self.times.decoding(size)
        first = begin + reading
        at_first = max(step.seconds + step.per_token * size * longest, step.least)
        more = step.per_token * size
        for number in batch:
            steps = requests.output[number] - 1
            requests.scheduled[number], requests.first[number] = begin, first
            requests.end[number] = first + steps * at_first + more * steps * max(steps - 1, 0) / 2
            if steps:
                self.intervals.add(at_first + more * (steps - 1) / 2, steps)
        self.clock = max(requests.end[number] for number in batch)
        self.busy_seconds += self.clock - begin
        self.prompt_seconds += reading
        for number in batch:
            after = requests.followed_by[number]
            if after >= 0:
                self.submit(after, requests.end[number] + requests.pause[number])
