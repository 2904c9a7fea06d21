"""Locks between windows, which the system releases when a window ends, however it ends."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_TRIES: Final = 20
_PAUSE_SECONDS: Final = 0.05

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class FileLock:
    """Lock that at most one window holds; its file is empty, since a process id may belong to another machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def acquire(self) -> bool:
        """Return whether the lock could be taken, without waiting.

        Raises:
            OSError: If its file cannot be created, or the file system has no locks.
        """
        while True:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                is_locked = _lock(handle)
            except OSError:
                os.close(handle)
                raise
            if is_locked and self._is_file(handle):
                self._handle = handle
                return True
            os.close(handle)
            if not is_locked:
                return False
            # Its last holder deleted the file in between: the lock is that of a file without a name.

    @contextmanager
    def waited_for(self) -> Iterator[bool]:
        """Hold the lock in this `with` block, which learns whether it could be had within a second."""
        try:
            for _ in range(_TRIES):
                if self.acquire():
                    break
                time.sleep(_PAUSE_SECONDS)
            yield self._handle is not None
        finally:
            self.release()

    def release(self) -> None:
        """Release the lock and delete its file; nothing happens if the lock is not held."""
        if self._handle is None:
            return
        # An open file cannot be deleted on Windows, and elsewhere another window may hold the lock once it is closed.
        if sys.platform != "win32":
            self._delete_file()
        os.close(self._handle)
        self._handle = None
        if sys.platform == "win32":
            self._delete_file()

    def _delete_file(self) -> None:
        with suppress(OSError):
            self.path.unlink()

    def _is_file(self, handle: int) -> bool:
        """Return whether the file of `handle` is still the one at the lock's path."""
        try:
            return os.path.samestat(os.fstat(handle), self.path.stat())
        except FileNotFoundError:
            return False
