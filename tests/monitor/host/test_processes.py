"""Processes as the operating system reports them."""

import os
import subprocess
import sys

import psutil

from planner.monitor.host.processes import HostProcesses


def test_a_process_is_described_and_its_share_needs_two_rounds():
    processes = HostProcesses()
    first = processes.look_up(os.getpid())
    assert first.is_own
    assert first.cpu_fraction is None
    assert first.memory_bytes > 0
    assert first.started_seconds == psutil.Process().create_time()
    assert "python" in first.command
    # On a second card it is the same process, not one that did nothing since the first.
    assert processes.look_up(os.getpid()) is first
    processes.end_round()
    assert processes.look_up(os.getpid()).cpu_fraction is not None


def test_a_process_that_is_not_there_is_none():
    assert HostProcesses().look_up(2**22 + 1) is None


def test_a_process_that_was_not_asked_for_is_forgotten():
    processes = HostProcesses()
    processes.look_up(os.getpid())
    processes.end_round()
    processes.end_round()
    assert processes.look_up(os.getpid()).cpu_fraction is None


def test_a_number_that_was_given_away_is_a_new_process():
    processes = HostProcesses()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert processes.look_up(child.pid).name
    child.communicate(b"\n")
    processes.end_round()
    assert processes.look_up(child.pid) is None


def test_what_another_user_hides_stays_empty(monkeypatch):
    def refuse(_process):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil.Process, "cmdline", refuse)
    found = HostProcesses()
    monkeypatch.setattr(psutil.Process, "username", refuse)
    process = found.look_up(os.getpid())
    assert (process.user, process.command, process.is_own) == ("", "", False)
    assert not HostProcesses().look_up(os.getpid()).is_own
