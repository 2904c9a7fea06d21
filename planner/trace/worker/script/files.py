"""Files that a script writes: kept in a scratch folder, in which the script finds them again.

**Rule**: what is opened for writing, made or renamed outside the scratch folder is made in it, under the same path;
what the script wrote there is found first when it reads, and nothing else is changed or removed. Only Python's own
functions are covered: a program that the script starts writes where it wants.
"""

import builtins
import errno
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from planner.trace.worker.cuda.dispatch import patched_attributes

_UNTOUCHED: Final = ("/dev/", "/proc/", "\\\\.\\", os.devnull)
"""Prefixes of paths that are no files of a person."""
_MAX_NAMES: Final = 5


class ScratchFiles:
    """Paths of a script and where they lead: into the scratch folder for everything that it writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._written: dict[str, None] = {}
        self._kept_back: dict[str, None] = {}
        self._exists = os.path.exists
        self._makedirs = os.makedirs
        self._copy = shutil.copy2

    def note(self) -> str:
        """Return a sentence on what was written elsewhere than the script asked, empty for nothing."""
        return " ".join(
            f"{text}: {_listed([*paths])}."
            for text, paths in (
                ("Written to a scratch folder, which is gone after the trace", self._written),
                ("Not removed or changed", self._kept_back),
            )
            if paths
        )

    def to_read(self, path: Any) -> Any:
        """Return where `path` is read: in the scratch folder if the script wrote it."""
        kept = self._kept_path(path)
        return kept if kept is not None and self._exists(kept) else path

    def to_write(self, path: Any, *, keeps_content: bool = False) -> Any:
        """Return where `path` is written; with `keeps_content` a file that exists is copied there first."""
        kept = self._kept_path(path)
        if kept is None:
            return path
        self._written.setdefault(os.fsdecode(path))
        if not self._exists(kept):
            with _unpatched():
                self._makedirs(os.path.dirname(kept), exist_ok=True)
                if keeps_content and os.path.isfile(path):
                    self._copy(path, kept)
        return kept

    def to_change(self, path: Any) -> Any | None:
        """Return where the script's own file at `path` is, None for a file that it did not write."""
        kept = self._kept_path(path)
        if kept is None or self._exists(kept):
            return path if kept is None else kept
        self._kept_back.setdefault(os.fsdecode(path))
        return None

    def _kept_path(self, path: Any) -> str | None:
        """Return the path in the scratch folder for `path`, None if it is there already or is no file's."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        text = os.path.abspath(os.fsdecode(path))
        if text.startswith(_UNTOUCHED) or text == self._folder or text.startswith(self._folder + os.sep):
            return None
        return os.path.join(self._folder, text.replace(":", "").lstrip("/\\"))


def _listed(names: list[str]) -> str:
    left_out = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {left_out} more" if left_out > 0 else "")


_READING: Final = ("stat", "lstat", "access", "scandir")
_CHANGING: Final = ("remove", "unlink", "rmdir", "chmod", "utime")
_MOVING: Final = ("rename", "replace")
_ORIGINALS: Final = {name: getattr(os, name) for name in (*_READING, *_CHANGING, *_MOVING, "mkdir", "open", "listdir")}
_OPEN: Final = builtins.open
_RMTREE: Final = shutil.rmtree


@contextmanager
def _unpatched() -> Iterator[None]:
    """Use the functions of the operating system as they are."""
    with (
        patched_attributes(os, **_ORIGINALS),
        patched_attributes(builtins, open=_OPEN),
        patched_attributes(io, open=_OPEN),
    ):
        yield


@contextmanager
def scratch_files(add_note: Callable[[str], None]) -> Iterator[ScratchFiles]:
    """Keep what is written within the context in a folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="gpu-planner-") as folder:
        files = ScratchFiles(Path(folder).resolve())
        opened = _opened(files)
        with ExitStack() as stack:
            for owner, functions in (
                (os, _Functions(files).by_name()),
                (shutil, {"rmtree": _rmtree(files)}),
                (tempfile, {"tempdir": str(Path(folder).resolve())}),
                (builtins, {"open": opened}),
                (io, {"open": opened}),
            ):
                stack.enter_context(patched_attributes(owner, **functions))
            yield files
        if note := files.note():
            add_note(note)


def _opened(files: ScratchFiles) -> Callable[..., Any]:
    """Return the replacement of `open`."""

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        writes = bool(set(mode) & set("wax+"))
        place = files.to_write(file, keeps_content="w" not in mode) if writes else files.to_read(file)
        return _OPEN(place, mode, *args, **kwargs)

    return opened


class _Functions:
    """Replacements of functions of `os`; with a folder's descriptor as `dir_fd`, a path is already where it leads."""

    def __init__(self, files: ScratchFiles) -> None:
        self._files = files

    def by_name(self) -> dict[str, Callable[..., Any]]:
        """Return the replacements by name."""
        return (
            {name: self._reading(name) for name in _READING}
            | {name: self._changing(name) for name in _CHANGING}
            | {name: self._moving(name) for name in _MOVING}
            | {"mkdir": self._mkdir, "open": self._open, "listdir": self._listdir}
        )

    def _mkdir(self, path: Any, *args: Any, dir_fd: int | None = None) -> None:
        if dir_fd is None:
            if os.path.exists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fsdecode(path))
            if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fsdecode(path))
            path = self._files.to_write(path)
        _ORIGINALS["mkdir"](path, *args, dir_fd=dir_fd)

    def _open(self, path: Any, flags: int, *args: Any, dir_fd: int | None = None) -> Any:
        if dir_fd is None:
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
            keeps_content = not flags & os.O_TRUNC
            path = self._files.to_write(path, keeps_content=keeps_content) if writes else self._files.to_read(path)
        return _ORIGINALS["open"](path, flags, *args, dir_fd=dir_fd)

    def _listdir(self, path: Any = ".") -> list[Any]:
        kept = self._files.to_read(path)
        own_names = [] if kept is path or not _is_folder(path) else _ORIGINALS["listdir"](path)
        return list(dict.fromkeys([*own_names, *_ORIGINALS["listdir"](kept)]))

    def _reading(self, name: str) -> Callable[..., Any]:
        def read(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dir_fd") is None:
                path = self._files.to_read(path)
            return _ORIGINALS[name](path, *args, **kwargs)

        return read

    def _changing(self, name: str) -> Callable[..., Any]:
        def change(path: Any, *args: Any, **kwargs: Any) -> None:
            own = path if kwargs.get("dir_fd") is not None else self._files.to_change(path)
            if own is not None:
                _ORIGINALS[name](own, *args, **kwargs)

        return change

    def _moving(self, name: str) -> Callable[..., Any]:
        def move(source: Any, destination: Any, **kwargs: Any) -> None:
            own = self._files.to_change(source)
            if own is None:
                shutil.copy2(source, destination)
            else:
                _ORIGINALS[name](own, self._files.to_write(destination), **kwargs)

        return move


def _is_folder(path: Any) -> bool:
    with _unpatched():
        return os.path.isdir(path)


def _rmtree(files: ScratchFiles) -> Callable[..., None]:
    """Return the replacement of `shutil.rmtree`, which removes only what the script wrote."""

    def rmtree(path: Any, *args: Any, **kwargs: Any) -> None:
        own = files.to_change(path)
        if own is not None:
            _RMTREE(own, *args, **kwargs)

    return rmtree
