"""Autosave: writes each window's plan within a second of a change, and restores the plan at the next start.

Every window owns one file in the folder, its session, and holds the session's lock until it ends. A session whose lock
is free belongs to a window that was closed or crashed: the next window to start continues the latest of them, and
offers the other plans that are in no file. Which is the latest, the sessions say themselves by a number that each start
and each end counts up; clocks and times of files decide nothing. A plan that can no longer be shown, such as one for a
card that was removed from the catalog, is saved as a plan file in the folder `kept`.
"""

import logging
import os
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from planner.base import Spec
from planner.errors import PlannerError, SpecError
from planner.gui.locks import FileLock
from planner.gui.settings import SettingsStore
from planner.gui.workspace import Workspace
from planner.parsing import parse_json
from planner.plan.files import save_plan
from planner.plan.plan import Plan
from planner.storage import UnreadableFileError, delete_unfinished, may_exist, read_regular, set_aside, write_stored
from planner.units import MIB

DELAY_MS: Final = 300
_MOST_BYTES: Final = 64 * MIB
_log = logging.getLogger(__name__)


class SavedSession(Spec):
    """The saved state of one window.

    `base` is the content of the file at `path` when it was last read or saved, `saved_at` is only shown.
    """

    plan: Plan
    path: str | None = None
    modified: bool = False
    closed: bool = False
    pinned: Plan | None = None
    number: int = 0
    base: Plan | None = None
    saved_at: datetime | None = None

    @property
    def is_unsaved(self) -> bool:
        """Return whether it has something that is in no file and that its user did not close."""
        if self.modified:
            return True
        return not self.closed and (
            self.pinned is not None or (self.path is not None and not may_exist(Path(self.path)))
        )


class FreeSession(NamedTuple):
    """Session that no window has open, and its file."""

    file: Path
    session: SavedSession
    lock: FileLock


class Autosave(QObject):
    """Keeps one window's session on disk, and continues an earlier one.

    `unrestored` has an error for each saved plan that could not be restored. `failure` is why the session cannot be
    written, or None while it can; `failed` is emitted when the first of several writes fails.
    """

    failed = Signal(object)

    def __init__(self, workspace: Workspace, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._folder = folder
        self.unrestored: list[PlannerError] = []
        self.failure: PlannerError | None = None
        self._number = 0
        self._file, self._lock = self._continue_latest_session() or self._new_session_file()
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._timer.timeout.connect(self.flush)
        workspace.changed.connect(self._schedule_write)
        workspace.file_changed.connect(self._schedule_write)
        workspace.pin.changed.connect(self._schedule_write)
        self.flush()

    @Slot()
    def flush(self) -> None:
        """Write the session now."""
        self._write_session(closed=False)

    def close(self) -> None:
        """Write the session as closed by the user, and release its lock."""
        self._number = self._next_number()
        self._write_session(closed=True)
        self._workspace.changed.disconnect(self._schedule_write)
        self._workspace.file_changed.disconnect(self._schedule_write)
        self._workspace.pin.changed.disconnect(self._schedule_write)
        self._lock.release()

    def unsaved_plans(self) -> list[FreeSession]:
        """Return the sessions with unsaved plans that no window shows, latest first."""
        left = self._free_sessions()
        for one in left:
            one.lock.release()
        return [one for one in left if one.session.is_unsaved]

    def show_unsaved_plan(self, left: FreeSession) -> None:
        """Show a plan that another window left, unless a third window has done so in the meantime."""
        if left.lock.acquire() and left.file.exists() and self._restore_session(left):
            self.flush()
            if self.failure is None:
                left.file.unlink()
        left.lock.release()

    def delete_unsaved_plan(self, left: FreeSession) -> None:
        """Delete a plan that another window left, unless a third window shows it in the meantime."""
        if left.lock.acquire():
            left.file.unlink(missing_ok=True)
        left.lock.release()

    def is_open_elsewhere(self, path: Path) -> bool:
        """Return whether another window that still runs has the plan file at `path` open."""
        for file in self._session_files():
            try:
                session = _read_session(file)
                is_same = session.path is not None and os.path.samefile(session.path, path)
            except (OSError, PlannerError):
                continue
            if file != self._file and is_same and self._is_held(file):
                return True
        return False

    @Slot()
    def _schedule_write(self) -> None:
        # Not restarted while it runs: otherwise the file would never be written during a long drag.
        if not self._timer.isActive():
            self._timer.start()

    def _write_session(self, *, closed: bool) -> None:
        self._timer.stop()
        workspace = self._workspace
        session = SavedSession(
            plan=workspace.plan,
            path=None if workspace.path is None else str(workspace.path),
            modified=workspace.modified,
            closed=closed,
            pinned=workspace.pin.plan,
            number=self._number,
            base=workspace.base,
            saved_at=datetime.now(UTC),
        )
        try:
            write_stored(self._file, session.model_dump_json())
        except OSError as error:
            _log.warning("The plan could not be saved: %s", error)
            if self.failure is None:
                self.failure = _write_error(self._folder, error)
                self.failed.emit(self.failure)
        else:
            self.failure = None

    def _continue_latest_session(self) -> tuple[Path, FileLock] | None:
        """Continue the latest session that no window has open, and delete those that have nothing unsaved."""
        self._number = self._next_number()
        taken: FreeSession | None = None
        for one in self._free_sessions():
            if taken is None and self._restore_session(one):
                taken = one
                continue
            if not one.session.is_unsaved:
                one.file.unlink(missing_ok=True)
            one.lock.release()
        return None if taken is None else (taken.file, taken.lock)

    def _session_files(self) -> list[Path]:
        try:
            return list(self._folder.glob("*.json"))
        except OSError:  # writing the session says what is wrong with the folder
            return []

    def _next_number(self) -> int:
        """Return a number above those of all sessions, also of other windows."""
        numbers = [self._number]
        for file in self._session_files():
            with suppress(PlannerError):
                numbers.append(_read_session(file).number)
        return max(numbers) + 1

    def _is_held(self, file: Path) -> bool:
        lock = _session_lock(file)
        try:
            return not lock.acquire()
        except OSError:
            return True
        finally:
            lock.release()

    def _free_sessions(self) -> list[FreeSession]:
        """Return the sessions that no window has open, latest first, each with its lock held.

        What cannot be read is set aside, with an error in `unrestored`.
        """
        free: list[FreeSession] = []
        for file in self._session_files():
            lock = _session_lock(file)
            try:
                if not lock.acquire():
                    continue
            except OSError as error:
                self._note_unrestored(f"The plan in {file} cannot be restored ({error.strerror}).", "It stays there.")
                continue
            try:
                free.append(FreeSession(file, _read_session(file), lock))
            except PlannerError as error:
                if file.exists():
                    aside = set_aside(file)
                    where = f"It is kept as {aside}." if aside else f"It stays in {file}."
                    self._note_unrestored(f"A plan that a window left cannot be read: {error.message}.", where)
                lock.release()
        return sorted(free, key=lambda one: one.session.number, reverse=True)

    def _note_unrestored(self, message: str, hint: str) -> None:
        _log.warning("%s %s", message, hint)
        self.unrestored.append(PlannerError(message, hint))

    def _restore_session(self, one: FreeSession) -> bool:
        """Show the plans of a session; return False if its file was renamed to keep a plan that cannot be shown."""
        session, workspace = one.session, self._workspace
        path = None if session.path is None else Path(session.path)
        take_plan = partial(workspace.replace, session.plan, path, session.modified, session.base)
        taken = self._show_or_keep_plan("plan", session.plan, take_plan, one.file)
        if taken and session.pinned is not None:
            put_pin = partial(workspace.pin.put, session.pinned)
            self._show_or_keep_plan("pinned plan", session.pinned, put_pin, one.file)
        return taken

    def _show_or_keep_plan(self, plan_role: str, plan: Plan, show_plan: Callable[[], None], file: Path) -> bool:
        """Show `plan`, or save it as a plan file and report an error; return False if `file` was renamed instead."""
        try:
            show_plan()
        except PlannerError as error:
            kept = keep_plan(self._folder, plan, self._workspace.settings)
            message = f"The {plan_role} of your last session cannot be shown: {error.message}."
            where = f"The {plan_role} is saved in {kept or file.replace(file.with_suffix('.json.kept'))}."
            how = " File › Recent opens it once the catalog has the GPU and model again." if kept else ""
            self._note_unrestored(message, where + how)
            return kept is not None
        return True

    def _new_session_file(self) -> tuple[Path, FileLock]:
        file = self._folder / f"{uuid.uuid4().hex}.json"
        lock = _session_lock(file)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            _log.warning("The session is not locked: %s", error)
        return file, lock


def keep_plan(folder: Path, plan: Plan, settings: SettingsStore) -> Path | None:
    """Save `plan` in the folder `kept` there, as a recent plan, and return its path; None if that fails."""
    file = folder / "kept" / f"{date.today().isoformat()}-{uuid.uuid4().hex[:8]}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        save_plan(file, plan)
    except (OSError, PlannerError) as error:
        _log.warning("A plan could not be saved: %s", error)
        return None
    settings.add_recent_plan(file)
    return file


def delete_leftovers(home: Path, plan_files: Iterable[Path]) -> None:
    """Delete unfinished files and free locks, which killed processes left in `home` and beside `plan_files`."""
    autosave = home / "autosave"
    with suppress(OSError):
        for folder in (home, autosave, autosave / "kept", home / "prices", home / "traces"):
            delete_unfinished(folder)
        for lock in map(FileLock, (*home.glob("*.lock"), *autosave.glob("*.lock"))):
            lock.acquire()
            lock.release()
    for file in plan_files:
        with suppress(OSError):
            delete_unfinished(file.parent, file.name)


def _write_error(folder: Path, error: OSError) -> PlannerError:
    return PlannerError(
        f"Your plan and your settings cannot be kept for the next start: {folder}: {error.strerror}.",
        "Correct the folder's permissions or free some space. Until then, keep plans elsewhere by File › Save as….",
    )


def _session_lock(file: Path) -> FileLock:
    return FileLock(file.with_suffix(".lock"))


def _read_session(file: Path) -> SavedSession:
    """Return the session in `file`.

    Raises:
        PlannerError: If it cannot be read, such as one that was cut off, or one of a newer version.
    """
    try:
        return SavedSession.model_validate(parse_json(read_regular(file, "saved plan", _MOST_BYTES)))
    except UnreadableFileError as error:
        raise PlannerError(error.reason, error.hint) from error
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        raise PlannerError(problem.message, problem.hint or "It may be from a newer version of GPU Planner.") from error
