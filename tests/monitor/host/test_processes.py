"""Processes as the operating system reports them."""

import os
import subprocess
import sys

import psutil

from planner.monitor.host.processes import HostProcesses


def test_the_cpu_fraction_of_a_process_needs_two_rounds():
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


def test_a_process_that_does_not_exist_has_no_details():
    assert HostProcesses().look_up(2**22 + 1) is None


def test_a_process_that_is_no_longer_looked_up_is_forgotten():
    processes = HostProcesses()
    processes.look_up(os.getpid())
    processes.end_round()
    processes.end_round()
    assert processes.look_up(os.getpid()).cpu_fraction is None


def test_a_reused_pid_is_a_new_process():
    processes = HostProcesses()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert processes.look_up(child.pid).name
    child.communicate(b"\n")
    processes.end_round()
    assert processes.look_up(child.pid) is None


def test_details_hidden_by_another_user_are_empty(monkeypatch):
    def refuse(_process):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil.Process, "cmdline", refuse)
    found = HostProcesses()
    monkeypatch.setattr(psutil.Process, "username", refuse)
    process = found.look_up(os.getpid())
    assert (process.user, process.command, process.is_own) == ("", "", False)
    assert not HostProcesses().look_up(os.getpid()).is_own


def test_the_cpu_of_a_tree_includes_children_that_work_for_the_process():
    program = (
        "import subprocess, sys; "
        "subprocess.Popen([sys.executable, '-c', 'while True: pass']); print('begun', flush=True); input()"
    )
    root = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    children = []
    try:
        assert root.stdout.readline() == b"begun\n"
        children = psutil.Process(root.pid).children()
        processes = HostProcesses()
        assert processes.look_up(root.pid).tree_cpu_fraction is None
        processes.end_round()
        before = sum(child.cpu_times().user for child in children)
        while sum(child.cpu_times().user for child in children) < before + 0.3:
            pass
        found = processes.look_up(root.pid)
        assert found.tree_cpu_fraction > found.cpu_fraction
        assert found.tree_cpu_fraction > 0.05
    finally:
        for process in (*children, root):
            process.kill()
        root.communicate()


def test_only_processes_that_began_since_are_asked_for_their_parent(monkeypatch):
    asked = []

    class Asked(psutil.Process):
        def __init__(self, pid=None):
            asked.append(pid)
            super().__init__(pid)

    monkeypatch.setattr(psutil, "Process", Asked)
    processes = HostProcesses()
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE) as first:
        assert processes.look_up(os.getpid()).name
        known = set(asked)
        asked.clear()
        assert processes.look_up(first.pid).name
        assert set(asked) <= {first.pid}
        processes.end_round()
        asked.clear()
        with subprocess.Popen(waiting, stdin=subprocess.PIPE) as second:
            assert processes.look_up(os.getpid()).name
            assert second.pid in asked
            assert os.getppid() in known - set(asked)
            second.communicate(b"\n")
        first.communicate(b"\n")
