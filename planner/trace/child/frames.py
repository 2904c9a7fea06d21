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
_TORCH: Final = re.compile(r"[/\\]torch[/\\]")
_PRETENDING: Final = re.compile(
    r"[/\\]torch[/\\](_compile|_decomp|_dynamo|_meta_registrations|_ops|_prims|_prims_common|_refs|_subclasses)(\.py$|[/\\])"
)
_FRAME: Final = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$')
_MOST_FRAMES: Final = 40


def own_part(frames: Sequence[FrameSummary], files: Iterable[Path]) -> StackSummary:
    """Return `frames`, the outermost first, from the first one in `files` on and without this program's own.

    Where none is in `files`, they begin with the first that is not this program's. They end where PyTorch begins to
    work out what it would do, which no run on real tensors would show. Where this program itself failed, all of that
    stays. The middle of a deep recursion is left out.
    """
    names = _spellings(files)
    is_bug = bool(frames) and frames[-1].filename.startswith(_PLANNER)
    kept = list(frames) if is_bug else [frame for frame in _without_pretending(frames) if not _is_hidden(frame)]
    start = next((at for at, frame in enumerate(kept) if frame.filename in names), 0)
    kept = kept[start:]
    half = _MOST_FRAMES // 2
    return StackSummary.from_list(kept if len(kept) <= _MOST_FRAMES else [*kept[:half], *kept[-half:]])


def _without_pretending(frames: Sequence[FrameSummary]) -> Sequence[FrameSummary]:
    others = (at for at, frame in enumerate(frames) if not (_TORCH.search(frame.filename) or _is_hidden(frame)))
    last = max(others, default=0)
    end = next((at for at in range(last, len(frames)) if _PRETENDING.search(frames[at].filename)), len(frames))
    return frames[:end]


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


def _is_hidden(frame: FrameSummary) -> bool:
    return frame.filename.startswith((_PLANNER, "<frozen "))
