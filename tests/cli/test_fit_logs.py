"""`gpu-planner fit --log` and `--correct`."""

import io
import json

import pytest

from planner.cli.main import main
from planner.plan.files import load_plan
from planner.plan.logs.files import corrections_file, load_corrections
from planner.present.format import THIN

TRAINING = ["meta-llama/Llama-3.2-1B", "--task", "training", "--gpu", "rtx-4090"]
SUMMARY = """\
|                  PyTorch CUDA memory summary, device ID 0                 |
| Allocated memory      |   1062 MiB |  23501 MiB |   89299 MB |   88237 MB |
| GPU reserved memory   |  23900 MiB |  23900 MiB |   16924 MB |    4504 MB |
"""


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "run.log"
    file.write_text(SUMMARY, encoding="utf-8")
    return file


@pytest.fixture
def said(capsys):
    def run(*words, code=0):
        assert main(["fit", *map(str, words)]) == code
        printed = capsys.readouterr()
        return (printed.err if code else printed.out).replace(THIN, " ")

    return run


def test_the_comparison_stands_below_the_report(said, log):
    text = said(*TRAINING, "--log", log)
    assert "(reserved by PyTorch): estimated" in text.replace("\n", " ")
    assert text.index("Phase ") < text.index("(reserved by")
    assert "Read: torch.cuda.memory_summary()" in text
    assert "- Reserved by PyTorch: PyTorch's allocator holds 0.39 GiB" in text


def test_a_log_may_come_through_a_pipe(said, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(SUMMARY.encode()))
    monkeypatch.setattr("sys.stdin", stream)
    assert "Memory" in said(*TRAINING, "--log", "-")


def test_json_has_a_key_for_it(said, log):
    found = json.loads(said(*TRAINING, "--log", log, "--json"))
    rows = {row["name"]: row for row in found["comparison"]["rows"]}
    assert rows["allocated"]["actual_bytes"] == 23501 * 2**20
    assert rows["allocated"]["predicted_bytes"] == found["memory"]["allocated_bytes"]
    assert found["comparison"]["reading"]["formats"] == ["torch-summary"]


def test_a_correction_is_applied_saved_and_kept(said, log, tmp_path):
    saved = tmp_path / "plan.json"
    text = said(*TRAINING, "--log", log, "--correct", "--save", saved)
    assert "corrected by a log" in text
    assert "Corrected by your log of" in text
    (kept,) = load_corrections(corrections_file())
    assert load_plan(saved).corrections == (kept,)
    again = json.loads(said(saved, "--json"))
    assert again["memory"]["reserved_bytes"] == 23900 * 2**20
    plain = json.loads(said(saved, "--uncorrected", "--json"))
    assert plain["plan"]["corrections"] == []
    assert plain["memory"]["reserved_bytes"] != again["memory"]["reserved_bytes"]


def test_what_is_kept_is_off_until_it_is_asked_for(said, log):
    said(*TRAINING, "--log", log, "--correct")
    assert "corrected" not in said(*TRAINING)
    assert "corrected by a log" in said(*TRAINING, "--correct")
    other = said("meta-llama/Llama-3.2-1B", "--gpu", "rtx-4090", "--correct", code=2)
    assert "no correction is saved" in other
    assert "Add --log FILE." in other


def test_a_log_that_corrects_nothing_says_so(said, tmp_path):
    file = tmp_path / "vllm.log"
    file.write_text("Model loading took 14.9889 GiB and 3.6 seconds", encoding="utf-8")
    assert "no correction can be derived from this log" in said(*TRAINING, "--log", file, "--correct", code=2)


def test_what_cannot_be_read_names_the_formats(said, tmp_path):
    file = tmp_path / "empty.log"
    file.write_text("Hello.", encoding="utf-8")
    text = said(*TRAINING, "--log", file, code=2)
    assert "no memory amounts or speeds were recognized" in text
    assert "llama.cpp" in text
    assert "cannot be read" in said(*TRAINING, "--log", tmp_path / "none.log", code=2)
