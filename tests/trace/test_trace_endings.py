"""How a child ended, in words."""

import signal
from pathlib import Path
from traceback import FrameSummary

import pytest

import planner
from planner.trace.messages import CHANNEL_LOST, explain_exit, innermost_user_frame, user_traceback

OURS = str(Path(planner.__file__).parent / "trace" / "worker" / "job.py")
STAND_IN = str(Path(planner.__file__).parent / "trace" / "worker" / "script" / "files.py")
TIMEOUT = f"""Timeout (0:00:02)!
Thread 0x00007f9b93fff640 (most recent call first):
  File "{OURS}", line 60 in _end_with
  File "/usr/lib/python3.11/threading.py", line 982 in run

Thread 0x00007f9b9d0ff740 (most recent call first):
  File "/usr/lib/torch/functional.py", line 7 in relu
  File "/mine/net.py", line 12 in forward
  File "/usr/lib/torch/module.py", line 1500 in _call_impl
  File "/mine/net.py", line 30 in make
  File "{OURS}", line 12 in record
"""
FILES = [Path("/mine/net.py")]


def test_a_hang_shows_the_thread_that_ran_the_users_code():
    failure = explain_exit("forward", 1, TIMEOUT, 2.0, FILES)
    assert failure.reason == "the module did not finish within 2 seconds; it was at net.py, line 12, in forward"
    assert failure.stage == "forward"
    assert [line for line in failure.traceback.splitlines() if "File" in line] == [
        '  File "/mine/net.py", line 30, in make',
        '  File "/usr/lib/torch/module.py", line 1500, in _call_impl',
        '  File "/mine/net.py", line 12, in forward',
        '  File "/usr/lib/torch/functional.py", line 7, in relu',
    ]


def test_without_a_user_line_the_main_thread_is_shown():
    failure = explain_exit("forward", 1, TIMEOUT, 2.0, [])
    assert failure.reason == "the module did not finish within 2 seconds"
    assert "relu" in failure.traceback
    assert "threading.py" not in failure.traceback


@pytest.mark.parametrize(
    ("code", "report", "reason", "hint"),
    [
        (3, "", "the process exited with code 3", "os._exit"),
        (0xC0000005, "", "the process exited with code 0xc0000005", "os._exit"),
        (None, "", "the process closed its connection to GPU Planner", "closes files"),
        (CHANNEL_LOST, "", "the process closed its connection to GPU Planner", "closes files"),
        (-signal.SIGTERM, "", "the process was killed by SIGTERM", ""),
        (-9, "", "the process was killed by SIGKILL", "memory"),
        (-1000, "", "the process was killed by signal 1000", ""),
        (-11, "Fatal Python error: Segmentation fault\n", "the process crashed: Segmentation fault", "this line"),
        (1, "Windows fatal exception: access violation\n", "the process crashed: access violation", "this line"),
    ],
)  # fmt: skip
def test_each_exit_code_has_a_reason(code, report, reason, hint):
    failure = explain_exit("build", code, report, 1.0, FILES)
    assert failure.reason == reason
    assert hint in failure.hint
    assert failure.traceback == ""


def frames(*files):
    return [FrameSummary(file, line, "run") for line, file in enumerate(files, start=1)]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((OURS, "/usr/torch.py", "/mine/net.py", OURS, "/usr/torch.py"), [3, 5]),
        ((OURS, "<frozen importlib>", "/usr/torch.py", "/usr/torch.py"), [3, 4]),
        ((OURS, "/mine/net.py", "/usr/torch.py", OURS), [2, 3, 4]),
        ((OURS, "/mine/net.py", STAND_IN, STAND_IN), [2]),
        ((OURS,), [1]),
        ((OURS, "/mine/net.py", "/usr/torch/nn/linear.py", "/usr/torch/_ops.py", OURS, "/usr/torch/a.py"), [2, 3]),
        (("/mine/net.py", "/usr/torch/_dynamo/eval.py", "/mine/net.py", "C:\\torch\\_compile.py"), [1, 2, 3]),
        ((), []),
    ],
)
def test_a_traceback_begins_with_the_users_file(given, kept):
    assert [frame.lineno for frame in user_traceback(frames(*given), FILES)] == kept


def test_the_middle_of_a_deep_traceback_is_left_out():
    kept = user_traceback(frames(*["/mine/net.py", "/mine/other.py"] * 500), FILES)
    assert [frame.lineno for frame in kept] == [*range(1, 21), *range(981, 1001)]


def test_a_file_is_recognized_by_each_spelling_of_its_path(tmp_path):
    file = tmp_path / "größe.py"
    link = tmp_path / "link.py"
    file.touch()
    link.symlink_to(file)
    escaped = str(file).encode("ascii", "backslashreplace").decode()
    for name in (str(file), str(link), escaped):
        assert innermost_user_frame(frames("/usr/torch.py", name, "/usr/torch.py"), [link]).lineno == 2
    assert innermost_user_frame(frames("/usr/torch.py"), [link]) is None
