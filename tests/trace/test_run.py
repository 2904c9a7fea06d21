"""Traces in the real child, with PyTorch: it answers, and what goes wrong there is told just as well."""

import sys
from textwrap import dedent

import pytest

from planner.errors import TraceError
from planner.installation import extra_command
from planner.trace.recording import TraceRecording
from planner.trace.request import Target, TraceRequest
from planner.trace.run import BackgroundTrace, TraceLimits, missing_packages_hint, start_trace, trace

NETWORK = """
import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        {before}
        return self.linear(x)


def network():
    return Inner(), (torch.randn(4, {width}),)
"""


@pytest.fixture
def network(tmp_path):
    """Return a function that writes a network's file and asks for it."""

    def write(name="network", before="pass", width=8, text=NETWORK):
        file = tmp_path / "net.py"
        file.write_text(dedent(text).format(before=before, width=width), encoding="utf-8")
        return TraceRequest(target=Target(kind="file", place=str(file), name=name), device="cpu")

    return write


def error_of(request, **limits):
    with pytest.raises(TraceError) as caught:
        trace(request, TraceLimits(**limits))
    return caught.value


def test_a_network_is_traced_beside_its_file_and_nothing_is_written_there(network, tmp_path, monkeypatch):
    request = network()
    monkeypatch.chdir(tmp_path)
    request = request.evolve(target=request.target.evolve(place="net.py"))
    stages = []
    recording = trace(request, on_progress=lambda progress: stages.append(progress.stage))
    assert isinstance(recording, TraceRecording)
    assert recording.request == request
    assert recording.parameters == 8 * 8 + 8
    assert stages[:2] == ["start", "build"]
    assert stages[-1] == "finish"
    assert [path.name for path in tmp_path.iterdir()] == ["net.py"]


def test_an_error_in_forward_names_the_users_line(network):
    error = error_of(network(width=9))
    assert error.stage == "forward"
    assert "9" in error.reason
    frames = [line for line in error.traceback.splitlines() if line.startswith("  File")]
    assert 'net.py", line 13, in forward' in frames[0]
    assert "torch/nn/modules/linear.py" in frames[-1].replace("\\", "/")
    assert "planner" not in error.traceback
    assert error.printed == ""


def test_a_broken_pytorch_is_an_environment_error(network, tmp_path, monkeypatch):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "torch.py").write_text(
        "raise ImportError('libcudart.so.12: cannot open shared object file')"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    error = error_of(network())
    assert error.environment
    assert error.stage == "start"
    assert "libcudart.so.12" in error.reason


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("asked", "stage", "reason", "details"),
    [
        ({"name": "Outer"}, "load", "has no 'Outer'", ""),
        ({"text": "network = 3"}, "load", "returned int, not a module", ""),
        ({"text": "import torch\nnetwork = ("}, "import", "net.py, line 2: '(' was never closed", "network = ("),
        ({"text": "import not_there"}, "import", "not_there is not installed", "import not_there"),
        ({"text": "def network():\n    1 / 0"}, "build", "ZeroDivisionError", "line 2, in network"),
        ({"before": "raise ValueError('a bad shape')"}, "forward", "ValueError: a bad shape", "line 12, in forward"),
        ({"before": "import os; os._exit(3)"}, "forward", "exited with code 3", ""),
        ({"before": "import ctypes; ctypes.string_at(0)"}, "forward", "line 12, in forward", "string_at"),
        ({"before": "bytearray(100 << 30)"}, "forward", "took more of this machine's memory", "line 12"),
        ({"before": "import numpy; numpy.ones(100 << 30)"}, "forward", "took more of this machine's memory", "line 12"),
        ({"text": "import numpy, torch\nx = torch.from_numpy(numpy.ones(9 << 30))"}, "import", "took more", "line 2"),
    ],
)
def test_each_kind_of_failure_has_a_reason(network, asked, stage, reason, details):
    error = error_of(network(**asked))
    assert error.stage == stage
    assert reason in error.reason
    assert details in error.traceback


@pytest.mark.oracle
def test_an_infinite_loop_is_reported_with_its_line(network):
    error = error_of(network(text="def network():\n    while True: pass"), seconds=2)
    assert error.stage == "build"
    assert error.reason == "the module did not finish within 2 seconds; it was at net.py, line 2, in network"


@pytest.mark.oracle
def test_enabled_warnings_do_not_disturb_the_trace(network, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    assert trace(network(before="import warnings; warnings.simplefilter('error')"))


def test_a_missing_file_is_an_error_at_once(network, tmp_path):
    request = network()
    (tmp_path / "net.py").unlink()
    with pytest.raises(TraceError, match=r"there is no file .*net\.py") as caught:
        start_trace(request)
    assert caught.value.stage == "load"


def test_missing_packages_have_one_hint(network, monkeypatch):
    assert missing_packages_hint() is None
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert missing_packages_hint() is None
    assert missing_packages_hint(config=True) == (
        f"tracing needs Hugging Face transformers; install it with: {extra_command('torch')}"
    )
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(TraceError, match="tracing needs PyTorch; install it with") as caught:
        start_trace(network())
    assert caught.value.environment


def test_a_process_that_cannot_start_is_an_error(network, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(TraceError, match="no process can be started") as caught:
        BackgroundTrace(network(), TraceLimits())
    assert caught.value.environment
