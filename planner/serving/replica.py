"""Replicas of a served model: step by step as engines schedule them, or in batches, and the cache in use."""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from math import ceil, inf, sqrt
from typing import Final, NamedTuple

from planner.performance.inference.steps import StepTimes
from planner.serving.prefix_cache import PrefixCache
from planner.serving.requests import NEVER, Requests
from planner.serving.result import DurationCounts, MinuteMoment
from planner.serving.scheduling import Scheduling
from planner.serving.traffic import CommonPrefix

_UNEVEN_STEPS: Final = 0.02
"""Relative change of the time of a step from which the steps taken together are counted in parts."""
_PARTS: Final = 8
_UNLIMITED: Final = 2**60
_REQUEST_SECONDS: Final = 1e-3
_TOKEN_SECONDS: Final = 1.6e-6
"""Time of a request and of a token of its prompt between the client and the scheduler: HTTP and tokenizer.

**Source**: of a token, gist benvanik/9090b155 (February 2026): Hugging Face's tokenizers encode 2.5 to 2.7 MiB a
second in Python, about 4.3 bytes a token.

**Assumes** of a request that it is more than nothing, and less than a step.
"""
_PREEMPTED_CACHES: Final = -(2**40)
"""Name of the cache of request 0 in the prefix cache, below the names of sessions; those of others follow downwards."""


class Preemption(NamedTuple):
    """Preemption of a request: it lost its cache, so prompt and answer are computed again."""

    seconds: float
    request: int


class _Prefill:
    """A request in prefill: `done` of its `total` tokens are in the cache."""

    __slots__ = ("done", "number", "total")

    def __init__(self, number: int, done: int, total: int) -> None:
        self.number, self.done, self.total = number, done, total


class RamCache(NamedTuple):
    """KV cache in RAM: its blocks, and the seconds to copy the cache of one token over the bus."""

    blocks: int
    token_seconds: float


class StepPlan(NamedTuple):
    """Content of the next step: the chunks of prompts with their tokens and attention, and the decoding sequences.

    Without prompts it is a decoding step, which may be taken several times.
    """

    prompt_chunks: "Sequence[tuple[_Prefill, int]]"
    decoding: int
    context: int
    tokens: int
    attention: float


class BaseReplica:
    """Requests of a replica of any kind, and the record of its run.

    Times are seconds since the begin; `recorded_window` is the window in which moments are recorded.
    """

    def __init__(
        self,
        index: int,
        times: StepTimes,
        scheduling: Scheduling,
        requests: Requests,
        recorded_window: tuple[float, float] = (inf, inf),
    ) -> None:
        self.index, self.times, self.scheduling, self.requests = index, times, scheduling, requests
        self.recorded_window = recorded_window
        self.clock = 0.0
        self.intervals = DurationCounts()
        self.moments: list[MinuteMoment] = []
        self.preemptions: list[Preemption] = []
        self.rejected: list[int] = []
        self.busy_seconds = self.prompt_seconds = 0.0
        self.was_full = self.lacked_room = False
        self._pending: list[tuple[float, int]] = []
        self._waiting: deque[int] = deque()

    @property
    def load(self) -> int:
        """Return the number of unanswered requests."""
        return len(self._waiting) + len(self._pending)

    def cached_prompt_tokens(self, _number: int) -> int:
        """Return the number of cached prompt tokens of a request: 0 without a prefix cache."""
        return 0

    def submit(self, number: int, time: float) -> None:
        """Add a request that arrives at `time`."""
        self.requests.arrival[number] = time
        self.requests.replica[number] = self.index
        heappush(self._pending, (time, number))

    def _submit_next(self, number: int, time: float) -> None:
        """Submit the next request of the same client or session, after this one ended at `time`."""
        after = self.requests.followed_by[number]
        if after >= 0:
            self.submit(after, time + self.requests.pause[number])


class Replica(BaseReplica):
    """The scheduler of one replica, which advances from step to step with the requests that are submitted to it.

    `cache_blocks` is the capacity of the KV cache in blocks. Steps in which all running sequences decode and none is
    admitted are taken together.

    **Assumes** that answers have the lengths that the traffic says. A preempted request finds of its own cache what
    nothing has overwritten, if the engine has a prefix cache.
    """

    def __init__(
        self,
        index: int,
        times: StepTimes,
        scheduling: Scheduling,
        cache_blocks: int | None,
        requests: Requests,
        recorded_window: tuple[float, float] = (inf, inf),
        ram: RamCache | None = None,
        over_http: bool = False,
    ) -> None:
        super().__init__(index, times, scheduling, requests, recorded_window)
        self.capacity = _UNLIMITED if cache_blocks is None else cache_blocks
        self.block_seconds = 0.0
        self.used_blocks = self.most_blocks = 0
        self.receives_cache = False
        self.over_http = over_http
        self._composed_at = NEVER
        self._prefilling: list[_Prefill] = []
        self._ending: list[tuple[int, int, int]] = []
        self._step = self._steps_to_poll = 0
        self._decoding = 0
        self._context = 0
        self._tokens_outstanding = 0
        self._stalled, self._stalled_sequences = 0.0, 0
        self._growing_by_offset = [0] * scheduling.block_tokens
        self._order: list[tuple[int, int]] = []
        self._version: dict[int, int] = {}
        self._answered: dict[int, int] = {}
        self._growth_offset: dict[int, int] = {}
        self._tokens_owed = 0.0
        self._shared: dict[int, int] = {}
        self._ram, self._bus_free, self._fetched = ram, 0.0, dict[int, int]()
        self.fetched_tokens = 0
        blocks = ram.blocks if ram else 0
        self._prefixes = PrefixCache(scheduling.block_tokens, blocks) if scheduling.caches_prefixes else None

    @property
    def load(self) -> int:
        """Return the number of requests that wait, prefill or decode."""
        return self._decoding + len(self._prefilling) + len(self._waiting) + len(self._pending)

    @property
    def waiting(self) -> int:
        """Return the number of requests that wait for admission."""
        return len(self._waiting)

    def cached_prompt_tokens(self, number: int) -> int:
        """Return the number of prompt tokens of a request that are in the prefix cache."""
        if self._prefixes is None:
            return 0
        return self._prefixes.matched(self.requests.prefixes[number], self.requests.prompt[number])

    def submit(self, number: int, time: float) -> None:
        """Add a request that arrives at `time`; reject one that is too long for the cache."""
        self.requests.arrival[number] = time
        self.requests.replica[number] = self.index
        length = self.requests.prompt[number] + self.requests.output[number]
        slot = self.scheduling.slot_tokens
        if (slot is not None and length > slot) or self._blocks(length) > self.capacity:
            self.rejected.append(number)
            self._submit_next(number, time)
        else:
            before = _REQUEST_SECONDS + _TOKEN_SECONDS * self.requests.prompt[number] if self.over_http else 0.0
            heappush(self._pending, (time + before, number))

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.scheduling.block_tokens)

    @property
    def next_arrival(self) -> float:
        """Return when the next submitted request arrives, infinite if there is none."""
        return self._pending[0][0] if self._pending else inf

    def advance(self, until: float = inf) -> None:
        """Run all steps that begin before `until`, with the requests submitted so far."""
        while True:
            if self.receive_arrivals():
                if self.clock >= until:
                    return
                plan = self.compose()
                if plan.prompt_chunks:
                    self.take_prefill_step(plan, self.prefill_step_seconds(plan))
                else:
                    first, more = self.decoding_seconds(plan)
                    self.take_decoding_steps(plan, self.steps_within(plan, first, more, until), first, more)
            elif self.next_arrival >= until:
                return
            else:
                self.start_at(max(self.clock, self.next_arrival))

    def start_at(self, time: float) -> None:
        """Advance the clock of an idle replica to `time`."""
        self.clock = self._composed_at = time

    def receive_arrivals(self) -> bool:
        """Queue the requests that have arrived; return whether any request waits or runs."""
        if self._decoding and self._steps_to_poll > 0:
            return True
        self._steps_to_poll = self.scheduling.polls_every if self.scheduling.polls_every > 1 else 0
        ready = self._composed_at if self.scheduling.schedules_ahead else self.clock
        while self._pending and self._pending[0][0] <= ready:
            number = heappop(self._pending)[1]
            if not (self._ram and self._starts_fetch(number, self._ram)):
                self._waiting.append(number)
        return bool(self._waiting or self._prefilling or self._decoding)

    def _starts_fetch(self, number: int, ram: RamCache) -> bool:
        """Return whether the beginning of a prompt is brought from RAM before the request waits for its admission.

        **Source**: vLLM v1/core/sched/scheduler.py: requests wait for remote caches while others run.

        **Assumes** that one request after the other uses the bus, and that what it brought stays until its admission.
        """
        if self._prefixes is None or number in self._fetched:
            return False
        prefixes, prompt = self.requests.prefixes[number], self.requests.prompt[number]
        here = self._prefixes.matched(prefixes, prompt)
        found = self._prefixes.matched(prefixes, prompt, in_ram=True)
        if found <= here:
            return False
        self._fetched[number] = found
        self.fetched_tokens += found - here
        self._bus_free = max(self.clock, self._bus_free) + (found - here) * ram.token_seconds
        heappush(self._pending, (self._bus_free, number))
        return True

    def compose(self) -> "StepPlan":
        """Return the next step, whose requests have their blocks of the cache."""
        if self.recorded_window[0] <= self.clock < self.recorded_window[1]:
            self._record_moment()
        preempted = self._make_room()
        while self.receives_cache and self._waiting and not preempted and self._start_received():
            pass
        if self._prefilling or (self._waiting and not preempted):
            prompt_chunks = self._next_prompt_chunks(admits=not preempted)
            if prompt_chunks:
                return self._plan(prompt_chunks)
        ending = self._ending
        while self._version.get(ending[0][1], 0) != ending[0][2]:
            heappop(ending)
        return StepPlan((), self._decoding, self._context, 0, 0.0)

    def _plan(self, prompt_chunks: "list[tuple[_Prefill, int]]") -> "StepPlan":
        tokens, attention = 0, 0.0
        for entry, size in prompt_chunks:
            tokens += size
            attention += self.times.attention(entry.done, entry.done + size)
        if self.scheduling.mixes_prefill:
            return StepPlan(prompt_chunks, self._decoding, self._context, tokens, attention)
        return StepPlan(prompt_chunks, 0, 0, tokens, attention)

    def prefill_step_seconds(self, plan: "StepPlan", experts: float = 0.0) -> float:
        """Return the seconds of a step with prefill; `experts` are the seconds of experts shared between replicas."""
        return self.times.mixed(plan.decoding, plan.context, plan.tokens, plan.attention, experts)

    def decoding_seconds(self, plan: "StepPlan") -> tuple[float, float]:
        """Return the seconds of the next decoding step, and by how much each following one takes longer."""
        base = self.times.decoding(plan.decoding)
        first, more = base.seconds + base.per_token * plan.context, base.per_token * plan.decoding
        return (base.least, 0.0) if first < base.least else (first, more)

    def steps_within(self, plan: "StepPlan", first: float, more: float, until: float) -> int:
        """Return how many steps in a row only decode: no request arrives, ends or runs out of cache."""
        steps = self._ending[0][0] - self._step
        base = self.times.decoding(plan.decoding)
        if first <= base.least and base.per_token:
            # Reading the cache takes longer with each step, until the GPU takes longer than the host.
            each = base.per_token * plan.decoding
            steps = min(steps, max(1, ceil((base.least - base.seconds - base.per_token * plan.context) / each)))
        if until < inf:
            steps = min(steps, max(1, _steps_until(until - self.clock, first, more)))
        if self._pending and self._steps_to_poll:
            steps = min(steps, self._steps_to_poll)
        elif self._pending and not self._waiting:
            reached = _steps_until(self._pending[0][0] - self.clock, first, more)
            steps = min(steps, reached + 1 if self.scheduling.schedules_ahead else max(1, reached))
        free = self.capacity - self.used_blocks
        while steps > 1 and self._growth(steps) > free:
            steps //= 2
        return steps

    def _record_moment(self) -> None:
        share = 0.0 if self.capacity == _UNLIMITED else self.used_blocks / self.capacity
        state = (len(self._waiting), len(self._prefilling), self._decoding)
        self.moments.append(MinuteMoment(self.clock, self.index, *state, share))

    # The cache

    def _growth(self, steps: int) -> int:
        """Return the blocks that the decoding sequences need in the next `steps` steps."""
        whole, rest = divmod(steps, len(self._growing_by_offset))
        begin, size = self._step % len(self._growing_by_offset), len(self._growing_by_offset)
        found = whole * self._growing_sequences if whole else 0
        if rest == 1:
            return found + self._growing_by_offset[begin]
        end = begin + rest
        if end <= size:
            return found + sum(self._growing_by_offset[begin:end])
        return found + sum(self._growing_by_offset[begin:]) + sum(self._growing_by_offset[: end - size])

    @property
    def _next_growth(self) -> int:
        """Return the blocks that the decoding sequences need in the next step, for all tokens that it checks."""
        rows = self.times.rows_per_sequence
        return self._growing_by_offset[self._step % len(self._growing_by_offset)] if rows == 1 else self._growth(rows)

    @property
    def _growing_sequences(self) -> int:
        return 0 if self.scheduling.reservation == "whole" else self._decoding

    def _take(self, blocks: int) -> None:
        self.used_blocks += blocks
        if self.used_blocks > self.most_blocks:
            self.most_blocks = self.used_blocks
        if self._prefixes is not None:
            self._prefixes.taken += blocks

    def _make_room(self) -> bool:
        """Preempt the requests admitted last until the next step has room; return whether one was."""
        preempted = False
        while self.used_blocks + self._next_growth > self.capacity:
            self._preempt()
            preempted = True
        return preempted

    def _preempt(self) -> None:
        """Preempt the request that was admitted last: it loses its cache and waits in front of all others."""
        number, version = self._order.pop()
        while self._version.get(number, 0) != version:
            number, version = self._order.pop()
        self._version[number] = version + 1
        reading = next((entry for entry in self._prefilling if entry.number == number), None)
        if reading is not None:
            self._prefilling.remove(reading)
            stored = reading.done
        else:
            place = next(place for place, entry in enumerate(self._ending) if entry[1:] == (number, version))
            remaining = self._ending[place][0] - self._step
            self._answered[number] = self.requests.output[number] - remaining
            stored = self._leave_decoding(number, self._answered[number])
        self._tokens_outstanding -= self.requests.output[number] - self._answered.get(number, 0)
        shared = self._shared.get(number, 0)
        self._free(number, self._held(number, stored, is_read=reading is not None))
        if self._prefixes is not None:
            self._prefixes.keep(_PREEMPTED_CACHES - number, shared, stored, self.capacity - self.used_blocks)
        self.preemptions.append(Preemption(self.clock, number))
        self._waiting.appendleft(number)

    def _leave_decoding(self, number: int, answered: int) -> int:
        """Remove a decoding sequence, and return the number of its tokens in the cache."""
        stored = self.requests.prompt[number] + answered - 1
        self._decoding -= 1
        self._context -= stored
        residue = self._growth_offset.pop(number, -1)
        if residue >= 0:
            self._growing_by_offset[residue] -= 1
        return stored

    def _held(self, number: int, stored: int, *, is_read: bool = False) -> int:
        """Return the blocks of a running request, without shared ones, with `stored` tokens in the cache."""
        reservation = self.scheduling.reservation
        if reservation == "whole":
            stored = self.requests.prompt[number] + self.requests.output[number]
        elif reservation == "prompt" and is_read:
            stored = self.requests.prompt[number] + self._answered.get(number, 0)
        return max(0, self._blocks(stored) - self._shared.get(number, 0))

    def _free(self, number: int, own: int) -> None:
        self.used_blocks -= own
        if self._prefixes is not None:
            free = self.capacity - self.used_blocks
            self.used_blocks -= self._prefixes.release(self.requests.prefixes[number], free)

    # Steps

    def _next_prompt_chunks(self, *, admits: bool) -> "list[tuple[_Prefill, int]]":
        rules = self.scheduling
        growth = self._next_growth if rules.mixes_prefill else 0
        budget = rules.step_tokens - (self._decoding * self.times.rows_per_sequence if rules.mixes_prefill else 0)
        prompt_chunks: list[tuple[_Prefill, int]] = []
        for entry in tuple(self._prefilling):
            size = min(entry.total - entry.done, budget)
            if size <= 0:
                break
            if not self._continue(entry, size, growth):
                admits = False  # else the request that was preempted could begin again at once, in every step
                break
            prompt_chunks.append((entry, size))
            budget -= size
        while admits and budget > 0 and self._waiting and self._prefills_first():
            admitted = self._admit(budget, growth, alone=not prompt_chunks)
            if admitted is None:
                break
            prompt_chunks.append(admitted)
            budget -= admitted[1]
        return prompt_chunks

    def _prefills_first(self) -> bool:
        """Return whether the first waiting request needs prefill here: in a decode replica, only after a preemption."""
        return not self.receives_cache or self._waiting[0] in self._answered

    def take_prefill_step(self, plan: "StepPlan", seconds: float) -> None:
        """Run a step with prefill that takes `seconds` seconds."""
        self._steps_to_poll = 0
        self._pass_time(seconds)
        self.prompt_seconds += seconds
        self._count_step(seconds, plan.decoding)
        self._end_prefill(plan)

    def _count_step(self, seconds: float, decoding: int) -> None:
        """Record the step as a token interval of the sequences that decoded in it, or as a stall of the others."""
        if not self.scheduling.mixes_prefill:
            if not self._stalled:
                self._stalled_sequences = self._decoding
            self._stalled += seconds
        elif decoding:
            tokens = self._yielded()
            self.intervals.add(seconds / tokens, tokens * decoding)
            for _ in range(tokens):
                self._decoded(1)
        else:
            self._step += 1

    def _yielded(self) -> int:
        """Return the tokens that each sequence gets in a step: whole ones, which are right on average with a draft."""
        self._tokens_owed += self.times.tokens_per_step
        tokens = int(self._tokens_owed)
        self._tokens_owed -= tokens
        return tokens

    def _pass_time(self, seconds: float) -> None:
        self._composed_at = self.clock
        self.clock += seconds
        self.busy_seconds += seconds
        self.block_seconds += seconds * self.used_blocks

    def _continue(self, entry: _Prefill, size: int, growth: int) -> bool:
        """Take the blocks for the next `size` tokens of a prompt; return False if the request was preempted instead.

        Those that were admitted after it, with a cache from elsewhere, are preempted before it.
        """
        if self.scheduling.reservation != "chunk":
            return True
        shared = self._shared.get(entry.number, 0)
        need = max(0, self._blocks(entry.done + size) - shared) - max(0, self._blocks(entry.done) - shared)
        while self.used_blocks + growth + need > self.capacity:
            self._preempt()
            if entry not in self._prefilling:
                return False
            growth = self._next_growth
        self._take(need)
        return True

    def _admit(self, budget: int, growth: int, *, alone: bool) -> tuple[_Prefill, int] | None:
        """Admit the first waiting request and return its tokens of this step, or None if it has to wait."""
        rules, number = self.scheduling, self._waiting[0]
        if self._decoding + len(self._prefilling) >= rules.sequences:
            self.was_full = True
            return None
        prompt, answered = self.requests.prompt[number], self._answered.get(number, 0)
        total, output = prompt + answered, self.requests.output[number]
        prefixes = self.requests.prefixes[number] if self._prefixes is not None else ()
        done = self._prefixes.matched(prefixes, prompt) if self._prefixes is not None and prefixes else 0
        if self._fetched and not self._version.get(number, 0):
            done = max(done, self._fetched.get(number, 0))
        if self._prefixes is not None and self._version.get(number, 0):
            own_cache = (CommonPrefix(_PREEMPTED_CACHES - number, total),)
            done = max(done, self._prefixes.matched(own_cache, total))
        size = min(total - done, budget)
        if not rules.chunks_prompts and size < total - done:
            if not alone or budget < rules.step_tokens:
                return None
            size = total - done
        stored = (
            prompt + output if rules.reservation == "whole" else done + size if rules.reservation == "chunk" else total
        )
        shared, moved = self._prefixes.claim(prefixes) if self._prefixes is not None and prefixes else (0, 0)
        own = max(0, self._blocks(stored) - shared)
        if self.used_blocks + growth + moved + own > self.capacity:
            self.lacked_room = True
            return None
        if rules.answer_share:
            free = (self.capacity - self.used_blocks - moved) * rules.block_tokens
            others = rules.answer_share * self._tokens_outstanding if self._decoding or self._prefilling else 0.0
            if free - others < total - done + (output - answered) and (self._decoding or self._prefilling):
                self.lacked_room = True
                return None
        self._waiting.popleft()
        return self._begin(_Prefill(number, done, total), size, own, shared, prefixes)

    def _begin(
        self, entry: _Prefill, size: int, own: int, shared: int, prefixes: tuple[CommonPrefix, ...]
    ) -> tuple[_Prefill, int]:
        """Take the blocks of an admitted request, and note when it was scheduled."""
        number = entry.number
        if prefixes and self._prefixes is not None:
            self.used_blocks += self._prefixes.acquire(prefixes)
            self._shared[number] = shared
        self._take(own)
        if self.requests.scheduled[number] == NEVER:
            self.requests.scheduled[number] = self.clock
            self.requests.cached[number] = entry.done
        self._tokens_outstanding += self.requests.output[number] - self._answered.get(number, 0)
        self._order.append((number, self._version.get(number, 0)))
        self._prefilling.append(entry)
        return entry, size

    def _start_received(self) -> bool:
        """Start to answer the first waiting request, whose prompt another replica has read; return whether it could.

        One that was preempted here is read again, since its cache is lost.
        """
        number = self._waiting[0]
        if number in self._answered or self._decoding + len(self._prefilling) >= self.scheduling.sequences:
            return False
        prompt, output = self.requests.prompt[number], self.requests.output[number]
        own, soon = self._held(number, prompt), self._held(number, prompt + 1)  # it decodes in the next step
        if self.used_blocks + self._next_growth + soon > self.capacity:
            return False
        self._waiting.popleft()
        self._take(own)
        self._order.append((number, self._version.get(number, 0)))
        self.requests.scheduled[number] = self.clock
        self._tokens_outstanding += output - 1
        self._start_decoding(number, prompt, 1, self.clock)
        return True

    def _start_decoding(self, number: int, stored: int, answered: int, shown: float) -> None:
        """Start decoding a request with `stored` tokens in the cache and `answered` output tokens.

        It ends at `shown` if that is all of its answer.
        """
        self._decoding += 1
        self._context += stored
        remaining = self.requests.output[number] - answered
        if remaining <= 0:
            self._end(number, shown)
            return
        if self.scheduling.reservation != "whole":
            residue = (self._step - stored) % len(self._growing_by_offset)
            self._growing_by_offset[residue] += 1
            self._growth_offset[number] = residue
        heappush(self._ending, (self._step + remaining, number, self._version.get(number, 0)))

    def _end_prefill(self, plan: "StepPlan") -> None:
        """End the prefill of complete prompts at the end of the step: each gets its next token and decodes."""
        shown = self.clock + self.times.later_stages(plan.tokens, plan.attention)
        requests = self.requests
        for entry, size in plan.prompt_chunks:
            entry.done += size
            if entry.done < entry.total:
                continue
            number = entry.number
            self._prefilling.remove(entry)
            answered = self._answered.get(number, 0) + 1
            self._tokens_outstanding -= 1
            if requests.first[number] == NEVER:
                requests.first[number] = shown
            if self._prefixes is not None and requests.prefixes[number]:
                self._prefixes.computed(requests.prefixes[number])
            self._start_decoding(number, entry.total, answered, shown)

    def _end(self, number: int, time: float) -> None:
        """End an answered request, and submit the next one of its client or session."""
        requests = self.requests
        requests.end[number] = time
        stored = self._leave_decoding(number, requests.output[number])
        shared = self._shared.get(number, 0)
        self._version[number] = self._version.get(number, 0) + 1
        self._free(number, self._held(number, stored))
        if requests.followed_by[number] >= 0:
            if self._prefixes is not None and requests.session[number] >= 0:
                name = -1 - requests.session[number]
                common = tuple(prefix for prefix in requests.prefixes[number] if prefix.name >= 0)
                start = common[-1].end // self.scheduling.block_tokens if common else 0
                self._prefixes.keep(name, min(start, shared or start), stored, self.capacity - self.used_blocks)
            self._submit_next(number, time)

    def _decoded(self, steps: int) -> None:
        """Give each decoding sequence `steps` tokens, and end those whose answers are complete."""
        growth = self._growth(steps)
        self._context += steps * self._decoding
        self._tokens_outstanding -= steps * self._decoding
        self._step += steps
        if growth:
            self._take(growth)
        ending = self._ending
        while ending and ending[0][0] <= self._step:
            _, number, version = heappop(ending)
            if self._version.get(number, 0) == version:
                self._end(number, self.clock)

    def take_decoding_steps(self, plan: "StepPlan", steps: int, first: float, more: float) -> None:
        """Run `steps` decoding steps: the first takes `first` seconds, and each following one `more` seconds longer."""
        self._count_intervals(steps, first, more, plan.decoding)
        self._pass_time(steps * first + more * steps * (steps - 1) / 2)
        self._composed_at = self.clock - first - more * (steps - 1)
        self._steps_to_poll = max(0, self._steps_to_poll - steps)
        self._decoded(steps)

    def _count_intervals(self, steps: int, first: float, more: float, number: int) -> None:
        if self._stalled:
            old = min(self._stalled_sequences, number)
            self.intervals.add(first + self._stalled, old)
            self.intervals.add(first, number - old)
            self._stalled = 0.0
            steps, first = steps - 1, first + more
            if not steps:
                return
        if steps * more <= _UNEVEN_STEPS * first:
            self.intervals.add(first + more * (steps - 1) / 2, steps * number)
            return
        parts = min(_PARTS, steps)
        for part in range(parts):
            begin, end = part * steps // parts, (part + 1) * steps // parts
            self.intervals.add(first + more * (begin + end - 1) / 2, (end - begin) * number)


def _steps_until(seconds: float, first: float, more: float) -> int:
    """Return how many steps take `seconds` or more: the first one takes `first`, each following `more` longer."""
    if seconds <= 0:
        return 0
    if more * seconds <= 1e-9 * first * first:
        return ceil(seconds / first)
    middle = first / more - 0.5
    return ceil(sqrt(middle * middle + 2 * seconds / more) - middle)


class StaticReplica(BaseReplica):
    """A replica whose batches begin when the one before has ended, with all requests that wait, up to its size.

    Prompts are padded to the longest of a batch, and the batch ends with its longest answer; a request has its answer
    when its own last token is written.
    """

    def advance(self, until: float = inf) -> None:
        """Run all batches that begin before `until`, with the requests submitted so far."""
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
            self._submit_next(number, requests.end[number])
