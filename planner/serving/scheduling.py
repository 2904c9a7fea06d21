"""Scheduling of an engine: the content of a step, the admission of requests, and their part of the cache."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.workload.workload import Inference

Reservation = Literal["chunk", "prompt", "whole"]
"""Cache that a request needs to be admitted: for its next chunk, its whole prompt, or its longest answer as well."""


def same_rows(sequences: int) -> int:
    """Return the number of rows of a decoding step that is computed as it is."""
    return sequences


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """The scheduler of an engine with its settings in use.

    A step has at most `step_tokens` tokens and a replica at most `sequences` sequences at once. `mixes_prefill` means
    that prompts are read in the same step in which other sequences decode; otherwise decoding waits while prompts are
    read. `chunks_prompts` means that prompts are split where a step has no room for all of it. `reservation` is the
    cache that a request needs to be admitted, of its answer `answer_share` at first. A request without room later is
    preempted: its prompt and answer are read again. `slot_tokens` is the cache of one sequence in engines that divide
    it evenly. `block_tokens` is the granularity of the cache, and `caches_prefixes` means that blocks of earlier
    requests are used again; a block that comes from RAM takes `block_copy_seconds` beside its bytes. `schedules_ahead`
    means that a step is composed while the one before runs, so that a request waits for one step more. `polls_every` is
    the number of decoding steps after which arrivals are looked for, as always after a step that reads prompts.
    `static_batching` means that a batch is replaced when all its answers have ended, its prompts padded to the longest.
    `padded_rows` is the number of rows of a step with so many decoding sequences. Times to the first token differ from
    those of the engine by `first_token_factor` at least, one case in ten beyond each end.

    **Source** of the factor: benchmarks/serving_accuracy.py, "those of the other systems": 1.49 to 1.61 for vLLM, of
    which that of programs without a measurement is taken.
    """

    source: str
    step_tokens: int
    sequences: int
    mixes_prefill: bool = True
    chunks_prompts: bool = True
    reservation: Reservation = "chunk"
    answer_share: float = 0.0
    block_tokens: int = 16
    slot_tokens: int | None = None
    caches_prefixes: bool = False
    block_copy_seconds: float = 0.0
    schedules_ahead: bool = False
    polls_every: int = 1
    static_batching: bool = False
    padded_rows: Callable[[int], int] = same_rows
    first_token_factor: float = 1.6

    def without_prefixes(self) -> "Scheduling":
        """Return the same scheduling without a prefix cache."""
        return replace(self, caches_prefixes=False)


class Scheduler:
    """Scheduling of a program: by default it answers the workload's batch, and then the next one."""

    def scheduling(self, workload: Inference, architecture: Architecture, gpu: Gpu) -> Scheduling:
        """Return the scheduling of `workload`, whose defaults are filled in, on `gpu`."""
        return Scheduling(
            source="transformers generate(): a batch of padded prompts ends with its longest answer",
            step_tokens=MOST_TOKENS,
            sequences=workload.batch,
            static_batching=True,
        )


MOST_TOKENS: Final = 2**40
"""Tokens of a step that an engine does not limit."""


def own_setting(workload: Inference, name: str) -> int | None:
    """Return the setting `name` of the workload's engine, None if it is unset or the engine has no such setting."""
    found: int | None = getattr(workload.engine, name, None)
    return found
