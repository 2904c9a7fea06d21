"""The report on a recording of the monitor: what the cards did, what held them back, and what it cost."""

from collections.abc import Iterator
from datetime import date
from typing import Final, NamedTuple

from planner import __version__
from planner.monitor.diagnosis.diagnose import diagnose
from planner.monitor.diagnosis.verdict import Verdict as Diagnosis
from planner.monitor.history import History
from planner.monitor.readings.events import Event, EventKind
from planner.monitor.readings.inventory import Device
from planner.monitor.recording.recording import MonitorRecording
from planner.monitor.recording.summary import RecordingSummary, diagnosed_history, summarize_recording
from planner.present import format as fmt
from planner.present.monitor.diagnosis import diagnosis_view
from planner.present.monitor.events import clock_time, duration_text, event_title, told_once
from planner.present.monitor.readings import card_label
from planner.present.monitor.recording import (
    SUMMARY_COLUMNS,
    diagnosed_text,
    energy_summary_text,
    recording_line,
    summary_lines,
)
from planner.present.report.document import (
    Block,
    Bullets,
    Drawing,
    Prose,
    Report,
    ReportAnswer,
    ReportColumn,
    ReportSection,
    ReportTable,
    Tone,
    section,
    table_of,
)
from planner.present.report.figures import ReadingsCurve, readings_figure
from planner.units import GIB

_SHARES: Final = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)
"""Moments of a span, as shares of it before its end, of which the first with a diagnosis of its kind is taken."""
_LATER_SECONDS: Final = (5.0, 10.0, 20.0, 30.0)
_POINTS: Final = 240
"""Readings of a curve at most: more cannot be told apart on paper."""
_EVENTS: Final = 60
_TONES: Final[dict[str, Tone]] = {"bad": "bad", "warn": "warn", "ok": "ok"}


class _PlottedMetric(NamedTuple):
    """A metric of the figures, in units of which one has `per_unit` of the metric's; `most` fixes the axis."""

    name: str
    title: str
    unit: str
    per_unit: float = 1.0
    most: float | None = None


_METRICS: Final = (
    _PlottedMetric("utilization_fraction", "Use of the GPUs", "%", 0.01, 100.0),
    _PlottedMetric("memory_used_bytes", "Memory in use", "GiB", GIB),
    _PlottedMetric("power_watts", "Power", "W"),
    _PlottedMetric("temperature_celsius", "Temperature", "°C"),
)


def report_on_recording(recording: MonitorRecording, today: date, usd_per_kwh: float | None = None) -> Report:
    """Return the report on `recording`, made on `today`; with a price of electricity, what the energy cost.

    Raises:
        OSError: If the recording's file can no longer be read.
    """
    history = diagnosed_history(recording)
    summary = summarize_recording(recording, usd_per_kwh, history)
    return Report(
        title=f"Recording {recording.path.name}",
        question="What did the GPUs do, what held them back, and what did it cost?",
        answers=tuple(_answers(history, summary)),
        sections=tuple(
            part
            for part in (
                _summary_section(recording, summary),
                section("Readings", *_figures(history)),
                _diagnosis_section(history),
                _event_section(history),
            )
            if part.blocks
        ),
        made=f"Made by GPU Planner {__version__} on {fmt.date(today.isoformat())}.",
    )


def _answers(history: History, summary: RecordingSummary) -> Iterator[ReportAnswer]:
    """Yield what the cards did for the longest time, and their energy."""
    spans = sorted(_diagnosis_spans(history), key=lambda span: -_seconds(span, history))
    if spans:
        found = diagnosis_view(_diagnosis_of(spans[0], history))
        tone = _TONES.get(found.tone, "none")
        lasted = duration_text(_seconds(spans[0], history))
        yield ReportAnswer(
            f"Longest, for {lasted}: {found.title}", found.sentence.removeprefix(f"{found.title}. "), tone
        )
    used = energy_summary_text(summary)
    yield ReportAnswer(
        fmt.capitalized(used) if used else "No GPU reported its energy or power.", diagnosed_text(summary)
    )


def _summary_section(recording: MonitorRecording, summary: RecordingSummary) -> ReportSection:
    return section(
        "What was recorded",
        Prose(recording_line(recording)),
        table_of(SUMMARY_COLUMNS, summary.cards),
        Prose("Pairs are the mean and the peak."),
        Bullets(tuple(line for line in summary_lines(recording, summary)[1:] if line != diagnosed_text(summary))),
    )


def _figures(history: History) -> Iterator[Drawing]:
    devices = [device for device in history.inventory.devices if device.mig_parent is None]
    for metric in _METRICS:
        curves = [curve for device in devices if (curve := _curve(history, device, metric)).times]
        figure = readings_figure(metric.title, metric.unit, curves, metric.most)
        if figure is not None:
            yield figure


def _curve(history: History, device: Device, metric: _PlottedMetric) -> ReadingsCurve:
    """Return the means of equal stretches of a card's readings."""
    series = history.series(device.uuid, metric.name)
    start, end = history.start, history.end
    if start is None or end is None or end <= start:
        return ReadingsCurve(device.name, (), ())
    width = (end - start) / _POINTS
    sums, counts = [0.0] * (_POINTS + 1), [0] * (_POINTS + 1)
    for time, value in zip(map(float, series.times), map(float, series.values), strict=True):
        index = int((time - start) / width)
        sums[index] += value
        counts[index] += 1
    means = tuple(
        (total / count / metric.per_unit if count else None) for total, count in zip(sums, counts, strict=True)
    )
    times = tuple((index + 0.5) * width for index in range(_POINTS + 1))
    title = f"{card_label(device)} {device.name}"
    return ReadingsCurve(title, times, means) if any(counts) else ReadingsCurve(title, (), ())


def _diagnosis_spans(history: History) -> Iterator[Event]:
    if history.start is not None and history.end is not None:
        for event in history.events(history.start, history.end):
            if event.kind is EventKind.DIAGNOSIS:
                yield event


def _seconds(span: Event, history: History) -> float:
    end = (history.end or 0.0) if span.ended is None else span.ended.monotonic_seconds
    return end - span.began.monotonic_seconds


def _diagnosis_of(span: Event, history: History) -> Diagnosis:
    """Return the latest diagnosis of the card in a span that is of the span's kind, with its evidence and advice.

    A span ends where the next one begins, to which a diagnosis at that moment may belong; and a short one may have been
    found a little later.
    """
    lasted = _seconds(span, history)
    end = span.began.monotonic_seconds + lasted
    moments = [*(end - share * lasted for share in _SHARES), *(end + seconds for seconds in _LATER_SECONDS)]
    found = [diagnose(history, span.uuid, moment) for moment in moments]
    return next((each for each in found if each.kind.value == span.what), found[0])


def _diagnosis_section(history: History) -> ReportSection:
    """Return each kind of diagnosis, the longest first, with the evidence and the advice of its longest span."""
    longest: dict[str, Event] = {}
    for span in _diagnosis_spans(history):
        if span.what not in longest or _seconds(span, history) > _seconds(longest[span.what], history):
            longest[span.what] = span
    spans = sorted(longest.values(), key=lambda span: -_seconds(span, history))
    return section("Diagnosis", *(block for span in spans for block in _diagnosis_blocks(span, history)))


def _diagnosis_blocks(span: Event, history: History) -> Iterator[Block]:
    found = diagnosis_view(_diagnosis_of(span, history))
    lasted = duration_text(_seconds(span, history))
    device = next(one for one in history.inventory.devices if one.uuid == span.uuid)
    yield Prose(f"GPU {card_label(device)}, {lasted} from {clock_time(span.began.wall_seconds)}: {found.sentence}")
    heads = ("Quantity", "Observed", "Threshold", "Source of the threshold")
    rows = tuple((row.quantity, row.seen, row.threshold, row.source) for row in found.evidence)
    yield ReportTable(tuple(map(ReportColumn, heads)), rows)
    yield Bullets(found.advice)


def _event_section(history: History) -> ReportSection:
    if history.start is None or history.end is None:
        return section("Events")
    seen = told_once(history.events(history.start, history.end))
    events = [event for event in seen if event.kind is not EventKind.DIAGNOSIS]
    labels = {device.uuid: card_label(device) for device in history.inventory.devices}
    rows = tuple(
        (
            clock_time(event.began.wall_seconds),
            labels.get(event.uuid, ""),
            event_title(event),
            duration_text(event.ended.monotonic_seconds - event.began.monotonic_seconds) if event.ended else "",
        )
        for event in events[:_EVENTS]
    )
    left = f"{fmt.integer(len(events) - _EVENTS)} more events are in the recording." if len(events) > _EVENTS else ""
    heads = ("Time", "GPU", "Event", "Lasted")
    return section("Events", ReportTable(tuple(map(ReportColumn, heads)), rows), Prose(left))
