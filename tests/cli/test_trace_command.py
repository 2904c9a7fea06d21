"""`gpu-planner trace` as a person and a script use it."""

import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from recordings import Recorder, training, two_steps

from planner.cli.main import main
from planner.cli.table import ProgressLine
from planner.cli.trace.command import _live_tensor_table, trace_report
from planner.present.format import THIN
from planner.present.trace import AliveRow, trace_view
from planner.trace.analysis.trace_result import conclude
from planner.trace.files import load_recording, save_recording
from planner.trace.recording import TraceDifference
from planner.units import GIB, MIB

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))

class Broken(nn.Module):
    def forward(self, x):
        return x @ torch.zeros(3, 3)

def with_inputs(width: int = 64):
    return Net(width), {"x": torch.zeros(4, width)}
"""

CUDNN = TraceDifference(
    name="convolution workspace",
    explanation="cuDNN chooses an algorithm at run time, and each needs another amount",
    source="cuDNN API reference, cudnnGetConvolutionForwardWorkspaceSize",
    low_bytes=0,
    high_bytes=512 * MIB,
    place="layers.0",
)


@pytest.fixture
def said(capsys):
    """Return a way to run the command and read what it printed, with thin spaces made plain."""

    def run(*words, code=0):
        assert main(["trace", *words]) == code
        printed = capsys.readouterr()
        assert (printed.out == "") == (code in (2, 3))
        return (printed.err if code in (2, 3) else printed.out).replace(THIN, " ")

    return run


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """Return the name of a saved recording in the working folder."""
    monkeypatch.chdir(tmp_path)
    save_recording(Path("net.json.gz"), two_steps(GIB, training(batch=8)).evolve(differences=(CUDNN,)))
    return "net.json.gz"


@pytest.fixture
def net(tmp_path, monkeypatch):
    """Work in a folder with a module of one's own in net.py."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path / "net.py"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("trace.txt", []),
        ("trace-fits.txt", ["--gpu", "RTX 4090", "--count", "2", "--top", "3"]),
        ("trace-does-not-fit.txt", ["--gpu", "GTX 1070", "--allocator", "expandable_segments:True"]),
        ("trace.json", ["--gpu", "RTX 4090", "--json"]),
    ],
)
def test_the_whole_answer(said, saved, golden, name, words):
    golden(name, said(saved, *words))


def test_json_has_the_keys_of_the_estimate_and_those_of_a_trace(said, saved):
    result = json.loads(said(saved, "--json"))
    assert sum(term["bytes"] for term in result["terms"]) == result["total_bytes"]
    assert {"timeline", "reserved_bytes", "peak_phase", "verdict", "phases"} <= set(result)
    assert len(result["timeline"]["times"]) == len(result["timeline"]["lines"])


@pytest.mark.parametrize(("gpu", "code"), [("RTX 4090", 0), ("GTX 1070", 1)])
def test_check_tells_by_the_exit_code(said, saved, gpu, code):
    said(saved, "--gpu", gpu, "--check", code=code)
    said(saved, "--gpu", gpu)


def test_a_recording_is_saved_again_and_exported(said, saved, tmp_path):
    said(saved, "--save", "copy.json", "--csv", "line.csv", "--allocations-csv", "all.csv")
    assert load_recording(Path("copy.json")) == load_recording(Path(saved))
    assert Path("line.csv").read_text().startswith("event,step,phase,live_bytes,")
    assert len(Path("all.csv").read_text().splitlines()) == 1 + len(load_recording(Path(saved)).allocations.bytes)
    assert said("copy.json") == said(saved)


def test_the_answer_fits_a_terminal_of_80_columns():
    recorder = Recorder()
    recorder.begin("forward")
    for number in range(12):
        where = {"module": f"model.decoder.layers.{number}.self_attn.q_proj", "line": "/home/me/modeling_net.py:1234"}
        recorder.make((number + 1) * MIB, "optimizer_states", "aten._foreach_addcmul_.Scalar", shape="8x2048", **where)
    view = trace_view(conclude(recorder.recording(differences=(CUDNN,))), smallest=("T4",))
    lines = trace_report(view, ("--device cuda",) * 12, 80, 10).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("2 more") for line in lines)


def test_modules_that_are_left_out_are_counted(saved, said):
    assert "2 smaller modules left out" in said(saved, "--top", "2")


def test_help_teaches(said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    printed = said("--help-all")
    for word in (
        "only code that you trust",
        "--allocator",
        "[AdamW]",
        "examples:",
        "exit codes:",
        "expandable_segments",
    ):
        assert word in printed


FILES = {
    "empty.py": b"x = 1\n",
    "damaged.json.gz": b'{"recording_version": 1, "request":',
    "newer.json": b'{"recording_version": 99}',
    "list.json": b"[]",
}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "no target is given"),
        ("nobody/nothing", "no model is called 'nobody/nothing'"),
        ("missing.py:Net", "TARGET: there is no file missing.py"),
        ("net.py:", "TARGET: net.py: needs the name"),
        ("empty.py:", "TARGET: empty.py: needs the name"),
        ("missing.py", "TARGET: there is no file missing.py"),
        ("net.py --batch 4", "--batch: is decided by the script itself"),
        ("net.py:Net -- --lr 0.1", "--: net.py:Net is not a script and takes no arguments"),
        ("-m package.train net.py", "-m: names a module besides TARGET"),
        ("-- torchrun --nproc_per_node=8", "TARGET: 'torchrun --nproc_per_node=8' names no script"),
        ("-- torchrun missing.py", "TARGET: there is no file missing.py"),
        ("list.json", "list.json: holds a JSON list"),
        ("damaged.json.gz", "damaged.json.gz: is not JSON"),
        ("newer.json", "newer.json: made by a newer version"),
        ("net.py:Net --frob", "unrecognized arguments: --frob"),
        ("net.py:Net --gpu GTX-9999", "no accelerator is called 'GTX-9999'"),
        ("net.py:Net --check", "--check: needs a GPU to check against"),
        ("net.py:Net --count 0", "--count: '0' is too small"),
        ("net.py:Net --top some", "--top: 'some' is not a whole number"),
        ("net.py:Net --batch 0", "--batch: must be at least 1"),
        ("net.py:Net --task sleeping", "--task: there is no 'sleeping'; choose"),
        ("net.py:Net --optimizer SGD", "--optimizer: applies to training"),
        ("net.py:Net --allocator colour:red", "--allocator: colour: PyTorch's allocator has no such option"),
        ("net.py:Net --time-limit 0", "--time-limit: must be more than 0"),
        ("net.py:Net --memory-limit much", "--memory-limit: 'much' is not a size"),
        ("net.py:Net --memory-limit 0", "--memory-limit: must be more than 0"),
        ("net.py:Net --save missing/net.json", "--save: there is no folder missing"),
        ("net.py:Net --csv folder", "--csv: folder is a folder"),
        ("net.json.gz --batch 4", "--batch: cannot change net.json.gz, which is a recording"),
        ("net.json.gz --save net.py", "--save: net.py exists and is a file of another kind"),
        ("net.json.gz --csv net.py", "--csv: net.py exists and is a file of another kind"),
    ],
)
def test_wrong_input_is_named_with_a_hint(said, saved, net, words, message):
    before = net.read_text()
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    Path("folder").mkdir()
    error, hint = said(*words.split(), code=2).split("\nhint: ")
    assert error.startswith("error: ")
    assert message in error
    assert len(hint.strip()) > 5
    assert net.read_text() == before


def test_a_trace_is_opened_without_pytorch(saved):
    program = (
        "import sys; from planner.cli.main import main; main(['trace', sys.argv[1]])\n"
        "print('loaded:', *({'torch', 'transformers', 'numpy', 'PySide6'} & set(sys.modules)))"
    )
    words = [sys.executable, "-c", program, saved]
    run = subprocess.run(words, capture_output=True, encoding="utf-8", check=True)
    assert run.stdout.splitlines()[-1] == "loaded:"


def test_without_pytorch_it_says_what_to_install(said, net, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    printed = said("net.py:Net", "--input", "8x1024", code=3)
    assert "pip install" in printed


def test_a_module_of_ones_own_is_trained(said, net):
    words = ("net.py:Net", "--input", "x=8x512:float32", "--arg", "width=512", "--task", "training")
    printed = said(*words, "--gpu", "RTX 4090", "--save", "net.json", "--check")
    assert printed.startswith("Fits on 1 × GeForce RTX 4090: needs ")
    assert "net.py:Net · 0.268 M parameters, all trained" in printed
    assert "Defaults used: --steps 2 --device cuda --optimizer AdamW" in printed
    reopened = json.loads(said("net.json", "--gpu", "RTX 4090", "--json"))
    weights = next(term["bytes"] for term in reopened["terms"] if term["name"] == "weights")
    assert weights == 4 * (512 * 512 + 512 + 512 * 10 + 10)


TRAINING = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, required=True)
net = nn.Linear(parser.parse_args().width, 10)
optimizer = torch.optim.Adam(net.parameters())
while True:
    loss = net(torch.ones(8, net.in_features)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    open("log.txt", "a").write(f"{loss.item()}")
"""


def test_a_script_is_traced_as_it_is_run(said, net):
    (net.parent / "train.py").write_text(TRAINING)
    printed = said("--device", "cpu", "--", "torchrun", "--nproc_per_node=4", "train.py", "--width", "512")
    assert "train.py · 5,130 parameters, all trained" in printed
    assert "Defaults used: --steps 2\n" in printed
    assert "One of 4 ranks is traced" in printed
    assert "Written to a scratch folder, which is gone after the trace: log.txt." in printed
    assert not Path("log.txt").exists()


def test_a_module_of_a_package_is_traced_as_it_is_run(said, net):
    (net.parent / "whole").mkdir()
    (net.parent / "whole" / "__main__.py").write_text(TRAINING)
    assert "whole · 5,130 parameters" in said("-m", "whole", "--device", "cpu", "--", "--width", "512")


def test_what_fails_in_the_module_comes_with_its_own_lines(said, net):
    printed = said("net.py:Broken", "--input", "x=8x8", "--device", "cpu", code=2)
    assert printed.startswith("error: in the forward pass: ")
    assert 'net.py", line 16, in forward' in printed
    assert "planner" not in printed.partition("hint: ")[2]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_progress_is_one_line_that_is_gone_in_the_end(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    with ProgressLine(stream) as line:
        line.show("Tracing: " + "forward " * 10)
        line.show("Tracing: step")
    shown = stream.getvalue().split("\r")
    assert shown[1] == "Tracing: forward forward forw"
    assert shown[2] == "Tracing: step".ljust(29)
    assert shown[3:] == [" " * 29, ""]


def test_progress_is_not_written_to_files():
    stream = io.StringIO()
    with ProgressLine(stream) as line:
        line.show("Tracing: forward")
    assert stream.getvalue() == ""


def test_nothing_is_left_on_a_terminal_where_nothing_was_said():
    stream = Terminal()
    with ProgressLine(stream):
        pass
    assert stream.getvalue() == ""


def _runs(process):
    """Return whether a process still does something: one that ended may stay listed until it is asked how."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C reaches the whole console there")
def test_an_interruption_ends_the_module_too(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import os, pathlib, time\n"
        "pathlib.Path('unfinished').write_text(str(os.getpid()))\n"
        "pathlib.Path('unfinished').rename('started')\n"
        "time.sleep(600)\n"
    )
    words = [sys.executable, "-m", "planner", "trace", "slow.py:Net", "--device", "cpu", "--save", "net.json"]
    started = tmp_path / "started"
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        try:
            deadline = time.monotonic() + 60
            while not started.exists():
                assert run.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            run.send_signal(signal.SIGINT)
            assert run.communicate(timeout=30) == (b"", b"")
        finally:
            run.kill()
    assert run.returncode == 130
    child = int(started.read_text())
    while _runs(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not (tmp_path / "net.json").exists()


def test_the_live_tensors_are_whole_in_a_narrow_terminal():
    name, shape = "features.denseblock4.denselayer16.conv1", "2 × [32, 128, 224, 224] float32"
    row = AliveRow(
        "temporaries",
        "Temporary tensors",
        1,
        "784 MiB",
        "1 B",
        0.25,
        "25 %",
        name,
        "convolution",
        shape,
        "",
        "net.py:10",
    )
    text = _live_tensor_table((row,), 80, 5)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "32x128x224x224" in text
