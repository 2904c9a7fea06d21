"""Time of an engine's steps, precomputed so that a simulation of many requests can ask for millions of them."""

from collections.abc import Callable
from math import ceil, exp, log
from typing import Final, NamedTuple

from planner.performance.inference.passes import PassBatch, host_share, launch_time
from planner.performance.inference.request import ServedModel, cached_bytes, served_pass_time
from planner.performance.inference.work import ELEMENT_BYTES, PassWork
from planner.performance.links import Links

_GRID: Final = 2**0.25
"""Ratio of neighbouring numbers of tokens for which the time of a pass is computed; in between it is linear."""
_EXACT_ROWS: Final = 16
STAGE_DELAY: Final = 0.10
"""Relative increase of the decoding step per further pipeline stage: stages are uneven, and wait for each other.

**Source**: NVIDIA/TensorRT-LLM@00f3768 perf-overview, Llama 3.3 70B on 1 to 8 RTX PRO 6000 (0.14) and
Llama 3.1 405B on 8 (0.05) in stages.
"""


class DecodingStep(NamedTuple):
    """Seconds of a step in which each running sequence gets one token: max(`seconds` + `per_token` · context, `least`).

    The context is that of all sequences together.
    """

    seconds: float
    per_token: float
    least: float


class StepScale(NamedTuple):
    """Factors by which steps take longer than estimated, for decoding and for prompts."""

    decoding: float = 1.0
    prompts: float = 1.0


AS_ESTIMATED: Final = StepScale()


class StepTimes:
    """Seconds of the steps of one replica, by their decoding sequences, context and new prompt tokens.

    `context` is the mean length of a sequence, at which the cache of layers with a window is read. `padded_rows`
    returns the number of rows that a step with so many decoding sequences computes. If `expert_ranks` replicas share
    the routed experts, the times are those of the rest of the network, and `experts` is the time of the experts.

    With a draft, `decoding` is the time in which each sequence gets one token, and `mixed` that of a whole step, which
    yields `tokens_per_step` of each.

    **Formula**: decoding is affine in the context of all sequences; a prompt's pass is the pass over its rows without
    attention, and the attention of its tokens to those before, A(end) − A(begin).

    **Assumes** that experts get the tokens of all ranks evenly, and that stages of a pipeline work on equal parts of
    the sequences.
    """

    def __init__(
        self,
        served: ServedModel,
        context: float,
        padded_rows: Callable[[int], int] = lambda sequences: sequences,
        scale: StepScale = AS_ESTIMATED,
        expert_ranks: int = 1,
    ) -> None:
        self._experts, self._ranks = served.work, expert_ranks
        self.tokens_per_step, self.rows_per_sequence = served.tokens_per_step, served.rows_per_sequence
        drafter = served.draft.model if served.draft else None
        self._drafter = None if drafter is None else StepTimes(drafter, context, padded_rows, scale)
        if expert_ranks > 1:
            served = served._replace(work=without_experts(served.work), kernels=None, experts=None)
        self._served, self._padded_rows, self._scale = served, padded_rows, scale
        self._stages = served.split.stages if served.speed.engine.overlaps_stages else 1
        self._waits = 1 + STAGE_DELAY * (self._stages - 1)
        self._chunk = served.most_pass_tokens
        self._launches = 0.0 if served.kernels is not None else launch_time(served.work, served.speed)
        cards = served.split.tensor
        self._added = host_share(served.work, served.speed, cards, self._launches, 0).added_seconds
        self._sequence_added = (
            host_share(served.work, served.speed, cards, self._launches, 1).added_seconds - self._added
        )
        self._least = host_share(served.work, served.speed, cards, self._launches, 0).least_seconds
        self._sequence_least = (
            host_share(served.work, served.speed, cards, self._launches, 1).least_seconds - self._least
        )
        self._context = max(1.0, context)
        empty, full = cached_bytes(served, 1), cached_bytes(served, self._context)
        self._sequence_bytes = full - (full - empty) * self._context / max(self._context - 1, 1)
        self._steps: dict[int, DecodingStep] = {}
        self._bases: dict[int, float] = {}
        self._attention: dict[int, float] = {}
        self._grid: dict[int, float] = {}
        reached = served.speed.ops_per_s * served.speed.products.fraction * cards
        self._head_seconds = 2 * served.work.head_parameters / reached

    def decoding(self, sequences: int) -> DecodingStep:
        """Return the time of a step in which `sequences` sequences decode and no prompt is read."""
        found = self._steps.get(sequences)
        if found is None:
            found = self._steps[sequences] = self._decoding(sequences)
        return found

    def _decoding(self, sequences: int) -> DecodingStep:
        each, factor = sequences / self._stages, self._waits * self._scale.decoding
        rows = max(1.0, float(self._padded_rows(ceil(each * self.rows_per_sequence))))
        without = self._device_seconds(rows, 0.0)
        # The bytes of a sequence beyond its context's are read once for each: states, and full windows.
        fixed = self._device_seconds(rows, each * self._sequence_bytes) if self._sequence_bytes > 1 else without
        read = self._device_seconds(rows, each * cached_bytes(self._served, self._context)) - fixed
        added = self._added + self._sequence_added * each
        drafts, yielded = self._drafting(sequences), self.tokens_per_step
        return DecodingStep(
            seconds=(factor * (fixed + added) + drafts.seconds) / yielded,
            per_token=(factor * read / (sequences * self._context) + drafts.per_token) / yielded,
            least=(factor * (self._least + self._sequence_least * each) + drafts.least) / yielded,
        )

    def _drafting(self, sequences: int) -> DecodingStep:
        """Return the time of all passes of the draft in a step."""
        if self._drafter is None:
            return DecodingStep(0.0, 0.0, 0.0)
        one, passes = self._drafter.decoding(sequences), self.rows_per_sequence - 1
        return DecodingStep(passes * one.seconds, passes * one.per_token, passes * one.least)

    def _device_seconds(self, rows: float, cache: float) -> float:
        batch = PassBatch(
            rows=rows,
            sequences=rows,
            outputs=rows,
            cached_bytes=cache,
            attention_flops=0.0,
            scores=0.0,
            tokens=max(1.0, self._context if cache else 1.0),
        )
        parts = served_pass_time(self._served, batch)
        return parts.seconds - parts.host

    def mixed(self, sequences: int, context: float, tokens: int, attention: float, experts: float = 0.0) -> float:
        """Return the seconds of a step that reads `tokens` prompt tokens, while `sequences` sequences decode.

        `attention` are the seconds of the prompt tokens' attention, `context` is that of all decoding sequences, and
        `experts` are the seconds of experts that are shared with other replicas, while the host may launch kernels.
        """
        rows = (sequences * self.rows_per_sequence + tokens) / self._stages
        passes = ceil(rows / self._chunk) if self._chunk else 1
        base = passes * self._prompt_base(rows / passes) + attention / self._stages
        each = sequences / self._stages
        if sequences:
            base += self._head_seconds * each * self.rows_per_sequence + self._drafting(sequences).seconds
            read = self.tokens_per_step * self.decoding(sequences).per_token * context / self._scale.decoding
        else:
            read = 0.0
        if self._drafter is not None and tokens:
            base += self._drafter._prompt_base(tokens)  # noqa: SLF001  # of the same class
        added = passes * self._added + self._sequence_added * each
        eager = passes * self._served.speed.engine.eager_seconds(self._served.work, rows / passes)
        least = self._least + self._sequence_least * each + eager
        base += experts / self._scale.prompts
        return self._waits * self._scale.prompts * max(base + added, least) + self._scale.prompts * read

    def later_stages(self, tokens: int, attention: float) -> float:
        """Return the seconds by which a chunk of a prompt leaves the last pipeline stage later than the first."""
        if self._stages == 1:
            return 0.0
        whole = self._prompt_base(tokens) + attention
        return self._scale.prompts * (1 - 1 / self._stages) * whole

    def attention(self, begin: int, end: int) -> float:
        """Return the seconds of the attention of a prompt's tokens from `begin` to `end` to all tokens before them."""
        return self._attention_to(end) - (self._attention_to(begin) if begin else 0.0)

    def _attention_to(self, tokens: int) -> float:
        found = self._attention.get(tokens)
        if found is None:
            found = self._attention[tokens] = self._power_law(tokens)
        return found

    def _power_law(self, tokens: int) -> float:
        """Return the attention of a whole prompt, between two lengths as a power of the length."""
        place = int(log(tokens) / log(2))
        low, high = self._grid_attention(place), self._grid_attention(place + 1)
        if low <= 0:
            return 0.0
        return exp(log(low) + (log(high) - log(low)) * (log(tokens) / log(2) - place))

    def _grid_attention(self, place: int) -> float:
        found = self._grid.get(place)
        if found is None:
            found = self._grid[place] = self._prompt_parts(float(2**place))[1]
        return found

    def _prompt_base(self, rows: float) -> float:
        """Return the seconds of a pass over `rows` rows without attention and host, linear between computed numbers."""
        if rows <= _EXACT_ROWS:
            return self._base_at(-ceil(rows))
        place = int(log(rows) / log(_GRID))
        low, high = _GRID**place, _GRID ** (place + 1)
        first, second = self._base_at(place), self._base_at(place + 1)
        return first + (second - first) * (rows - low) / (high - low)

    def _base_at(self, place: int) -> float:
        found = self._bases.get(place)
        if found is None:
            rows = float(-place) if place <= 0 else _GRID**place
            found = self._bases[place] = self._prompt_parts(max(1.0, rows))[0]
        return found

    def _prompt_parts(self, tokens: float) -> tuple[float, float]:
        """Return the seconds of a pass over a prompt, without attention and host, and those of its attention."""
        work = self._served.work
        batch = PassBatch(
            rows=tokens,
            sequences=1.0,
            outputs=1.0,
            cached_bytes=0.0,
            attention_flops=work.attention_flops(tokens),
            scores=work.scores(tokens),
            tokens=tokens,
        )
        parts = served_pass_time(self._served, batch)
        return parts.seconds - parts.host - parts.attention, parts.attention

    def experts(self, rows: float) -> float:
        """Return the seconds of the routed experts for `rows` tokens of all ranks that share them, 0 if none do.

        **Formula**: the bytes of a rank's part that at least one token chooses, as for a single GPU, its operations,
        and the exchange of the tokens.
        """
        if self._ranks == 1:
            return 0.0
        speed, cards, ranks = self._served.speed, self._served.split.tensor, self._ranks
        read = sum([kind.bytes * kind.active_share(rows) for kind in self._experts.experts]) / ranks
        reached = speed.ops_per_s * speed.products.fraction * cards
        seconds = read / (speed.bytes_per_s * speed.expert_read.fraction * cards)
        seconds += 2 * self._experts.active_expert_parameters * rows / ranks / reached
        size = rows * self._experts.hidden * ELEMENT_BYTES
        seconds += self._experts.expert_layers * expert_exchange_seconds(self._served.split.links, ranks, size)
        return self._scale.decoding * seconds


def expert_exchange_seconds(links: Links, ranks: int, size_bytes: float) -> float:
    """Return the seconds in which `ranks` ranks all gather `size_bytes` of tokens and scatter the sums of the experts.

    **Formula**: 2 · (g − 1) / g · bytes ÷ bus bandwidth, and a ring's latency for each of the two.

    **Source**: vLLM's default `all2all_backend`, `allgather_reducescatter`.
    """
    return links.ring_seconds(ranks, 2 * (ranks - 1) / ranks * size_bytes, gathers=True) + links.ring_latency_seconds(
        ranks
    )


def without_experts(work: PassWork) -> PassWork:
    """Return the work of a network without the products of its routed experts."""
    return work._replace(experts=(), parameters=work.parameters - work.active_expert_parameters)
