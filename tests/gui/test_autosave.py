"""Autosave: sessions of closed and killed windows are restored, and damaged files are set aside."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer

from planner.gui.autosave import Autosave, SavedSession, delete_leftovers
from planner.gui.settings import SettingsStore
from planner.gui.workspace import SAMPLE_PLAN, Workspace
from planner.plan.catalog import Catalog
from planner.plan.files import load_plan, save_plan
from planner.plan.plan import Plan
from planner.storage import UNFINISHED_SUFFIX

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


def write_session(file: Path, plan: Plan = SAMPLE_PLAN, **fields: object) -> Path:
    """Write the session of a window that has ended."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SavedSession(plan=plan, **fields).model_dump_json())
    return file


def test_every_plan_that_a_crash_left_is_offered_whatever_the_clock_says(qapp, catalog, folder):
    ages = {2: 366 * 86_400, 3: 0, 4: -86_400}  # the clock was set back by a year between two of them
    for count, age in ages.items():
        file = write_session(folder / f"{count}.json", SAMPLE_PLAN.evolve(count=count), modified=True, number=count)
        os.utime(file, (time.time() - age,) * 2)
    with open_window(catalog, folder) as (workspace, autosave):
        assert workspace.plan.count == 4
        assert [left.session.plan.count for left in autosave.unsaved_plans()] == [3, 2]
        first, second = autosave.unsaved_plans()
        autosave.show_unsaved_plan(second)
        assert (workspace.plan.count, workspace.modified) == (2, True)
        autosave.delete_unsaved_plan(first)
        assert autosave.unsaved_plans() == []
    assert counts(folder) == [2]


def test_a_plan_that_another_window_shows_by_now_is_neither_shown_nor_deleted(qapp, catalog, folder):
    write_session(folder / "a.json", SAMPLE_PLAN.evolve(count=2), modified=True)
    write_session(folder / "b.json", SAMPLE_PLAN.evolve(count=3), modified=True, number=1)
    with open_window(catalog, folder) as (first, autosave):
        (left,) = autosave.unsaved_plans()
        with open_window(catalog, folder) as (second, _):
            autosave.delete_unsaved_plan(left)
            autosave.show_unsaved_plan(left)
            assert (first.plan.count, second.plan.count) == (3, 2)
            assert counts(folder) == [2, 3]


def test_what_is_in_a_file_is_not_offered_again(qapp, catalog, folder, tmp_path):
    save_plan(tmp_path / "mine.json", SAMPLE_PLAN)
    pinned = SAMPLE_PLAN.evolve(count=8)
    for name, fields in {
        "latest": {"number": 9},
        "saved": {"path": str(tmp_path / "mine.json")},
        "its file is gone": {"path": str(tmp_path / "gone.json")},
        "has a pinned plan": {"path": str(tmp_path / "mine.json"), "pinned": pinned},
        "closed with a pinned plan": {"closed": True, "pinned": pinned},
        "closed without a file": {"closed": True, "modified": True},
    }.items():
        write_session(folder / f"{name}.json", **fields)
    with open_window(catalog, folder) as (_, autosave):
        left = {one.file.stem for one in autosave.unsaved_plans()}
    assert left == {"its file is gone", "has a pinned plan", "closed without a file"}
    assert left | {"latest"} == {file.stem for file in folder.glob("*.json")}


def test_a_left_plan_stays_where_this_window_cannot_keep_it(qapp, catalog, folder):
    write_session(folder / "a.json", SAMPLE_PLAN.evolve(count=2), modified=True)
    write_session(folder / "b.json", number=1)
    with open_window(catalog, folder) as (workspace, autosave):
        (left,) = autosave.unsaved_plans()
        (folder / "b.json").unlink()
        (folder / "b.json").mkdir()
        (folder / "b.json" / "in the way").touch()
        autosave.show_unsaved_plan(left)
        assert workspace.plan.count == 2
        assert left.file.exists()


def test_a_file_that_another_window_has_open_is_known(qapp, catalog, folder, tmp_path):
    file, other = tmp_path / "mine.json", tmp_path / "other.json"
    save_plan(file, SAMPLE_PLAN)
    save_plan(other, SAMPLE_PLAN)
    with open_window(catalog, folder) as (workspace, autosave):
        workspace.save_plan(file)
        autosave.flush()
        write_session(folder / "ended.json", path=str(other))
        (folder / "damaged.json").write_text("{")
        with open_window(catalog, folder) as (_, second):
            assert second.is_open_elsewhere(tmp_path / "." / "mine.json")
            assert not second.is_open_elsewhere(other)
            assert not autosave.is_open_elsewhere(file)
    assert not autosave.is_open_elsewhere(file)


def test_leftovers_of_killed_windows_are_deleted_and_what_is_in_use_is_not(qapp, catalog, folder, tmp_path):
    home, plan_file = folder.parent, tmp_path / "plans" / "[mine].json"
    plan_file.parent.mkdir()
    names = (".settings.json.abcdefgh", "autosave/.x.json.abcdefgh", "autosave/kept/.y.json.abcdefgh")
    with open_window(catalog, folder):
        (folder / "kept").mkdir()
        left = [home / f"{name}{UNFINISHED_SUFFIX}" for name in names]
        left += [home / "settings.json.lock", folder / "ended.lock"]
        left.append(plan_file.with_name(f".[mine].json.abcdefgh{UNFINISHED_SUFFIX}"))
        others = [plan_file.with_name(f".other.json.abcdefgh{UNFINISHED_SUFFIX}"), *folder.glob("*.json")]
        for file in (*left, others[0]):
            file.touch()
        (held,) = set(folder.glob("*.lock")) - set(left)
        delete_leftovers(home, [plan_file, tmp_path / "gone" / "x.json"])
        assert [file for file in left if file.exists()] == []
        assert all(file.exists() for file in (*others, held))
    assert not held.exists()


def test_a_file_system_without_locks_is_said_and_its_plans_stay(qapp, catalog, folder, monkeypatch):
    file = write_session(folder / "x.json", SAMPLE_PLAN.evolve(count=2), modified=True)

    def refuse(*_arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with open_window(catalog, folder) as (workspace, autosave):
        assert workspace.plan == SAMPLE_PLAN
        assert "No locks available" in autosave.unrestored[0].message
        assert not autosave.is_open_elsewhere(file)
    assert file.exists()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xff", b'{"plan": {"schema_version": 99}}', b"9" * 5000])
def test_a_session_that_cannot_be_read_is_kept_and_said(qapp, catalog, folder, content):
    folder.mkdir(parents=True)
    (folder / "x.json").write_bytes(content)
    (folder / "x.json.bad").write_bytes(b"an earlier one")
    with open_window(catalog, folder) as (workspace, autosave):
        assert workspace.plan == SAMPLE_PLAN
        (told,) = autosave.unrestored
    assert told.hint == f"It is kept as {folder / 'x.json.bad2'}."
    assert (folder / "x.json.bad2").read_bytes() == content
    assert (folder / "x.json.bad").read_bytes() == b"an earlier one"


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
    write_session(folder / "older.json", SAMPLE_PLAN.evolve(count=8), number=-1)
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
