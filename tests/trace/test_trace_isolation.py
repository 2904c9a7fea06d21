"""A module can do nothing to this process: each way to go wrong ends as an error that says so, and leaves nothing."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from textwrap import dedent, indent
from time import monotonic

import psutil
import pytest

from planner.errors import TraceError
from planner.trace.recording import TraceRecording
from planner.trace.request import Target, TraceRequest
from planner.trace.run import BackgroundTrace, TraceLimits, start_trace

HERE = Path(__file__).parent
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks are of POSIX")


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch, tmp_path):
    """Check that each trace takes its processes, threads and temporary files with it."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(temporary))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setattr(tempfile, "tempdir", None)
    threads = set(threading.enumerate())
    yield
    assert psutil.Process().children(recursive=True) == []
    assert set(threading.enumerate()) <= threads
    assert list(temporary.iterdir()) == []


@pytest.fixture
def request_for(tmp_path):
    """Return a function that writes a file with a network and asks for it."""

    def write(code):
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        file = folder / "net.py"
        file.write_text(dedent(code), encoding="utf-8")
        return TraceRequest(target=Target(kind="file", place=str(file), name="Net"))

    return write


@pytest.fixture
def run_light(request_for):
    """Return a function that traces what a network's file says, without PyTorch."""

    def run(code, on_progress=None, **limits):
        return BackgroundTrace(request_for(code), TraceLimits(**limits), on_progress, worker="light_worker").result()

    return run


@pytest.fixture
def error_of(run_light):
    """Return a function that gives the error of what a network's file says."""

    def run(code, **limits):
        with pytest.raises(TraceError) as caught:
            run_light(code, **limits)
        return caught.value

    return run


def in_forward(code):
    """Return a file with a network whose forward runs `code`."""
    return "class Net:\n    def forward(self):\n" + indent(dedent(code).strip(), " " * 8) + "\n"


def test_a_correct_module_is_recorded(run_light, request_for):
    heard = []
    recording = run_light(in_forward("pass"), heard.append)
    assert isinstance(recording, TraceRecording)
    assert recording.request == request_for(in_forward("pass"))
    assert [progress.stage for progress in heard] == ["start", "build", "forward"]
    assert heard[-1].text == "step 1 of 2: forward · 10 allocations and frees"


@pytest.mark.parametrize(
    ("code", "stage", "reason", "hint", "line"),
    [
        (in_forward("raise ValueError('a bad shape')"), "forward", "ValueError: a bad shape", "", 3),
        ("class Net:\n    def __init__(self):\n        1 / 0\n", "build", "ZeroDivisionError: division by zero", "", 3),
        ("import os\nx = (\n", "import", "net.py, line 2: '(' was never closed", "", 2),
        ("import not_there.inside", "import", "not_there is not installed", "Install the package that has it", 1),
        ("import sys\nsys.exit()", "import", "called sys.exit()", '__name__ == "__main__"', 2),
        (in_forward("raise KeyboardInterrupt"), "forward", "raised KeyboardInterrupt", "", 3),
        (in_forward("self.forward()"), "forward", "recurses infinitely", "", 3),
        (in_forward("input('which card? ')"), "forward", "asked for input", "as an argument", 3),
        (in_forward("bytearray(100 << 30)"), "forward", "took more of this machine's memory", "raise the limit", 3),
        (in_forward("import warnings\nwarnings.simplefilter('error')\nwarnings.warn('old')"), "forward", "old", "", 5),
    ],
)
def test_an_exception_is_reported_with_the_users_traceback(error_of, code, stage, reason, hint, line):
    error = error_of(code)
    assert error.stage == stage
    assert reason in error.reason
    assert hint in error.hint
    assert not error.environment
    assert f'net.py", line {line}' in error.traceback
    assert str(Path("planner") / "trace") not in error.traceback
    assert error.reason in error.message
    assert "\n" not in error.message


def test_an_infinite_loop_is_ended_and_its_line_reported(error_of):
    error = error_of(in_forward("at = 0\nwhile True:\n    at += 1"), seconds=0.5)
    assert error.stage == "forward"
    assert "the module did not finish within 0.5 seconds; it was at net.py, line " in error.reason
    assert error.traceback.startswith("Traceback (most recent call last):")
    assert "in forward\n" in error.traceback


def test_a_module_that_stops_its_timer_is_ended(error_of):
    code = in_forward("import faulthandler\nfaulthandler.cancel_dump_traceback_later()\nwhile True: pass")
    error = error_of(code, seconds=0.1)
    assert "did not finish within 0.1 seconds" in error.reason


def test_a_crash_is_reported_with_its_line(error_of):
    error = error_of(in_forward("import ctypes\nctypes.string_at(0)"))
    assert "the process crashed: " in error.reason
    assert "it was at net.py, line 4, in forward" in error.reason
    assert "ctypes.string_at(0)" in error.traceback


def test_a_silent_exit_is_reported(error_of):
    error = error_of(in_forward("import os\nprint('bye')\nos._exit(3)"))
    assert "exited with code 3" in error.reason
    assert "os._exit" in error.hint
    assert error.stage == "forward"


@POSIX
def test_a_kill_is_reported(error_of):
    error = error_of(in_forward("import os\nos.kill(os.getpid(), 9)"))
    assert "killed by SIGKILL" in error.reason
    assert "memory" in error.hint


@pytest.mark.parametrize(
    "code",
    [
        "kept = [bytearray(1 << 20) for _ in range(1 << 20)]",
        pytest.param(
            """
            import mmap
            shared = mmap.mmap(-1, 1 << 31)
            for at in range(0, 1 << 31, 4096):
                shared[at] = 1
            """,
            marks=POSIX,
        ),
    ],
)
def test_a_module_that_leaks_memory_is_ended(error_of, code):
    error = error_of(in_forward(code), memory_bytes=100 << 20)
    assert "the module took more " in error.reason
    assert "memory" in error.reason


def test_printed_output_appears_only_in_the_error(error_of, capfd):
    error = error_of(
        in_forward(
            """
            import os, sys
            print('x' * 10_000_000)
            os.write(1, b'{"result": {}}\\n')
            sys.stdout.write('the last word')
            raise ValueError
            """
        )
    )
    assert error.reason == "ValueError"
    assert len(error.printed) <= 1 << 16
    assert error.printed.endswith('{"result": {}}\nthe last word')
    assert error.details.endswith("the last word")
    assert error.details.index("it printed:") > error.details.index("ValueError")
    assert capfd.readouterr() == ("", "")


def test_a_module_may_close_its_own_streams(run_light):
    assert run_light(in_forward("import os\nos.closerange(0, 3)"))


@POSIX
def test_a_closed_message_pipe_is_reported(error_of):
    error = error_of(in_forward("import os\nos.closerange(0, 100)"))
    assert "closed its connection" in error.reason


@POSIX
def test_forged_messages_are_refused(error_of):
    error = error_of(
        in_forward(
            """
            import os
            for file in range(3, 20):
                try: os.write(file, b'{"result": {}}\\n')
                except OSError: pass
            """
        )
    )
    assert "cannot be read" in error.reason


def test_a_script_runs_in_its_working_folder(request_for, tmp_path):
    request = request_for(in_forward("open('seen.txt', 'w').close()"))
    (tmp_path / "runs").mkdir()
    target = request.target.evolve(kind="script", place="../mine/net.py", folder=str(tmp_path / "runs"))
    BackgroundTrace(TraceRequest(target=target), TraceLimits(), worker="light_worker").result()
    assert (tmp_path / "runs" / "seen.txt").exists()
    with pytest.raises(TraceError, match="there is no folder"):
        start_trace(TraceRequest(target=target.evolve(folder=str(tmp_path / "none"))))


@pytest.mark.parametrize("ending", ["pass", "raise ValueError", "os._exit(0)", "os.abort()"])
def test_processes_started_by_the_module_are_ended(run_light, tmp_path, ending):
    note = tmp_path / "started"
    code = f"""
        import os, subprocess, sys, pathlib
        idle = [sys.executable, "-c", "import time; time.sleep(600)"]
        started = [subprocess.Popen(idle, start_new_session=apart) for apart in (False, True)]
        pathlib.Path({str(note)!r}).write_text(" ".join(str(process.pid) for process in started))
        {ending}
    """
    with suppress(TraceError):
        run_light(in_forward(code))
    started = [int(number) for number in note.read_text().split()]
    assert len(started) >= 2
    assert not any(map(is_running, started))


@POSIX
def test_a_fork_sends_no_messages(run_light):
    assert run_light(in_forward("import os\nos.fork()"))


def test_a_trace_can_be_cancelled_from_any_thread(request_for, tmp_path):
    note = tmp_path / "started"
    code = f"""
        import pathlib, subprocess, sys
        started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        pathlib.Path({str(note)!r}).write_text(str(started.pid) + ".")
        while True: pass
    """
    tracing = BackgroundTrace(request_for(in_forward(code)), TraceLimits(), worker="light_worker")
    wait_until(lambda: note.exists() and note.read_text().endswith("."))
    cancelling = threading.Thread(target=tracing.cancel)
    cancelling.start()
    with pytest.raises(TraceError, match="cancelled") as caught:
        tracing.result()
    cancelling.join()
    assert caught.value.stage == "cancelled"
    assert not is_running(int(note.read_text()[:-1]))
    tracing.cancel()


def test_a_trace_cancelled_at_once_ends_at_once(request_for):
    tracing = BackgroundTrace(request_for("x = 1"), TraceLimits(), worker="light_worker")
    tracing.cancel()
    with pytest.raises(TraceError, match="cancelled"):
        tracing.result()


@POSIX
def test_an_interrupt_ends_the_trace(run_light):
    def press_once(progress):
        if progress.stage == "start":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_light(in_forward("while True: pass"), press_once)
    wait_until_no_thread_is_named("trace")


def test_an_exception_in_the_progress_callback_is_raised(run_light):
    def fail(progress):
        raise LookupError(progress.stage)

    with pytest.raises(LookupError, match="start"):
        run_light(in_forward("while True: pass"), fail)


@POSIX
def test_the_worker_ends_with_this_process(request_for, tmp_path):
    note = tmp_path / "child"
    request = request_for(in_forward(f"import os\nopen({str(note)!r}, 'w').write(str(os.getpid()))\nwhile True: pass"))
    program = dedent(f"""
        import os, pathlib, signal
        from planner.trace.request import TraceRequest
        from planner.trace.run import BackgroundTrace, TraceLimits, start_trace
        request = TraceRequest.model_validate_json({request.model_dump_json()!r})
        tracing = BackgroundTrace(request, TraceLimits(), worker="light_worker")
        while not os.path.exists({str(note)!r}) or not os.path.getsize({str(note)!r}):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    wait_until(lambda: not is_running(int(note.read_text())))


def is_running(number):
    """Return whether the process of that number runs."""
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(holds):
    """Wait until `holds()`, and fail if it does not come to that."""
    deadline = monotonic() + 60
    while not holds():
        assert monotonic() < deadline


def wait_until_no_thread_is_named(start):
    for thread in threading.enumerate():
        if thread.name.startswith(start):
            thread.join(30)
