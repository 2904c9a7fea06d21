"""Autosave: writes each window's plan within a second of a change, and restores the plan at the next start.

Every window owns one file in the folder and holds its lock. A file whose lock is free belongs to a window that was
closed or crashed: the next window to start restores the newest of them and takes over the file. A plan that can no
longer be shown, such as one for a card that was removed from the catalog, is saved as a plan file in the folder `kept`.
"""

import logging
import time
import uuid
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from PySide6.QtCore import QLockFile, QObject, QTimer, Signal, Slot

from planner.base import Spec
from planner.errors import PlannerError
from planner.gui.workspace import Workspace
from planner.parsing import parse_json
from planner.plan.files import save_plan
from planner.plan.plan import Plan
from planner.storage import UNFINISHED_SUFFIX, UnreadableFileError, read_regular, write_stored
from planner.units import MIB

DELAY_MS: Final = 500
KEEP_SECONDS: Final = 30 * 24 * 3600
UNFINISHED_SECONDS: Final = 60
_MOST_BYTES: Final = 64 * MIB
_log = logging.getLogger(__name__)


class SavedSession(Spec):
    """The saved state of one window."""

    plan: Plan
    path: str | None = None
    modified: bool = False
    closed: bool = False
    pinned: Plan | None = None


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
        self._file, self._lock = self._restore_newest_session() or self._new_session_file()
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
        self._write_session(closed=True)
        self._workspace.changed.disconnect(self._schedule_write)
        self._workspace.file_changed.disconnect(self._schedule_write)
        self._workspace.pin.changed.disconnect(self._schedule_write)
        self._lock.unlock()

    @Slot()
    def _schedule_write(self) -> None:
        # Not restarted while it runs: otherwise the file would never be written during a long drag.
        if not self._timer.isActive():
            self._timer.start()

    def _write_session(self, *, closed: bool) -> None:
        self._timer.stop()
        workspace = self._workspace
        path = None if workspace.path is None else str(workspace.path)
        session = SavedSession(
            plan=workspace.plan, path=path, modified=workspace.modified, closed=closed, pinned=workspace.pin.plan
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

    def _restore_newest_session(self) -> tuple[Path, QLockFile] | None:
        """Restore the newest session that no window has open, and delete closed and expired sessions."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._delete_temporary_files()
        except OSError as error:
            _log.warning("No session can be restored: %s", error)
            return None
        taken: tuple[Path, QLockFile] | None = None
        for file in sorted(self._folder.glob("*.json"), key=_modified_seconds, reverse=True):
            lock = _session_lock(file)
            if not lock.tryLock(0):
                continue
            session = _read_session(file)
            if taken is None and session is not None and self._restore_session(file, session):
                taken = file, lock
                continue
            is_settled = session is None or (session.closed and not session.modified)
            if is_settled or time.time() - _modified_seconds(file) > KEEP_SECONDS:
                file.unlink(missing_ok=True)
            lock.unlock()
        return taken

    def _delete_temporary_files(self) -> None:
        """Delete temporary files of windows that were killed while writing."""
        for file in self._folder.glob(f".*{UNFINISHED_SUFFIX}"):
            if time.time() - _modified_seconds(file) > UNFINISHED_SECONDS:
                file.unlink(missing_ok=True)

    def _restore_session(self, file: Path, session: SavedSession) -> bool:
        """Restore the plans in `session`; return False if `file` was renamed to keep a plan that cannot be shown."""
        path = None if session.path is None else Path(session.path)
        take_plan = partial(self._workspace.replace, session.plan, path, session.modified)
        taken = self._show_or_keep_plan("plan", session.plan, take_plan, file)
        if taken and session.pinned is not None:
            self._show_or_keep_plan(
                "pinned plan", session.pinned, partial(self._workspace.pin.put, session.pinned), file
            )
        return taken

    def _show_or_keep_plan(self, plan_role: str, plan: Plan, show_plan: Callable[[], None], file: Path) -> bool:
        """Show `plan`, or save it as a plan file and report an error; return False if `file` was renamed instead."""
        try:
            show_plan()
        except PlannerError as error:
            kept = self._keep_plan(plan)
            message = f"The {plan_role} of your last session cannot be shown: {error.message}."
            where = f"The {plan_role} is saved in {kept or file.replace(file.with_suffix('.json.kept'))}."
            how = " File › Recent opens it once the catalog has the card and model again." if kept else ""
            _log.warning("%s %s", message, where)
            self.unrestored.append(PlannerError(message, where + how))
            return kept is not None
        return True

    def _keep_plan(self, plan: Plan) -> Path | None:
        """Save `plan` as a plan file and return its path, or None if it cannot be written."""
        file = self._folder / "kept" / f"{date.today().isoformat()}-{uuid.uuid4().hex[:8]}.json"
        try:
            file.parent.mkdir(exist_ok=True)
            save_plan(file, plan)
        except (OSError, PlannerError) as error:
            _log.warning("A plan could not be saved: %s", error)
            return None
        self._workspace.settings.add_recent_plan(file)
        return file

    def _new_session_file(self) -> tuple[Path, QLockFile]:
        file = self._folder / f"{uuid.uuid4().hex}.json"
        lock = _session_lock(file)
        lock.tryLock(0)
        return file, lock


def _write_error(folder: Path, error: OSError) -> PlannerError:
    return PlannerError(
        f"Your plan and your settings cannot be kept for the next start: {folder}: {error.strerror}.",
        "Correct the folder's permissions or free some space. Until then, keep plans elsewhere by File › Save as….",
    )


def _session_lock(file: Path) -> QLockFile:
    lock = QLockFile(str(file.with_suffix(".lock")))
    # Never stale by age, since a window may stay open for weeks; Qt still checks whether its process lives.
    lock.setStaleLockTime(0)
    return lock


def _modified_seconds(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _read_session(file: Path) -> SavedSession | None:
    try:
        return SavedSession.model_validate(parse_json(read_regular(file, "saved plan", _MOST_BYTES)))
    except (UnreadableFileError, ValidationError) as error:
        _log.warning("The saved plan %s could not be read: %s", file, error)
        bad = file.with_suffix(".json.bad")
        file.replace(bad)
        return None
