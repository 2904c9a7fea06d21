"""A plan on disk is the old one or the new one, whatever happens in between."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saving_child import LARGE, SMALL
from small_models import architectures, workloads

from planner.errors import PlanFileError
from planner.plan.files import is_plan_file, load_plan, save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.storage import write_atomically

KILLS = 10
PLANS = st.builds(
    Plan,
    model=st.builds(
        ModelChoice,
        id=st.text(min_size=1),
        architecture=st.none() | architectures(),
        path=st.none() | st.text(),
    ),
    workload=workloads(),
    gpu=st.none() | st.text(),
    count=st.integers(1, 100_000),
)


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    return tmp_path_factory.mktemp("plans") / "plan.json"


@given(plan=PLANS)
def test_a_saved_plan_is_loaded_as_it_was(plan_file, plan):
    save_plan(plan_file, plan)
    loaded = load_plan(plan_file)
    assert loaded == plan
    assert hash(loaded) == hash(plan)
    assert is_plan_file(plan_file)


def test_the_path_may_be_a_string(tmp_path):
    save_plan(str(tmp_path / "plan.json"), SMALL)
    assert load_plan(str(tmp_path / "plan.json")) == SMALL


def test_saving_leaves_nothing_beside_the_file(tmp_path):
    for plan in (SMALL, LARGE, SMALL):
        save_plan(tmp_path / "plan.json", plan)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_a_file_ends_with_a_line_and_is_utf_8_everywhere(tmp_path):
    plan = Plan(model=ModelChoice(id="Größe 模型"))
    save_plan(tmp_path / "plan.json", plan)
    text = (tmp_path / "plan.json").read_bytes().decode("utf-8")
    assert text.endswith("}\n")
    assert "Größe 模型" in text


@pytest.mark.parametrize("place", ["missing/plan.json", "file/plan.json", "folder"])
def test_where_nothing_can_be_written_is_told(tmp_path, place):
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PlanFileError, match=r"cannot be written \(.+\)") as caught:
        save_plan(tmp_path / place, SMALL)
    assert caught.value.path == tmp_path / place
    assert caught.value.hint == "Choose another folder."
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_disk_that_takes_no_more_leaves_the_old_file(tmp_path):
    resource = pytest.importorskip("resource", reason="limits on the size of files are POSIX")
    path = tmp_path / "plan.json"
    save_plan(path, SMALL)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(PlanFileError, match="cannot be written"):
            save_plan(path, LARGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert load_plan(path) == SMALL
    assert list(tmp_path.iterdir()) == [path]


def test_text_that_cannot_be_encoded_leaves_the_old_file(tmp_path):
    path = tmp_path / "notes.txt"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\udcff")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_process_killed_while_saving_leaves_a_whole_plan(tmp_path):
    path = tmp_path / "plan.json"
    save_plan(path, SMALL)
    child = Path(__file__).with_name("saving_child.py")
    for _ in range(KILLS):
        command = [sys.executable, str(child), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as run:
            assert run.stdout.readline() == "large\n"
            assert run.stdout.readline() == "small\n"
            before = _sizes(tmp_path)
            while _sizes(tmp_path) == before and run.poll() is None:
                pass
            run.kill()
        assert load_plan(path) in (SMALL, LARGE)
    # What a killed process had begun to write shows that it was hit in the middle.
    assert len(list(tmp_path.iterdir())) > 1


def _sizes(folder):
    with suppress(FileNotFoundError):  # a file that was put in its place meanwhile
        return {path.name: path.stat().st_size for path in folder.iterdir()}
    return {}
