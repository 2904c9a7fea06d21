"""Autosave: sessions of closed and killed windows are restored, and damaged files are set aside."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer

from planner.gui.autosave import KEEP_SECONDS, Autosave, SavedSession
from planner.gui.settings import SettingsStore
from planner.gui.workspace import SAMPLE_PLAN, Workspace
from planner.plan.catalog import Catalog
from planner.plan.files import load_plan

CHILD = Path(__file__).with_name("autosave_child.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "autosave"


@contextmanager
def open_window(catalog: Catalog, folder: Path) -> Iterator[tuple[Workspace, Autosave]]:
    """A workspace with its autosave, closed in good order at the end."""
    settings = SettingsStore(folder.parent / "settings.json")
    workspace = Workspace(catalog, settings)
    autosave = Autosave(workspace, folder)
    yield workspace, autosave
    workspace.end_gesture()
    settings.flush()
    autosave.close()


def sessions(folder: Path) -> list[SavedSession]:
    return [SavedSession.model_validate_json(file.read_bytes()) for file in folder.glob("*.json")]


def counts(folder: Path) -> list[int]:
    return sorted(session.plan.count for session in sessions(folder))


@contextmanager
def running(folder: Path, count: int, plan_file: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A process with a window on `count` cards, which has been saved by itself; killed without a warning."""
    child = subprocess.Popen([sys.executable, str(CHILD), str(folder), str(count), plan_file])
    try:
        deadline = time.monotonic() + 60
        while count not in counts(folder):
            assert child.poll() is None, "the child ended"
            assert time.monotonic() < deadline, "the child did not save"
            time.sleep(0.02)
        yield child
    finally:
        child.kill()
        child.wait()


def test_a_first_start_has_the_sample_plan_and_saves_it(qapp, catalog, folder):
    with open_window(catalog, folder) as (workspace, _):
        assert workspace.plan == SAMPLE_PLAN
        assert [session.plan for session in sessions(folder)] == [SAMPLE_PLAN]


def test_a_change_is_saved_within_a_second(qapp, catalog, folder, qtbot):
    with open_window(catalog, folder) as (workspace, autosave):
        workspace.apply("number of cards", count=5)
        assert autosave.findChild(QTimer).remainingTime() < 1000
        qtbot.waitUntil(lambda: counts(folder) == [5])


def test_the_plan_is_saved_during_a_long_drag(qapp, catalog, folder, qtbot):
    with open_window(catalog, folder) as (workspace, _):

        def drag() -> bool:
            workspace.apply("number of cards", count=workspace.plan.count + 1)
            return counts(folder) != [1]

        qtbot.waitUntil(drag)


def test_a_closed_window_is_restored_with_its_file_and_state(qapp, catalog, folder, tmp_path):
    with open_window(catalog, folder) as (workspace, _):
        workspace.save_plan(tmp_path / "mine.json")
        workspace.apply("number of cards", count=7)
        plan = workspace.plan
    with open_window(catalog, folder) as (workspace, _):
        assert (workspace.plan, workspace.path, workspace.modified) == (plan, tmp_path / "mine.json", True)
        assert len(sessions(folder)) == 1


def test_a_killed_window_is_restored_with_its_file_and_state(qapp, catalog, folder, tmp_path):
    with running(folder, 9, str(tmp_path / "mine.json")) as child:
        child.kill()
        child.wait()
        with open_window(catalog, folder) as (workspace, _):
            assert workspace.plan.count == 9
            assert workspace.path == tmp_path / "mine.json"
            assert workspace.modified


def test_two_windows_do_not_touch_each_other(qapp, catalog, folder):
    with running(folder, 3), open_window(catalog, folder) as (workspace, autosave):
        assert workspace.plan == SAMPLE_PLAN
        workspace.apply("number of cards", count=4)
        autosave.flush()
        assert counts(folder) == [3, 4]


def test_two_killed_windows_are_restored_one_by_one_newest_first(qapp, catalog, folder):
    with running(folder, 3), running(folder, 4):
        pass
    with open_window(catalog, folder) as (first, _), open_window(catalog, folder) as (second, _):
        assert (first.plan.count, second.plan.count) == (4, 3)


def test_older_sessions_of_closed_windows_are_deleted_once_nothing_in_them_is_unsaved(qapp, catalog, folder, tmp_path):
    with open_window(catalog, folder) as (first, _), open_window(catalog, folder) as (second, _):
        first.apply("number of cards", count=2)
        second.apply("number of cards", count=3)
    assert counts(folder) == [2, 3]
    with open_window(catalog, folder) as (newest, _), open_window(catalog, folder) as (older, _):
        assert (newest.plan.count, older.plan.count) == (2, 3)
        older.save_plan(tmp_path / "older.json")
    with open_window(catalog, folder) as (workspace, _):
        assert workspace.plan.count == 2
        assert counts(folder) == [2]


def test_expired_sessions_are_deleted(qapp, catalog, folder):
    folder.mkdir(parents=True)
    for count, age in ((2, KEEP_SECONDS + 60), (3, 60)):
        file = folder / f"{count}.json"
        file.write_text(SavedSession(plan=SAMPLE_PLAN.evolve(count=count)).model_dump_json())
        os.utime(file, (time.time() - age, time.time() - age))
    with open_window(catalog, folder) as (workspace, _):
        assert workspace.plan.count == 3
        assert counts(folder) == [3]


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xff", b'{"plan": {"schema_version": 99}}'])
def test_a_damaged_session_is_set_aside(qapp, catalog, folder, content):
    folder.mkdir(parents=True)
    (folder / "x.json").write_bytes(content)
    with open_window(catalog, folder) as (workspace, _):
        assert workspace.plan == SAMPLE_PLAN
    assert (folder / "x.json.bad").read_bytes() == content


@pytest.mark.parametrize("closed", [True, False])
def test_a_plan_that_the_catalog_no_longer_knows_is_kept_where_it_can_be_opened(qapp, catalog, folder, closed):
    folder.mkdir(parents=True)
    plan, pinned = SAMPLE_PLAN.evolve(gpu="gone"), SAMPLE_PLAN.evolve(gpu="gone", count=2)
    (folder / "x.json").write_text(SavedSession(plan=plan, pinned=pinned, closed=closed).model_dump_json())
    with open_window(catalog, folder) as (workspace, autosave):
        assert (workspace.plan, workspace.pin.plan, workspace.path) == (SAMPLE_PLAN, None, None)
        second, first = (Path(name) for name in workspace.settings.current.recent)
        assert [load_plan(first), load_plan(second)] == [plan, pinned]
        told = autosave.unrestored
    assert [error.message.partition(" of your last session cannot be shown: gpu: ")[0] for error in told] == [
        "The plan",
        "The pinned plan",
    ]
    assert f"The plan is saved in {first}." in told[0].hint
    with open_window(catalog, folder) as (_, autosave):
        assert autosave.unrestored == []
    assert {first, second} == set((folder / "kept").iterdir())


@pytest.mark.parametrize(("gone", "words"), [("plan", "plan"), ("pinned", "pinned plan")])
def test_where_a_plan_cannot_be_kept_elsewhere_the_session_is_set_aside(qapp, catalog, folder, gone, words):
    folder.mkdir(parents=True)
    (folder / "kept").write_text("in the way")
    plans = {"plan": SAMPLE_PLAN.evolve(count=3), "pinned": SAMPLE_PLAN, gone: SAMPLE_PLAN.evolve(gpu="gone")}
    session = SavedSession(closed=True, **plans)
    (folder / "x.json").write_text(session.model_dump_json())
    (folder / "older.json").write_text(SavedSession(plan=SAMPLE_PLAN.evolve(count=8)).model_dump_json())
    os.utime(folder / "older.json", (time.time() - 60, time.time() - 60))
    with open_window(catalog, folder) as (workspace, autosave):
        assert workspace.plan.count == (8 if gone == "plan" else 3)
        assert [error.hint for error in autosave.unrestored] == [f"The {words} is saved in {folder / 'x.json.kept'}."]
    assert SavedSession.model_validate_json((folder / "x.json.kept").read_bytes()) == session


def test_an_unwritable_folder_does_not_stop_the_window(qapp, catalog, folder, caplog):
    with open_window(catalog, folder) as (workspace, autosave):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        folder.write_text("in the way")
        workspace.apply("number of cards", count=2)
        autosave.flush()
        assert "could not be saved" in caplog.text


def test_the_pinned_plan_is_restored(qapp, catalog, folder):
    other = SAMPLE_PLAN.evolve(count=8)
    with open_window(catalog, folder) as (workspace, _):
        workspace.pin.put(other)
    with open_window(catalog, folder) as (workspace, _):
        assert workspace.pin.plan == other
        workspace.pin.put(None)
    with open_window(catalog, folder) as (workspace, _):
        assert workspace.pin.plan is None


def test_a_pinned_plan_that_cannot_be_evaluated_is_kept_and_the_plan_restored(qapp, catalog, folder):
    with open_window(catalog, folder) as (workspace, _):
        workspace.apply("number of cards", count=3)
    (file,) = folder.glob("*.json")
    session = SavedSession.model_validate_json(file.read_bytes())
    file.write_text(session.evolve(pinned=SAMPLE_PLAN.evolve(gpu="gtx-0")).model_dump_json())
    with open_window(catalog, folder) as (workspace, _):
        assert workspace.plan.count == 3
        assert workspace.pin.plan is None


def test_a_plan_that_can_no_longer_be_kept_is_said_once_until_it_can(catalog, folder):
    with open_window(catalog, folder) as (workspace, autosave):
        said = []
        autosave.failed.connect(said.append)
        moved = folder.rename(folder.with_name("moved"))
        folder.touch()  # a file in the folder's place, where nobody can write, not even an administrator
        for count in (2, 3):
            workspace.apply("number of cards", count=count)
            autosave.flush()
        assert said == [autosave.failure]
        assert str(folder) in said[0].message
        folder.unlink()
        moved.rename(folder)
        autosave.flush()
        assert autosave.failure is None
    assert counts(folder) == [3]
