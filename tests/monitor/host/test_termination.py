"""Termination of a process, guarded against reused PIDs and missing permission."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest
from fake_nvml_kit import A, card

from planner.errors import PlannerError
from planner.monitor.host.processes import terminate, termination_refusal
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess, HostProcess


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
def test_a_process_of_this_user_is_terminated(sleeper, by_force):
    terminate(on_card(sleeper.pid, psutil.Process(sleeper.pid).create_time()), by_force=by_force)
    assert sleeper.wait(10) == -(signal.SIGKILL if by_force else signal.SIGTERM)


def test_another_process_with_a_reused_pid_is_not_terminated(sleeper):
    with pytest.raises(PlannerError, match="was not ended") as caught:
        terminate(on_card(sleeper.pid, psutil.Process(sleeper.pid).create_time() - 60))
    assert "another process" in caught.value.hint
    assert sleeper.poll() is None


def test_a_process_that_already_ended_is_reported(sleeper):
    started = psutil.Process(sleeper.pid).create_time()
    sleeper.kill()
    sleeper.wait()
    with pytest.raises(PlannerError, match="already ended"):
        terminate(on_card(sleeper.pid, started))


def test_a_refused_termination_has_a_reason(sleeper):
    foreign = CardProcess(sleeper.pid, "GPU-a", "compute", Reading(1.0))
    with pytest.raises(PlannerError, match="was not ended"):
        terminate(foreign)
    assert "PID is not valid here" in termination_refusal(foreign)
    assert "implausible" in termination_refusal(on_card(1, 0.0, is_reliable=False))
    assert "ada" in termination_refusal(on_card(1, 0.0, is_own=False))
    assert termination_refusal(on_card(1, 0.0, is_own=False), may_end_others=True) == ""
    assert sleeper.poll() is None


def test_processes_of_other_users_are_terminated_only_if_allowed(sleeper):
    started = psutil.Process(sleeper.pid).create_time()
    with pytest.raises(PlannerError, match="was not ended") as caught:
        terminate(on_card(sleeper.pid, started, is_own=False))
    assert "only allow ending your own" in caught.value.hint
    assert sleeper.poll() is None
    terminate(on_card(sleeper.pid, started, is_own=False), may_end_others=True)
    assert sleeper.wait(10) != 0


def test_implausible_processes_are_never_terminated(sleeper):
    started = psutil.Process(sleeper.pid).create_time()
    for doubtful in (
        on_card(sleeper.pid, started, is_reliable=False),
        replace(on_card(sleeper.pid, started), host=None),
    ):
        with pytest.raises(PlannerError, match="was not ended"):
            terminate(doubtful, may_end_others=True, by_force=True)
    assert sleeper.poll() is None


@pytest.mark.parametrize("surroundings", [{"has_own_pids": True}, {"is_wsl": True}], ids=["container", "wsl"])
def test_a_pid_of_another_namespace_is_never_terminated(fake_nvml, sleeper, surroundings):
    """The driver tells the number of a process of another system; here another process has it."""
    fake_nvml.say_surroundings(**surroundings)
    fake_nvml.say(card(0, A) | {"0.process.compute": f"{sleeper.pid}:4096"})
    with fake_nvml.supervisor():
        (process,) = fake_nvml.wait_for(lambda latest: latest.processes).processes
    assert (process.pid, process.host) == (sleeper.pid, None)
    with pytest.raises(PlannerError, match="was not ended") as caught:
        terminate(process, may_end_others=True, by_force=True)
    assert "PID is not valid here" in caught.value.hint
    assert sleeper.poll() is None


def test_a_process_listed_by_the_driver_is_terminated(fake_nvml, sleeper):
    fake_nvml.say(card(0, A) | {"0.process.compute": f"{sleeper.pid}:4096"})
    with fake_nvml.supervisor():
        (process,) = fake_nvml.wait_for(lambda latest: latest.processes).processes
        assert process.host.is_own
        terminate(process)
        assert sleeper.wait(10) != 0
        # The driver still lists it, as it does for a moment: its number is nobody's now.
        process = fake_nvml.wait_for(lambda latest: latest.processes and not latest.processes[0].host).processes[0]
    assert termination_refusal(process)


def test_a_termination_refused_by_the_system_is_reported(sleeper, monkeypatch):
    def refuse(_process):
        raise psutil.AccessDenied

    started = psutil.Process(sleeper.pid).create_time()
    monkeypatch.setattr(psutil.Process, "terminate", refuse)
    with pytest.raises(PlannerError, match="could not be ended"):
        terminate(on_card(sleeper.pid, started))
