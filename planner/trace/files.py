"""Trace recordings on disk: saving, loading with validation, CSV export, and storage by digest."""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from planner.errors import PlannerError, SpecError
from planner.storage import UnreadableFileError, read_regular, write_atomically
from planner.trace.analysis.live_memory import span_at
from planner.trace.analysis.summary import digest_of
from planner.trace.facts import CATEGORIES
from planner.trace.recording import NEVER_FREED, RECORDING_VERSION, TraceRecording
from planner.trace.result import Timeline
from planner.units import MIB

_LARGEST_BYTES: Final = 256 * MIB
"""Enough for some millions of allocations; parsing takes about ten times as much memory."""
_BEGINNING_BYTES: Final = 4096
_GZIP: Final = b"\x1f\x8b"
_OWN_FILE: Final = "Open a recording saved by GPU Planner."
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_KEPT_RECORDINGS: Final = 50


def save_recording(path: Path | str, recording: TraceRecording) -> None:
    """Write `recording` atomically as JSON, compressed with gzip if the name ends in .gz.

    Raises:
        PlannerError: If the file cannot be written.
    """
    file, text = Path(path), recording.model_dump_json()
    # Without a timestamp, the same recording always gives the same file.
    _write(file, gzip.compress(text.encode(), mtime=0) if file.suffix.lower() == ".gz" else text)


def load_recording(path: Path | str) -> TraceRecording:
    """Load a recording, compressed or not.

    Raises:
        PlannerError: If it cannot be read, is too large, damaged, not a recording, or from a newer version.
    """
    file = Path(path)
    content = _unpacked(file, _read(file))
    if len(content) > _LARGEST_BYTES:
        raise _problem(file, "too large for a recording", f"Open one of at most {_LARGEST_BYTES // MIB} MiB.")
    try:
        return TraceRecording.model_validate_json(content)
    except ValidationError as error:
        raise _explained(file, content, error) from error


def is_recording_file(path: Path) -> bool:
    """Return whether the file identifies itself as a trace recording; False if it cannot be read."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            packed = stream.read(len(_GZIP)) == _GZIP
        with gzip.open(path) if packed else path.open("rb") as beginning:
            return b'"recording_version"' in beginning.read(_BEGINNING_BYTES)
    except (OSError, EOFError, zlib.error, ValueError):
        return False


def store_recording(folder: Path, recording: TraceRecording) -> str:
    """Store `recording` in `folder` and return its digest; only the 50 newest recordings are kept.

    Raises:
        PlannerError: If it cannot be written.
    """
    digest = digest_of(recording)
    save_recording(_place(folder, digest), recording)
    for old in sorted(folder.glob("*.json.gz"), key=_modified_at, reverse=True)[_KEPT_RECORDINGS:]:
        old.unlink(missing_ok=True)
    return digest


def find_recording(folder: Path, digest: str) -> TraceRecording | None:
    """Return the recording stored under `digest`, or None if it is no longer there.

    Raises:
        PlannerError: If it is damaged.
    """
    # A digest may come from an untrusted plan: it must not lead to other files.
    if not _DIGEST.fullmatch(digest) or not (place := _place(folder, digest)).exists():
        return None
    return load_recording(place)


def export_timeline_csv(path: Path, timeline: Timeline) -> None:
    """Write a timeline as CSV: live bytes in total and by category, and the last allocation's origin.

    Raises:
        PlannerError: If the file cannot be written.
    """
    _write(path, _csv(timeline_rows(timeline)))


def export_allocations_csv(path: Path, recording: TraceRecording) -> None:
    """Write every allocation as CSV; allocations alive at the end have no event of being freed.

    Raises:
        PlannerError: If the file cannot be written.
    """
    _write(path, _csv(_allocation_rows(recording)))


def timeline_rows(timeline: Timeline) -> Iterator[tuple[object, ...]]:
    """Yield a header and one row per point: live bytes in total and by category, and the last allocation's origin."""
    columns = [f"{series.category}_bytes" for series in timeline.series]
    yield ("event", "step", "phase", "live_bytes", *columns, "operator", "module", "line")
    for point, time in enumerate(timeline.times):
        span = span_at(timeline.spans, time)
        sizes = [series.bytes[point] for series in timeline.series]
        made = (timeline.operators[point], timeline.modules[point], timeline.lines[point])
        yield (time, span.step, span.name, sum(sizes), *sizes, *made)


def _allocation_rows(recording: TraceRecording) -> Iterator[tuple[object, ...]]:
    yield ("bytes", "made_event", "freed_event", "step", "phase", "category", "operator", "module", "line", "shape")
    columns = recording.allocations
    for number, (size, made, freed) in enumerate(zip(columns.bytes, columns.made, columns.freed, strict=True)):
        span = span_at(recording.spans, made)
        yield (
            *(size, made, "" if freed == NEVER_FREED else freed, span.step, span.name),
            CATEGORIES[columns.category[number]],
            recording.operators[columns.operator[number]],
            recording.module_paths[columns.module[number]],
            recording.lines[columns.line[number]],
            recording.shapes[columns.shape[number]],
        )


def _csv(rows: Iterable[tuple[object, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, "recording", _LARGEST_BYTES)
    except UnreadableFileError as error:
        raise _problem(path, error.reason, error.hint) from error


def _unpacked(path: Path, content: bytes) -> bytes:
    """Return the decompressed content, at most one byte beyond the allowed size."""
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            return stream.read(_LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise _problem(path, f"damaged, and cannot be unpacked ({error})", _OWN_FILE) from error


def _explained(path: Path, content: bytes, error: ValidationError) -> PlannerError:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as problem:
        return _problem(path, f"not valid JSON ({problem})", _OWN_FILE)
    version = data.get("recording_version") if isinstance(data, dict) else None
    if version is None:
        return _problem(path, "not a recording: it has no recording_version", _OWN_FILE)
    if isinstance(version, int) and version > RECORDING_VERSION:
        reason = f"made by a newer version of GPU Planner (recording {version}, this one reads {RECORDING_VERSION})"
        return _problem(path, reason, "Update GPU Planner: pip install --upgrade gpu-planner")
    return _problem(path, SpecError.from_validation(error).message, _OWN_FILE)


def _write(path: Path, content: str | bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise _problem(path, f"cannot be written ({error.strerror})", "Choose another folder.") from error


def _problem(path: Path, reason: str, hint: str) -> PlannerError:
    return PlannerError(f"{path}: {reason}", hint)


def _place(folder: Path, digest: str) -> Path:
    return folder / f"{digest}.json.gz"


def _modified_at(path: Path) -> float:
    """Return the modification time; a file that another process just removed counts as the oldest."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
