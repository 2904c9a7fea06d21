"""Files that a script writes: found again by it, and nowhere else."""

import os
from pathlib import Path

import pytest
from scripted import script, traced

from planner.trace.worker.script.files import scratch_files

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder of a person, with a file in it."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "mine.txt").write_text("mine")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


WRITERS = {
    "open": "open('new.txt', 'w').write('text')",
    "overwrite": "open('mine.txt', 'w').write('text')",
    "append": "open('mine.txt', 'a').write('text'); assert open('mine.txt').read() == 'minetext'",
    "update": "f = open('mine.txt', 'r+'); f.write('y'); f.close(); assert open('mine.txt').read() == 'yine'",
    "pathlib": "Path('a/b').mkdir(parents=True); Path('a/b/c.txt').write_text('x'); assert Path('a/b/c.txt').exists()",
    "makedirs": "os.makedirs('out', exist_ok=True); os.makedirs('out', exist_ok=True); assert os.listdir('out') == []",
    "descriptor": "os.close(os.open('low.txt', os.O_WRONLY | os.O_CREAT)); assert os.path.isfile('low.txt')",
    "remove": "os.remove('mine.txt')",
    "remove own": "open('a.txt', 'w').close(); os.remove('a.txt'); assert not os.path.exists('a.txt')",
    "rename": "os.rename('mine.txt', 'other.txt'); assert open('other.txt').read() == 'mine'",
    "replace": "open('a.txt', 'w').close(); os.replace('a.txt', 'mine.txt'); assert open('mine.txt').read() == ''",
    "copy": "shutil.copyfile('mine.txt', 'copy.txt'); assert sorted(os.listdir()) == ['copy.txt', 'mine.txt']",
    "rmtree": "shutil.rmtree('.')",
    "rmtree own": "os.makedirs('a/b'); shutil.rmtree('a'); assert not os.path.exists('a')",
    "temporary": "import tempfile\nwith tempfile.NamedTemporaryFile() as f:\n    f.write(b'x')",
    "numpy": "import numpy\nnumpy.save('x.npy', numpy.ones(3)); numpy.ones(2).tofile('y.bin'); numpy.load('x.npy')",
    "scandir": "open('a.txt', 'w').close(); assert [e.name for e in os.scandir('.')]",
    "chmod": "os.chmod('mine.txt', 0)",
    "absolute": "Path('mine.txt').resolve().write_text('x')",
    "bytes": "open(b'new.txt', 'wb').close()",
    "null": "open(os.devnull, 'w').write('x')",
}


@pytest.mark.parametrize("code", WRITERS.values(), ids=WRITERS.keys())
def test_a_persons_files_stay_as_they_are(folder, code):
    notes = []
    with scratch_files(notes.append):
        exec("import os, shutil\nfrom pathlib import Path\n" + code, {})  # as a script would
    assert contents(folder) == {"mine.txt": "mine"}
    assert sorted(os.listdir(folder)) == ["mine.txt"]
    assert (folder / "mine.txt").stat().st_mode & 0o400


def test_what_was_written_and_kept_back_is_named(folder):
    notes = []
    with scratch_files(notes.append):
        for number in range(7):
            Path(f"{number}.txt").write_text("x")
        os.remove("mine.txt")
    assert notes == [
        "Written to a scratch folder, which is gone after the trace: 0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 2 more. "
        "Not removed or changed: mine.txt."
    ]


def test_folders_fail_as_they_do_in_a_real_run(folder):
    with scratch_files(print):
        with pytest.raises(FileExistsError):
            os.mkdir(folder)
        with pytest.raises(FileNotFoundError):
            os.mkdir("missing/inner")
        with pytest.raises(FileNotFoundError):
            open("missing.txt")  # noqa: SIM115


def test_a_script_that_only_reads_has_no_note(folder):
    notes = []
    with scratch_files(notes.append):
        assert Path("mine.txt").read_text() == "mine"
    assert notes == []


def test_a_script_finds_its_files_again(folder):
    source = """
import os, torch
os.makedirs("runs/first", exist_ok=True)
with open("runs/first/log.txt", "w") as log:
    log.write("step 0")
assert open("runs/first/log.txt").read() == "step 0"
torch.ones(3)
"""
    recording = traced(script(folder.parent, source))
    assert any("runs/first/log.txt" in note for note in recording.notes)
    assert contents(folder) == {"mine.txt": "mine"}
