"""Only the very process that was meant is ended, and only where that is allowed."""

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from planner.errors import PlannerError
from planner.monitor.process import CardProcess, HostProcess
from planner.monitor.reading import Reading
from planner.monitor.termination import terminate, why_not


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of one's own that waits to be ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def on_card(pid: int, started: float, *, is_own: bool = True, is_reliable: bool = True) -> CardProcess:
    host = HostProcess("python", "ada", "python train.py", started, None, 1, is_own)
    return CardProcess(pid, "GPU-a", "compute", Reading(1.0), host=host, is_reliable=is_reliable)


@pytest.mark.parametrize("by_force", [False, True])
def test_an_own_process_is_ended(sleeper, by_force):
    terminate(on_card(sleeper.pid, psutil.Process(sleeper.pid).create_time()), by_force=by_force)
    assert sleeper.wait(10) != 0


def test_another_process_with_the_same_number_is_left_alone(sleeper):
    with pytest.raises(PlannerError, match="left alone") as caught:
        terminate(on_card(sleeper.pid, psutil.Process(sleeper.pid).create_time() - 60))
    assert "Another process" in caught.value.hint
    assert sleeper.poll() is None


def test_a_process_that_has_ended_is_said_to_have(sleeper):
    started = psutil.Process(sleeper.pid).create_time()
    sleeper.kill()
    sleeper.wait()
    with pytest.raises(PlannerError, match="already ended"):
        terminate(on_card(sleeper.pid, started))


def test_what_may_not_be_ended_says_why(sleeper):
    foreign = CardProcess(sleeper.pid, "GPU-a", "compute", Reading(1.0))
    with pytest.raises(PlannerError, match="left alone"):
        terminate(foreign)
    assert "number means nothing here" in why_not(foreign)
    assert "cannot be true" in why_not(on_card(1, 0.0, is_reliable=False))
    assert "ada" in why_not(on_card(1, 0.0, is_own=False))
    assert why_not(on_card(1, 0.0, is_own=False), may_end_others=True) == ""
    assert sleeper.poll() is None


def test_what_the_system_refuses_is_told(sleeper, monkeypatch):
    def refuse(_process):
        raise psutil.AccessDenied

    started = psutil.Process(sleeper.pid).create_time()
    monkeypatch.setattr(psutil.Process, "terminate", refuse)
    with pytest.raises(PlannerError, match="could not be ended"):
        terminate(on_card(sleeper.pid, started))
