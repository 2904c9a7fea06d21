"""Trace recordings on disk: saving, loading with validation, CSV export, and storage by digest."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from planner.errors import PlannerError, SpecError
from planner.installation import update_hint
from planner.parsing import parse_json
from planner.parsing.packed import unpack_gzip
from planner.storage import UnreadableFileError, may_exist, read_regular, write_atomically
from planner.trace.analysis.live_memory import phase_at
from planner.trace.analysis.memory import recording_digest
from planner.trace.recording import CATEGORIES, NEVER_FREED, RECORDING_VERSION, TraceRecording
from planner.trace.result import Timeline
from planner.units import MIB

_MAX_RECORDING_BYTES: Final = 64 * MIB
_MOST_VALUES: Final = 4_000_000
"""Most values in a recording, enough for half a million allocations of eight figures each."""
_HEAD_BYTES: Final = 4096
_GZIP_MAGIC: Final = b"\x1f\x8b"
_OPEN_RECORDING_HINT: Final = "Open a recording saved by GPU Planner."
_DIGEST_PATTERN: Final = re.compile(r"[0-9a-f]{64}")
_MAX_KEPT_RECORDINGS: Final = 50


def save_recording(path: Path | str, recording: TraceRecording) -> None:
    """Write `recording` atomically as JSON, compressed with gzip if the name ends in .gz.

    Raises:
        PlannerError: If the file cannot be written.
    """
    file, text = Path(path), recording.model_dump_json()
    # Without a timestamp, the same recording always gives the same file.
    _write_file(file, gzip.compress(text.encode(), mtime=0) if file.suffix.lower() == ".gz" else text)


def load_recording(path: Path | str) -> TraceRecording:
    """Load a recording of a trace, compressed with gzip or not.

    Raises:
        PlannerError: If the file cannot be read, is too large, damaged or not a recording, or is from a newer version.
    """
    file = Path(path)
    try:
        content = read_regular(file, "recording", _MAX_RECORDING_BYTES)
        if content.startswith(_GZIP_MAGIC):
            content = unpack_gzip(content, _MAX_RECORDING_BYTES)
        data = parse_json(content, most_values=_MOST_VALUES)
    except UnreadableFileError as error:
        raise _file_error(file, error.reason, f"{error.hint} {_OPEN_RECORDING_HINT}") from error
    try:
        return TraceRecording.model_validate(data)
    except ValidationError as error:
        raise _invalid_recording_error(file, data, error) from error


def is_recording_file(path: Path) -> bool:
    """Return whether the file identifies itself as a trace recording; False if it cannot be read."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            is_gzip = stream.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        with gzip.open(path) if is_gzip else path.open("rb") as beginning:
            return b'"recording_version"' in beginning.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error, ValueError):
        return False


def store_recording(folder: Path, recording: TraceRecording) -> str:
    """Store `recording` in `folder` and return its digest; only the 50 newest recordings are kept.

    Raises:
        PlannerError: If the recording cannot be written.
    """
    digest = recording_digest(recording)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _file_error(folder, f"cannot be created ({error.strerror})", "Check its permissions.") from error
    save_recording(_recording_path(folder, digest), recording)
    for old_file in sorted(folder.glob("*.json.gz"), key=_modification_seconds, reverse=True)[_MAX_KEPT_RECORDINGS:]:
        old_file.unlink(missing_ok=True)
    return digest


def find_recording(folder: Path, digest: str) -> TraceRecording | None:
    """Return the recording stored under `digest`, or None if it is no longer stored.

    Raises:
        PlannerError: If the recording is damaged.
    """
    # A digest may come from an untrusted plan: it must not lead to other files.
    if not _DIGEST_PATTERN.fullmatch(digest) or not may_exist(path := _recording_path(folder, digest)):
        return None
    return load_recording(path)


def export_timeline_csv(path: Path, timeline: Timeline) -> None:
    """Write a timeline as CSV: live bytes in total and by category, and the origin of the last allocation.

    Raises:
        PlannerError: If the file cannot be written.
    """
    _write_file(path, _csv_text(timeline_rows(timeline)))


def export_allocations_csv(path: Path, recording: TraceRecording) -> None:
    """Write every allocation as CSV; `freed_event` is empty for allocations alive at the end.

    Raises:
        PlannerError: If the file cannot be written.
    """
    _write_file(path, _csv_text(_allocation_rows(recording)))


def timeline_rows(timeline: Timeline) -> Iterator[tuple[object, ...]]:
    """Yield a CSV header, then per point the live bytes in total and by category, and the last allocation's origin."""
    columns = [f"{series.category}_bytes" for series in timeline.series]
    yield ("event", "step", "phase", "live_bytes", *columns, "operator", "module", "line")
    for point, time in enumerate(timeline.times):
        span = phase_at(timeline.spans, time)
        sizes = [series.bytes[point] for series in timeline.series]
        origin = (timeline.operators[point], timeline.modules[point], timeline.lines[point])
        yield (time, span.step, span.name, sum(sizes), *sizes, *origin)


def _allocation_rows(recording: TraceRecording) -> Iterator[tuple[object, ...]]:
    """Yield a CSV header, then one row per allocation."""
    yield ("bytes", "made_event", "freed_event", "step", "phase", "category", "operator", "module", "line", "shape")
    columns = recording.allocations
    for number, (size, made, freed) in enumerate(zip(columns.bytes, columns.made, columns.freed, strict=True)):
        span = phase_at(recording.spans, made)
        yield (
            *(size, made, "" if freed == NEVER_FREED else freed, span.step, span.name),
            CATEGORIES[columns.category[number]],
            recording.operators[columns.operator[number]],
            recording.module_paths[columns.module[number]],
            recording.lines[columns.line[number]],
            recording.shapes[columns.shape[number]],
        )


def _csv_text(rows: Iterable[tuple[object, ...]]) -> str:
    """Return the rows as CSV text."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _invalid_recording_error(path: Path, data: object, error: ValidationError) -> PlannerError:
    version = data.get("recording_version") if isinstance(data, dict) else None
    if version is None:
        return _file_error(path, "not a recording: it has no recording_version", _OPEN_RECORDING_HINT)
    if isinstance(version, int) and version > RECORDING_VERSION:
        reason = f"made by a newer version of GPU Planner (recording {version}, this one reads {RECORDING_VERSION})"
        return _file_error(path, reason, update_hint())
    return _file_error(path, SpecError.from_validation(error).message, _OPEN_RECORDING_HINT)


def _write_file(path: Path, content: str | bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise _file_error(path, f"cannot be written ({error.strerror})", "Choose another folder.") from error


def _file_error(path: Path, reason: str, hint: str) -> PlannerError:
    return PlannerError(f"{path}: {reason}", hint)


def _recording_path(folder: Path, digest: str) -> Path:
    """Return the path in `folder` of the recording with this digest."""
    return folder / f"{digest}.json.gz"


def _modification_seconds(path: Path) -> float:
    """Return the modification time in seconds; a file that another process just removed counts as the oldest."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
