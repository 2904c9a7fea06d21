"""Logs and kept corrections on disk."""

from datetime import date

import pytest

from planner.errors import LogError, PlanFileError
from planner.memory.corrections import Correction, TermCorrection, with_correction
from planner.plan.logs.files import (
    corrections_file,
    load_corrections,
    open_log,
    pasted_log,
    save_correction,
)

MADE = Correction(
    terms=(TermCorrection(term="weights", added_bytes=5),),
    gpu="rtx-4090",
    model_type="llama",
    profile="hf",
    task="training",
    log="nvidia-smi",
    date="2026-10-03",
    digest="ab",
)


def test_a_log_has_a_date_and_a_digest(tmp_path):
    file = tmp_path / "run.log"
    file.write_text("Größe", encoding="utf-16")
    log = open_log(file)
    assert (log.text, log.name) == ("Größe", "run.log")
    assert log.date == date.fromtimestamp(file.stat().st_mtime).isoformat()
    pasted = pasted_log("Größe", date(2026, 10, 3))
    assert (pasted.date, pasted.digest) == ("2026-10-03", log.digest)


def test_a_file_that_is_not_a_log_is_refused(tmp_path):
    with pytest.raises(LogError, match="folder"):
        open_log(tmp_path)
    with pytest.raises(LogError, match="cannot be read"):
        open_log(tmp_path / "none.log")
    pickled = tmp_path / "snapshot.pickle"
    pickled.write_bytes(b"\x80\x04\x95")
    with pytest.raises(LogError, match="pickle"):
        open_log(pickled)


def test_one_correction_is_saved_for_each_kind_of_run(own_state_dir):
    path = corrections_file()
    assert load_corrections(path) == ()
    save_correction(path, MADE)
    other = MADE.evolve(gpu="h100-sxm")
    save_correction(path, other)
    newer = MADE.evolve(date="2026-11-04")
    save_correction(path, newer)
    assert load_corrections(path) == (newer, other)
    assert with_correction((MADE, other), newer) == (other, newer)


@pytest.mark.parametrize("content", ["{", '{"corrections": [{}]}', '{"more": 1}'])
def test_a_damaged_corrections_file_has_a_hint(own_state_dir, content):
    path = corrections_file()
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    with pytest.raises(PlanFileError) as error:
        save_correction(path, MADE)
    assert "Delete it" in error.value.hint
    assert path.read_text(encoding="utf-8") == content


def test_a_folder_instead_of_the_file_is_an_error(own_state_dir):
    path = corrections_file()
    path.mkdir(parents=True)
    with pytest.raises(PlanFileError, match="folder"):
        load_corrections(path)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PlanFileError, match="cannot be written"):
        save_correction(tmp_path / "file" / "corrections.json", MADE)


def test_a_log_that_disappears_is_an_error(tmp_path, monkeypatch):
    file = tmp_path / "run.log"
    file.write_text("text", encoding="utf-8")

    def gone(path, what, limit):
        content = path.read_bytes()
        path.unlink()
        return content

    monkeypatch.setattr("planner.plan.logs.files.read_regular", gone)
    with pytest.raises(LogError, match="cannot be read"):
        open_log(file)
