"""Plan files: saving, loading, and errors that name what is wrong with a file."""

import json
import os
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saving_child import LARGE, SMALL
from small_models import architectures, workloads

from planner.errors import PlanFileError
from planner.installation import update_hint
from planner.plan.files import is_plan_file, load_plan, named_plan, parse_plan, read_text, save_plan
from planner.plan.plan import SCHEMA_VERSION, ModelChoice, Plan
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


PLAN = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="rtx-4090")


MEMORY = Path("/proc/self/mem")


needs_proc = pytest.mark.skipif(not MEMORY.exists(), reason="only Linux has a file that opens and cannot be read")


@pytest.fixture
def refused(tmp_path):
    """Return a check that a file of that content is no plan, which gives the error."""

    def check(content):
        path = tmp_path / "plan.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(PlanFileError) as caught:
            load_plan(path)
        assert caught.value.path == path
        assert caught.value.message.startswith(str(path))
        assert caught.value.hint
        return caught.value

    return check


def _with(**changes):
    return json.dumps(PLAN.model_dump(mode="json") | changes)


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


def test_saving_leaves_no_temporary_file(tmp_path):
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
def test_a_folder_that_is_not_writable_is_an_error(tmp_path, place):
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PlanFileError, match=r"cannot be written \(.+\)") as caught:
        save_plan(tmp_path / place, SMALL)
    assert caught.value.path == tmp_path / place
    assert caught.value.hint == "Choose another folder."
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_full_disk_leaves_the_old_file(tmp_path):
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


def test_text_is_parsed_into_a_plan():
    assert parse_plan(PLAN.model_dump_json(), Path("plan.json")) == PLAN


def test_missing_fields_have_their_defaults():
    text = '{"schema_version": 1, "model": {"id": "openai-community/gpt2"}}'
    assert parse_plan(text, Path("plan.json")) == Plan(model=ModelChoice(id="openai-community/gpt2"))


UNEQUAL = [{"id": "rtx-4090"}, {"id": "rtx-3090"}]


@pytest.mark.parametrize(
    ("fields", "is_open"),
    [
        ({"schema_version": 1, "count": 4}, False),
        ({"schema_version": 1, "count": 4, "workload": {"task": "training", "parallel": {"data": None}}}, False),
        ({"schema_version": 1, "count": 4, "workload": {"task": "inference", "parallel": {"tensor": 2}}}, False),
        ({"schema_version": 1, "workload": {"task": "inference", "gpus": UNEQUAL}}, False),
        ({"schema_version": 1, "count": 1}, True),
        ({"schema_version": 2, "count": 4}, True),
        ({"schema_version": 2, "count": 4, "workload": {"task": "training", "parallel": {"zero": 1}}}, False),
    ],
)
def test_several_cards_of_older_files_are_replicas(fields, is_open):
    plan = parse_plan(json.dumps({"model": {"id": "meta-llama/Llama-3.1-70B"}, **fields}), Path("plan.json"))
    assert (plan.schema_version, plan.workload.parallel.is_open) == (SCHEMA_VERSION, is_open)
    assert parse_plan(plan.model_dump_json(), Path("plan.json")) == plan


@pytest.mark.parametrize("workload", [3, {"task": "inference", "parallel": 3}])
def test_an_older_file_with_a_mistake_names_it(refused, workload):
    assert "workload" in refused(_with(schema_version=1, count=2, workload=workload)).reason


def test_a_newer_version_is_named_and_says_how_to_update(refused):
    error = refused(_with(schema_version=SCHEMA_VERSION + 1, new_field=1))
    assert error.version == SCHEMA_VERSION + 1
    assert f"schema {SCHEMA_VERSION + 1}" in error.reason
    assert error.hint == update_hint()


@pytest.mark.parametrize("version", [None, "1", 1.0, True, [1]])
def test_a_version_that_is_not_a_number_is_refused(refused, version):
    assert "no schema_version" in refused(_with(schema_version=version)).reason


@pytest.mark.parametrize("version", [0, -1])
def test_a_version_that_never_existed_is_refused(refused, version):
    assert refused(_with(schema_version=version)).reason.startswith("schema_version: ")


def test_an_unknown_field_is_named(refused):
    error = refused(_with(gpus="rtx-4090"))
    assert error.reason == "gpus: there is no such field"
    assert error.hint == "Check its spelling."


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"count": 0}, "count"),
        ({"count": float("nan")}, "count"),
        ({"count": float("inf")}, "count"),
        ({"count": 10**30}, "count"),
        ({"gpu": 3}, "gpu"),
        ({"model": {"id": ""}}, "model.id"),
        ({"model": {"id": "\ud800"}}, "model.id"),
        ({"workload": {"task": "inference", "batch": "many"}}, "workload.batch"),
        ({"workload": {"task": "dreaming"}}, "workload"),
    ],
)
def test_a_wrong_field_is_named(refused, changes, field):
    error = refused(_with(**changes))
    assert error.reason.startswith(f"{field}: ")
    assert error.hint.startswith("Correct that field.")


@pytest.mark.parametrize("content", ["", "garbage", '{"schema_version": 1', "[1,]"])
def test_text_that_is_not_json_is_refused(refused, content):
    assert "is not JSON: " in refused(content).reason


@pytest.mark.parametrize("opening", ["[", '{"model": '])
def test_deeply_nested_json_is_refused(refused, opening):
    assert "is nested too deep" in refused(f'{{"schema_version": 1, "model": {opening * 100_000}').reason


@pytest.mark.parametrize("content", ["null", "[]", "3", '"schema_version"', "{}", '{"model_type": "llama"}'])
def test_json_that_is_not_a_plan_is_refused(refused, content):
    assert "no schema_version" in refused(content).reason


@pytest.mark.parametrize(
    "content", [b"\xff\xfe{\x00}\x00", b"\x89PNG\r\n\x1a\n", b'{"schema_version": 1, "gpu": "\xe9"}']
)
def test_text_that_is_not_utf_8_is_refused(refused, content):
    assert refused(content).reason == "not a text file"


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(PlanFileError, match="is a folder, not a plan"):
        load_plan(tmp_path)


@pytest.mark.parametrize("name", ["missing.json", "x" * 5000])
def test_a_missing_file_is_an_error(tmp_path, name):
    with pytest.raises(PlanFileError, match=r"cannot be read \(.+\)") as caught:
        load_plan(tmp_path / name)
    assert caught.value.hint == "Check the path and its permissions."


@needs_proc
def test_an_unreadable_file_is_an_error():
    with pytest.raises(PlanFileError, match=r"cannot be read \(.+\)"):
        load_plan(MEMORY)


def test_a_file_that_is_far_too_large_is_not_read(tmp_path):
    path = tmp_path / "plan.json"
    with path.open("wb") as stream:
        stream.truncate(2**30)
    tracemalloc.start()
    try:
        with pytest.raises(PlanFileError, match=r"too large for a plan \(1,073,741,824 bytes\)"):
            load_plan(path)
        assert not is_plan_file(path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 2**24


def test_the_text_of_a_small_file_is_read_as_utf_8(tmp_path):
    (tmp_path / "a.txt").write_bytes("Größe".encode())
    assert read_text(tmp_path / "a.txt") == "Größe"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (PLAN.model_dump_json(), True),
        ('{"schema_version": 99}', True),
        ('{"schema_version": 1, "model": ', True),  # damaged: read as a plan it is told so
        ('{"model_type": "llama"}', False),
        ('["schema_version"]', False),
        ("garbage", False),
        ("[" * 100_000, False),
        (b"\xff\xfe", False),
    ],
)
def test_a_plan_is_distinguished_from_a_configuration(tmp_path, content, expected):
    path = tmp_path / "file.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert is_plan_file(path) is expected


def test_a_missing_file_or_a_folder_is_not_a_plan(tmp_path):
    assert not is_plan_file(tmp_path / "missing.json")
    assert not is_plan_file(tmp_path)


@needs_proc
def test_an_unreadable_file_is_not_a_plan():
    assert not is_plan_file(MEMORY)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert not is_plan_file(tmp_path / "pipe")


def test_a_word_is_a_plan_file_a_model_file_or_the_name_of_a_model(tmp_path, catalog):
    save_plan(tmp_path / "plan.json", PLAN)
    assert named_plan(str(tmp_path / "plan.json"), catalog) == PLAN
    assert named_plan("gpt2", catalog).model == ModelChoice(id="openai-community/gpt2")
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 128, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    made = named_plan(str(tmp_path / "config.json"), catalog).model
    assert made.architecture.depth == 2
