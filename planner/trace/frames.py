"""The person's own part of a traceback: from their file on, without this program's own frames."""

import linecache
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from traceback import FrameSummary, StackSummary
from typing import Final

import planner

FAULT: Final = re.compile(rb"Fatal Python error: |Windows fatal exception: |Timeout \(")
"""How a report of Python's faulthandler begins."""

HEADING: Final = "Traceback (most recent call last):\n"

_PLANNER: Final = os.path.join(os.path.dirname(planner.__file__), "")
_FRAME: Final = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$')
_MOST_FRAMES: Final = 40


def own_part(frames: Sequence[FrameSummary], files: Iterable[Path]) -> StackSummary:
    """Return `frames`, the outermost first, from the first one in `files` on and without this program's own.

    Where none is in `files`, they begin with the first that is not this program's. Where this program itself failed,
    its frames stay. The middle of a deep recursion is left out.
    """
    names = _spellings(files)
    is_bug = bool(frames) and frames[-1].filename.startswith(_PLANNER)
    inside = [frame for frame in frames if is_bug or not _is_ours(frame)]
    start = next((at for at, frame in enumerate(inside) if frame.filename in names), 0)
    kept = inside[start:]
    half = _MOST_FRAMES // 2
    return StackSummary.from_list(kept if len(kept) <= _MOST_FRAMES else [*kept[:half], *kept[-half:]])


def first_own(frames: Iterable[FrameSummary], files: Iterable[Path]) -> FrameSummary | None:
    """Return the outermost of `frames` that is in `files`."""
    names = _spellings(files)
    return next((frame for frame in frames if frame.filename in names), None)


def last_own(frames: Iterable[FrameSummary], files: Iterable[Path]) -> FrameSummary | None:
    """Return the innermost of `frames` that is in `files`."""
    return first_own(reversed(list(frames)), files)


def read_report(report: str, files: Iterable[Path]) -> StackSummary:
    """Return the person's part of what Python's faulthandler wrote, of the thread that ran their code."""
    files = tuple(files)
    threads = [_read_thread(text) for text in re.split(r"^(?:Current thread|Thread) .*$", report, flags=re.MULTILINE)]
    running = [frames for frames in threads if frames]
    own = next((frames for frames in running if last_own(frames, files)), running[-1] if running else [])
    return own_part(own, files)


def _read_thread(text: str) -> list[FrameSummary]:
    matches = [found for found in map(_FRAME.match, text.splitlines()) if found]
    for found in matches:
        # The file may have changed since an earlier trace showed lines of it.
        linecache.checkcache(found["file"])
    # The report has the innermost frame first, a traceback has it last.
    return [FrameSummary(found["file"], int(found["line"]), found["name"]) for found in matches][::-1]


def _spellings(files: Iterable[Path]) -> frozenset[str]:
    """Return how tracebacks may name `files`: the faulthandler writes ASCII only."""
    paths = {spelling for file in files for spelling in (str(file), os.path.realpath(file))}
    return frozenset(paths | {path.encode("ascii", "backslashreplace").decode() for path in paths})


def _is_ours(frame: FrameSummary) -> bool:
    return frame.filename.startswith((_PLANNER, "<frozen "))
