"""Recordings that tests make: cards that draw what they are told, a second apart."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.recording import MonitorRecording, recording_from_bytes
from planner.monitor.recording.records import FORMAT_VERSION, Record, RecordingEnd, RecordingHeader
from planner.monitor.recording.writer import RecordingWriter

A, B = "GPU-a", "GPU-b"
WALL = 1_700_000_000.0
CARDS = Inventory(
    "580.65.06",
    devices=tuple(
        Device(uuid, f"NVIDIA Test {index}", index, facts={"memory_total_bytes": Reading(24 * 2**30)})
        for index, uuid in enumerate((A, B))
    ),
)


def sample(at: float, host: dict[str, float] | None = None, **readings: dict[str, float]) -> Sample:
    """Return a sample of cards `a` and `b`."""
    devices = {f"GPU-{letter}": plain(values) for letter, values in readings.items()}
    return Sample(at, WALL + at, devices, plain(host or {}))


def plain(values: dict[str, float]) -> dict[str, Reading]:
    """Return readings of values."""
    return {name: Reading(value) for name, value in values.items()}


def written(records: Iterable[Record], *, is_ended: bool = True, step: float = 0.5) -> bytes:
    """Return the file of records, flushed every `step` seconds of the samples' own clock."""
    stream = BytesIO()
    writer, now = RecordingWriter(stream), Timestamp(0.0, WALL)
    writer.put(RecordingHeader(FORMAT_VERSION, "a test", WALL), now)
    flushed = 0.0
    for record in records:
        if isinstance(record, Sample):
            now = Timestamp(record.monotonic_seconds, record.wall_seconds)
        writer.put(record, now)
        if now.monotonic_seconds - flushed >= step:
            writer.flush()
            flushed = now.monotonic_seconds
    if is_ended:
        writer.put(RecordingEnd(now.wall_seconds), now)
        writer.end()
    else:
        writer.flush()
    return stream.getvalue()


def recording(*records: Record, is_ended: bool = True) -> MonitorRecording:
    """Return a recording of the cards and `records`."""
    return recording_from_bytes(written((CARDS, *records), is_ended=is_ended), Path("a test"))


SAMPLES_OF_TWO_MINUTES = [sample(float(second), a={"power_watts": 100.0 + second}) for second in range(130)]


def opened(data):
    return recording_from_bytes(data, Path("a test"))


def values(found):
    return [update for update in found if isinstance(update, Sample)]
