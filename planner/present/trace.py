"""A trace ready for display: sentences, live tensors at the peak, modules, assumptions, and the timeline.

Verdict, terms and phases, which a trace shares with an estimate, are in `planner.present.memory.view`.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.memory.result import PhaseName, TermName
from planner.present import format as fmt
from planner.present.memory.view import MemoryView, memory_view
from planner.present.names import PHASE_MOMENTS
from planner.present.plan.phrase import request_phrase
from planner.trace.analysis.memory import TERM_OF, merge_differences
from planner.trace.launcher import command_words, join_words
from planner.trace.notation import assumed_values_text
from planner.trace.recording import CATEGORIES, Category, Environment, TraceDifference
from planner.trace.request import Target, TraceRequest
from planner.trace.result import (
    LiveAllocationGroup,
    ModuleShare,
    OutOfMemory,
    PeakMoment,
    Reservation,
    Timeline,
    TraceResult,
)

CATEGORY_TITLES: Final[dict[Category, str]] = {
    "parameters": "Parameters",
    "adapters": "Adapters",
    "buffers": "Buffers",
    "inputs": "Inputs",
    "gradients": "Gradients",
    "optimizer_states": "Optimizer states",
    "activations": "Activations",
    "kv_cache": "KV cache",
    "communication": "Communication",
    "temporaries": "Temporary tensors",
}
_OPERATOR: Final = re.compile(r"aten(?:::|\.)(?P<name>\w+)(?:\.\w+)?")


def operator_name(operator: str) -> str:
    """Return the short name of PyTorch's own operators, such as `mm` for `aten.mm.default`; other names unchanged."""
    match = _OPERATOR.fullmatch(operator)
    return match["name"] if match else operator


def short_source_line(line: str) -> str:
    """Return a source line without its folders, for paths of any operating system: `net.py:42`."""
    return re.split(r"[/\\]", line)[-1]


def phase_moment(phase: PhaseName, step: int) -> str:
    """Return a phase and its step in words, with `step` counted from 0: `in the forward pass of step 2`."""
    if phase in ("load", "prefill"):
        return PHASE_MOMENTS[phase]
    return f"{PHASE_MOMENTS[phase]}{', at token' if phase == 'decode' else ' of step'} {fmt.integer(step + 1)}"


def operation_place(operator: str, module: str, line: str) -> str:
    """Return the place of an operation, `mm in layers.3 (net.py:42)`, without the parts that are not known."""
    by = " in ".join(part for part in (operator_name(operator), module) if part)
    return f"{by} ({short_source_line(line)})" if by and line else by or short_source_line(line)


_WHOLE: Final = "(whole model)"


class AliveRow(NamedTuple):
    """Allocations of the same origin that are alive at the peak; `share` is their fraction of the peak."""

    category: Category
    title: str
    bytes: int
    size: str
    exact: str
    share: float
    share_text: str
    module: str
    operator: str
    shape: str
    line: str
    place: str


class ModuleRow(NamedTuple):
    """A module with its submodules; `shares` are its bytes at the peak by category, `depth` is 0 for the root."""

    path: str
    title: str
    class_name: str
    depth: int
    parameters: int
    parameters_text: str
    bytes: int
    size: str
    exact: str
    share: float
    share_text: str
    shares: tuple[tuple[Category, int], ...]
    holds: str


class DifferenceRow(NamedTuple):
    """An assumption of the trace, with the bytes counted for it and the bounds on them."""

    name: str
    explanation: str
    amount: str
    range_text: str
    source: str
    place: str


class ReservationRow(NamedTuple):
    """A figure of the caching allocator; `exact` is empty if the text is already exact."""

    title: str
    text: str
    exact: str = ""


class TraceView(NamedTuple):
    """A trace ready for display in the window or a terminal."""

    memory: MemoryView
    subject: str
    runs_out: str
    alive: tuple[AliveRow, ...]
    modules: tuple[ModuleRow, ...]
    reservation: tuple[ReservationRow, ...]
    differences: tuple[DifferenceRow, ...]
    run_notes: tuple[str, ...]
    traced_with: str


def trace_view(
    result: TraceResult, card: str | None = None, count: int = 1, smallest: tuple[str, ...] = ()
) -> TraceView:
    """Return a trace's `result` on `count` cards named `card`, ready for display."""
    peak = result.peak_moment
    out_of_memory = result.reservation.out_of_memory
    return TraceView(
        memory=_without_differences(memory_view(result, card, count, smallest), result.differences),
        subject=trace_subject(result, card, count),
        runs_out=_out_of_memory_sentence(out_of_memory) if out_of_memory else "",
        alive=tuple(_alive_row(alive, peak.bytes) for alive in peak.alive),
        modules=tuple(_module_row(module, peak.bytes) for module in result.modules),
        reservation=_reservation_rows(result.reservation, peak),
        differences=tuple(map(_difference_row, merge_differences(result.differences))),
        run_notes=result.run_notes,
        traced_with=_traced_with_sentence(result.environment, result.request, result.seconds),
    )


def trace_subject(result: TraceResult, card: str | None = None, count: int = 1) -> str:
    """Return what was traced: `net.py:Net · 25.6 M parameters, all trained · training, AdamW · 1 × RTX 4090`."""
    counted = f"{fmt.parameters(result.parameters)} parameters"
    if result.request.task == "training":
        left = result.trainable_parameters
        trained = "all" if left == result.parameters else f"{fmt.parameters(left)} of them"
        counted = f"{counted}, {trained} trained"
    work = () if result.flops is None else (f"{fmt.operations(result.flops)} per step",)
    cards = () if card is None else (fmt.count_of(count, card),)
    return " · ".join((result.request.target.title, counted, *work, request_phrase(result.request), *cards))


def notable_modules(rows: tuple[ModuleRow, ...], limit: int) -> tuple[ModuleRow, ...]:
    """Return at most `limit` rows in their order: the root, its children, and the largest modules below them."""
    by_weight = sorted(rows, key=lambda row: (row.depth > 1, -row.bytes, -row.parameters))
    kept = set(by_weight[:limit])
    return tuple(row for row in rows if row in kept)


def _out_of_memory_sentence(out: OutOfMemory) -> str:
    who = operation_place(out.operator, out.module, "") or "an allocation"
    line = f" at {out.line}" if out.line else ""
    return (
        f"PyTorch would run out of memory {phase_moment(out.phase, out.step)}: {who}{line} requests "
        f"{fmt.size(out.bytes)} while {fmt.size(out.allocated_bytes)} are allocated and "
        f"{fmt.size(out.reserved_bytes)} reserved."
    )


def _without_differences(view: MemoryView, differences: tuple[TraceDifference, ...]) -> MemoryView:
    """Return the memory view without the notes on assumptions, which have their own rows."""
    starts = tuple(f"{difference.name}: " for difference in differences)
    return view._replace(notes=tuple(note for note in view.notes if not note.startswith(starts)))


def _alive_row(alive: LiveAllocationGroup, total: int) -> AliveRow:
    share = alive.bytes / total
    return AliveRow(
        category=alive.category,
        title=CATEGORY_TITLES[alive.category],
        bytes=alive.bytes,
        size=fmt.size(alive.bytes),
        exact=fmt.exact_bytes(alive.bytes),
        share=share,
        share_text=fmt.percent(share),
        module=alive.module,
        operator=operator_name(alive.operator),
        shape=_tensors_text(alive.count, alive.shape),
        line=alive.line,
        place=short_source_line(alive.line),
    )


def _tensors_text(count: int, shape: str) -> str:
    """Return the number and shape of tensors: `4 × [128, 64] float32`."""
    if not shape:
        return fmt.plural(count, "tensor") if count > 1 else ""
    return fmt.count_of(count, shape) if count > 1 else shape


def _module_row(module: ModuleShare, total: int) -> ModuleRow:
    shares: dict[Category, int] = defaultdict(int)
    for series in module.shares:
        shares[series.category] += sum(series.bytes)
    held = sorted(((name, size) for name, size in shares.items() if size), key=lambda pair: -pair[1])
    share = module.bytes / total if total else 0.0
    return ModuleRow(
        path=module.path,
        title=module.path or _WHOLE,
        class_name=module.class_name,
        depth=len(module.path.split(".")) if module.path else 0,
        parameters=module.parameters,
        parameters_text=fmt.parameters(module.parameters),
        bytes=module.bytes,
        size=fmt.size(module.bytes),
        exact=fmt.exact_bytes(module.bytes),
        share=share,
        share_text=fmt.percent(share),
        shares=tuple(held),
        holds=", ".join(f"{CATEGORY_TITLES[name].lower()} {fmt.size(size)}" for name, size in held),
    )


def _reservation_rows(reservation: Reservation, peak: PeakMoment) -> tuple[ReservationRow, ...]:
    return (
        _size_row("Peak allocated", peak.bytes),
        _size_row("Peak reserved", reservation.reserved_bytes),
        ReservationRow("Unallocated when first reserved", fmt.percent(reservation.fragmentation_fraction)),
        _size_row("Largest free block then", reservation.largest_free_block_bytes),
        ReservationRow("Segments then", fmt.integer(reservation.segments)),
        ReservationRow("Allocator settings", reservation.settings or "PyTorch's defaults"),
    )


def _size_row(title: str, value: int) -> ReservationRow:
    return ReservationRow(title, fmt.size(value), fmt.exact_bytes(value))


def _difference_row(difference: TraceDifference) -> DifferenceRow:
    return DifferenceRow(
        name=difference.name,
        explanation=difference.explanation,
        amount=fmt.size(difference.bytes),
        range_text=fmt.size_range(difference.low_bytes, difference.high_bytes),
        source=difference.source,
        place=difference.place,
    )


def _traced_with_sentence(environment: Environment, request: TraceRequest, seconds: float) -> str:
    used = [f"PyTorch {environment.torch}"]
    if environment.transformers:
        used.append(f"transformers {environment.transformers}")
    used.append(f"Python {environment.python}")
    capability = f" of compute capability {request.compute_capability}" if request.compute_capability else ""
    device = "the CPU" if request.device == "cpu" else f"a CUDA device{capability}"
    return f"Traced in {fmt.quantity(seconds, 's')} with {fmt.listing(tuple(used))}, assuming {device}."


class TimelineSeries(NamedTuple):
    """The live bytes of one category over the run, for a stacked plot in the color of its memory `term`."""

    category: Category
    title: str
    term: TermName
    bytes: tuple[int, ...]


class TimelinePoint(NamedTuple):
    """One point of the timeline, as described when the pointer is over it."""

    time: int
    bytes: int
    text: str
    phase: str
    operator: str
    module: str
    line: str

    @property
    def description(self) -> str:
        """Return the point in words: `12.3 GiB in the forward pass of step 1: mm in layers.3 (net.py:42)`."""
        where = operation_place(self.operator, self.module, self.line)
        when = f"{self.text} {self.phase}".strip()
        return f"{when}: {where}" if where else when


def timeline_series(timeline: Timeline) -> tuple[TimelineSeries, ...]:
    """Return the categories that are not empty, in stacking order, with long-lived categories at the bottom."""
    return tuple(
        TimelineSeries(series.category, CATEGORY_TITLES[series.category], TERM_OF[series.category], series.bytes)
        for series in sorted(timeline.series, key=lambda series: CATEGORIES.index(series.category))
        if any(series.bytes)
    )


def timeline_point(timeline: Timeline, point: int) -> TimelinePoint:
    """Return the point of the timeline at index `point`."""
    time = timeline.times[point]
    total = sum(series.bytes[point] for series in timeline.series)
    span = next((span for span in timeline.spans if span.start <= time < span.end), None)
    return TimelinePoint(
        time=time,
        bytes=total,
        text=fmt.size(total),
        phase=phase_moment(span.name, span.step) if span else "",
        operator=operator_name(timeline.operators[point]),
        module=timeline.modules[point],
        line=timeline.lines[point],
    )


def shell_command(request: TraceRequest, card: Gpu | None) -> str:
    """Return the command that traces the script of `request` for `card` in its working folder."""
    target = _from_its_folder(request.target)
    words = ("gpu-planner", "trace", *_options(request, card), *_target_words(target))
    folder = f"cd {join_words((target.folder,))} && " if target.folder else ""
    return f"{folder}{join_words(words)}"


def command_text(target: Target) -> str:
    """Return the command that runs a script in its working folder."""
    return join_words(command_words(_from_its_folder(target)))


def _options(request: TraceRequest, card: Gpu | None) -> Iterator[str]:
    """Yield the options of the trace that differ from their defaults, and the card."""
    if card is not None:
        yield from ("--gpu", card.id)
    if request.device != "cuda":
        yield from ("--device", request.device)
    if request.steps != TraceRequest.model_fields["steps"].default:
        yield from ("--steps", str(request.steps))
    for assumed in request.assume:
        yield from ("--assume", assumed_values_text((assumed,)))


def _target_words(target: Target) -> tuple[str, ...]:
    """Return the script with its arguments: after `--`, as a whole if it has a launcher."""
    if target.launcher:
        return ("--", *command_words(target))
    named = ("-m", target.place) if target.kind == "program" else (target.place,)
    return (*named, *(("--", *target.command_arguments) if target.command_arguments else ()))


def _from_its_folder(target: Target) -> Target:
    """Return the target with a script's path as seen from its working folder, if the script is in it."""
    place = PurePath(target.place)
    if not target.folder or not place.is_relative_to(target.folder):
        return target
    return target.evolve(place=str(place.relative_to(target.folder)))
