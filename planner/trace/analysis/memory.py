"""Memory result of a trace: its summary for plans, terms, phases and the verdict on a card."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Final

from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.chance import ByteInterval
from planner.memory.fit import CardFit, DeviceMemory, device_shares, judge_bytes, memory_result
from planner.memory.overhead import FrameworkOverhead, fixed_overhead, overhead_with_slack, write_overhead
from planner.memory.phases import PhaseSnapshots, Snapshot
from planner.memory.result import MemoryResult, PhaseName, Term, TermName, TermPart
from planner.memory.software.base import unsupported_backend
from planner.memory.terms import term, traced_symbol
from planner.trace.allocator_settings import AllocatorSettings
from planner.trace.analysis.live_memory import LiveMemory, alive_at, allocation_origin, live_memory
from planner.trace.recording import (
    CATEGORIES,
    Category,
    CategoryShare,
    RecordedPhase,
    TracedFacts,
    TraceDifference,
    TracedPhase,
    TraceRecording,
)
from planner.trace.replay import minimum_capacity_bytes, replay
from planner.trace.request import TraceParallel
from planner.units import GIB, MIB

_DEFAULTS: Final = AllocatorSettings()


@lru_cache(maxsize=2)
def facts_of(recording: TraceRecording, settings: AllocatorSettings = _DEFAULTS) -> TracedFacts:
    """Return the summary of `recording` for plans, with the bytes reserved under the allocator's `settings`."""
    phases = traced_phases(recording, live_memory(recording.allocations))
    reserved = replay(recording.allocations, settings).reserved_bytes
    allocated = max(phase.bytes for phase in phases)
    return TracedFacts(
        request=recording.request,
        torch=recording.environment.torch,
        tested=recording.environment.tested,
        parameters=recording.parameters,
        trainable_parameters=recording.trainable_parameters,
        phases=phases,
        reserved_bytes=reserved,
        least_reserved_bytes=minimum_capacity_bytes(recording.allocations, settings, allocated, reserved),
        largest_tensor_bytes=max(recording.allocations.bytes, default=0),
        differences=merge_differences(recording.differences),
        notes=recording.notes,
        flops=recording.flops,
        convolution_flops=recording.convolution_flops,
        product_elements=recording.product_elements,
        operator_calls=recording.operator_calls,
        digest=recording_digest(recording),
    )


def recording_digest(recording: TraceRecording) -> str:
    """Return the SHA-256 digest of a recording's JSON, under which the recording is stored."""
    return sha256(recording.model_dump_json().encode()).hexdigest()


def traced_phases(recording: TraceRecording, live: LiveMemory) -> tuple[TracedPhase, ...]:
    """Return the phases of `recording` in order, each at its peak live memory over all steps."""
    highest: dict[PhaseName, tuple[int, RecordedPhase]] = {}
    for span in recording.spans:
        index = live.peak_index_between(span.start, span.end)
        previous = highest.get(span.name)
        if previous is None or live.totals[index] > live.totals[previous[0]]:
            highest[span.name] = (index, span)
    return tuple(_traced_phase(recording, live, index, span) for index, span in highest.values())


def merge_differences(differences: tuple[TraceDifference, ...]) -> tuple[TraceDifference, ...]:
    """Return one difference per name, with the bytes summed; its `place` is empty if the merged places differ."""
    merged: dict[str, TraceDifference] = {}
    for difference in differences:
        previous = merged.get(difference.name)
        merged[difference.name] = difference.evolve(
            bytes=difference.bytes + (previous.bytes if previous else 0),
            low_bytes=difference.low_bytes + (previous.low_bytes if previous else 0),
            high_bytes=difference.high_bytes + (previous.high_bytes if previous else 0),
            place=difference.place if previous is None or previous.place == difference.place else "",
        )
    return tuple(merged.values())


def _traced_phase(recording: TraceRecording, live: LiveMemory, index: int, span: RecordedPhase) -> TracedPhase:
    """Return the phase `span` with the categories of the allocations alive after the event `index`."""
    columns = recording.allocations
    sizes, counts = Counter[int](), Counter[int]()
    for allocation in alive_at(columns, live.times[index]):
        sizes[columns.category[allocation]] += columns.bytes[allocation]
        counts[columns.category[allocation]] += 1
    return TracedPhase(
        name=span.name,
        explanation=_peak_explanation(recording, live.origins[index], span),
        shares=tuple(
            CategoryShare(category=category, bytes=sizes[category_index], count=counts[category_index])
            for category_index, category in enumerate(CATEGORIES)
            if counts[category_index]
        ),
    )


def _peak_explanation(recording: TraceRecording, allocation: int | None, span: RecordedPhase) -> str:
    """Return a sentence on the allocation with which a phase reaches its peak."""
    origin = allocation_origin(recording, allocation)
    if span.name == "load" or not origin.operator:
        return "parameters and buffers are on the GPU"
    return f"reached {_step_text(span, recording.request.task)}by {origin}"


def _step_text(span: RecordedPhase, task: str) -> str:
    """Return the step or generated token of a phase as text."""
    if span.name == "decode":
        return f"at token {span.step + 1:,} "
    return f"in step {span.step + 1} " if task == "training" else ""


def _generate_notes(facts: TracedFacts) -> Iterator[str]:
    """Yield notes on a trace, the most important first: PyTorch version, emulated device, ranks and assumptions."""
    if not facts.tested:
        yield f"Tracing was not tested with PyTorch {facts.torch}; compare the result with a run of your own."
    if facts.request.device == "cpu":
        yield "Traced with the CPU's operators: a CUDA build partly uses other operators, which need different memory."
    yield from _distribution_notes(facts.request.parallel)
    yield from map(_difference_text, facts.differences)
    yield from facts.notes


def _distribution_notes(parallel: TraceParallel) -> Iterator[str]:
    """Yield a note on how the model is distributed over several ranks, if it is."""
    if parallel.strategy == "none":
        return
    share_text = {"ddp": "holds the whole model (DDP)", "fsdp": "holds its shard of the model (FSDP)"}[
        parallel.strategy
    ]
    yield f"The figures are for one rank of {parallel.ranks:,}; each {share_text}."


def _difference_text(difference: TraceDifference) -> str:
    """Return a sentence on an assumption of the trace, with the bytes counted for it and their bounds."""
    sentence = f"{difference.name}: {difference.explanation}"
    low, high = (f"{count / MIB:,.1f}" for count in (difference.low_bytes, difference.high_bytes))
    return f"{sentence} (counted as {difference.bytes / MIB:,.1f} MiB; between {low} and {high} MiB)"


TERM_OF: Final[dict[Category, TermName]] = {
    "parameters": "weights",
    "adapters": "adapters",
    "buffers": "buffers",
    "inputs": "buffers",
    "gradients": "gradients",
    "optimizer_states": "optimizer_states",
    "activations": "activations",
    "kv_cache": "kv_cache",
    "communication": "communication",
    "temporaries": "temporaries",
}
"""Memory term of the estimator by allocation category."""

_PART_TITLES: Final[dict[Category, str]] = {"buffers": "module buffers", "inputs": "inputs"}
_SLACK_SOURCE: Final = "replay of the traced allocations through a model of PyTorch's caching allocator"
_TRAINING_THREADS: Final = 2


def traced_memory(
    facts: TracedFacts,
    gpu: Gpu | None = None,
    usable: UsableMemory | None = None,
    count: int = 1,
    other_processes_bytes: int = 0,
) -> MemoryResult:
    """Return the peak memory of a traced run on one `gpu`, and whether the run fits.

    **Formula**: live bytes at the highest snapshot + the allocator's additional reservation + GPU context + cuBLAS
    workspaces.

    **Source**: the trace; the allocator's model; contexts and workspaces as in the estimator.
    """
    available = None if usable is None else usable.bytes - other_processes_bytes
    parallel, overhead = facts.request.parallel, _framework_overhead(facts, gpu, available)
    need = _needed_bytes(facts, overhead)
    fit = _card_fit(need, gpu, usable, other_processes_bytes)
    return memory_result(
        DeviceMemory(phase_snapshots(facts), overhead, _overhead_term(facts, overhead), need),
        fit,
        usable,
        other_processes_bytes,
        shards=parallel.ranks if parallel.strategy == "fsdp" else 1,
        per_gpu=device_shares(fit, count),
        notes=tuple(_generate_notes(facts)),
    )


def traced_fits_on(
    facts: TracedFacts, cards: Iterable[tuple[Gpu, UsableMemory | None]], other_processes_bytes: int = 0
) -> Iterator[CardFit]:
    """Yield the verdict of `traced_memory` on each card, without terms, so that a whole catalog is fast."""
    for gpu, usable in cards:
        overhead = _framework_overhead(facts, gpu, None if usable is None else usable.bytes - other_processes_bytes)
        yield _card_fit(_needed_bytes(facts, overhead), gpu, usable, other_processes_bytes)


def allocator_capacity_bytes(facts: TracedFacts, gpu: Gpu | None, available_bytes: int) -> int:
    """Return the part of `available_bytes` left for the caching allocator after GPU context and workspaces."""
    fixed = _framework_overhead(facts, gpu, None)
    return max(available_bytes - fixed.context - fixed.workspace, 0)


def phase_snapshots(facts: TracedFacts) -> PhaseSnapshots:
    """Return the phases of `facts` as the estimator's snapshots, without framework overhead."""
    snapshots = tuple(Snapshot(phase.name, _phase_terms(facts, phase), phase.explanation) for phase in facts.phases)
    return PhaseSnapshots(snapshots, dynamic=0)


def _phase_terms(facts: TracedFacts, phase: TracedPhase) -> list[Term]:
    """Return the memory terms of one traced phase."""
    shares_by_term: dict[TermName, list[CategoryShare]] = {}
    for share in phase.shares:
        shares_by_term.setdefault(TERM_OF[share.category], []).append(share)
    return [
        _category_term(name, shares, f"traced with PyTorch {facts.torch}") for name, shares in shares_by_term.items()
    ]


def _category_term(name: TermName, shares: list[CategoryShare], source: str) -> Term:
    """Return the memory term `name`: the total size of the allocations in `shares`."""
    return term(
        name,
        sum(share.bytes for share in shares),
        "sum of n traced allocations",
        (traced_symbol("n", sum(share.count for share in shares), "allocations alive at the peak of the phase"),),
        source,
        parts=tuple(
            TermPart(
                name=_PART_TITLES[share.category],
                bytes=share.bytes,
                formula="sum of its traced allocations",
                source=source,
            )
            for share in shares
            if share.category in _PART_TITLES
        ),
    )


def _framework_overhead(facts: TracedFacts, gpu: Gpu | None, available_bytes: int | None) -> FrameworkOverhead:
    """Return the framework overhead of a process that may use `available_bytes`, None for no limit.

    The backward pass runs in a separate thread, which has its own workspace.
    """
    threads = _TRAINING_THREADS if facts.request.task == "training" else 1
    card = fixed_overhead(gpu)
    fixed = overhead_with_slack(card, 0, 0, threads)
    reserved = facts.reserved_bytes
    if available_bytes is not None:
        reserved = facts.reserved_bytes_within(available_bytes - fixed.total)
    return overhead_with_slack(card, reserved - facts.allocated_bytes, min(facts.largest_tensor_bytes, GIB), threads)


def _overhead_term(facts: TracedFacts, overhead: FrameworkOverhead) -> Term:
    """Return the memory term for framework overhead, with the allocator's reserved bytes as symbols."""
    symbols = (
        traced_symbol(
            "R", facts.allocated_bytes + overhead.slack, "bytes that the caching allocator reserves on the GPU"
        ),
        traced_symbol("A", facts.allocated_bytes, "bytes alive at the peak"),
    )
    return write_overhead(overhead, "R − A", symbols, _SLACK_SOURCE)


def _needed_bytes(facts: TracedFacts, overhead: FrameworkOverhead) -> ByteInterval:
    """Return the range of memory that one card needs, framework overhead included, in bytes."""
    allocated = facts.allocated_bytes
    return ByteInterval(
        max(allocated - facts.lower_margin_bytes, 0) + overhead.low,
        allocated + overhead.total,
        allocated + facts.upper_margin_bytes + overhead.high,
    )


def _card_fit(need: ByteInterval, gpu: Gpu | None, usable: UsableMemory | None, other_processes_bytes: int) -> CardFit:
    """Return the verdict for `need` bytes on `gpu`."""
    return judge_bytes(
        need, usable, other_processes_bytes, unsupported_backend(gpu) if gpu else (), gpu_id=gpu.id if gpu else ""
    )
