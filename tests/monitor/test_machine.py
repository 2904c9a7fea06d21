"""The machine, its PCI devices and its processes, as the system tells of them."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from planner.monitor.host import usage as host_module
from planner.monitor.host.pci import can_runtime_suspend, find_cards, same_card
from planner.monitor.host.processes import HostProcesses
from planner.monitor.host.surroundings import Surroundings, look_around
from planner.monitor.host.usage import HostReader, cpu_shares
from planner.monitor.readings.reading import Cause


def _device(folder: Path, name: str, **files: str) -> Path:
    place = folder / name
    (place / "power").mkdir(parents=True)
    for file, content in files.items():
        (place / file.replace("__", "/")).write_text(f"{content}\n")
    return place


def test_nvidia_cards_are_found_with_their_state(tmp_path):
    _device(tmp_path, "0000:00:02.0", vendor="0x8086", **{"class": "0x030000"})
    _device(tmp_path, "0000:01:00.1", vendor="0x10de", **{"class": "0x040300"})
    awake = {"vendor": "0x10de", "class": "0x030000", "power__runtime_status": "active", "power__control": "on"}
    asleep = {"vendor": "0x10de", "class": "0x030200", "power__runtime_status": "suspended", "power__control": "auto"}
    first = _device(tmp_path, "0000:01:00.0", **awake)
    second = _device(tmp_path, "0000:02:00.0", **asleep)
    assert find_cards(tmp_path) == {"0000:01:00.0": "active", "0000:02:00.0": "asleep"}
    assert not can_runtime_suspend(first)
    assert can_runtime_suspend(second)


def test_where_the_system_does_not_tell_there_are_none(tmp_path):
    assert find_cards(tmp_path / "nothing") == {}
    _device(tmp_path, "0000:01:00.0", vendor="0x10de")
    assert find_cards(tmp_path) == {}


def test_driver_and_system_write_a_place_differently():
    assert same_card("00000000:0C:00.0", "0000:0c:00.0")
    assert not same_card("00000000:0D:00.0", "0000:0c:00.0")


@pytest.mark.skipif(sys.platform != "linux", reason="links as Linux has them")
def test_containers_wsl_and_process_ids_are_recognised(tmp_path, monkeypatch):
    monkeypatch.delenv("container", raising=False)
    monkeypatch.setattr("platform.release", lambda: "6.1.0-generic")
    plain = look_around(tmp_path)
    assert (plain.is_container, plain.is_wsl, plain.has_own_pids) == (False, False, False)
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    assert not look_around(tmp_path).has_own_pids
    (tmp_path / "proc/self/ns/pid").unlink()
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026532001]")
    (tmp_path / ".dockerenv").touch()
    monkeypatch.setattr("platform.release", lambda: "5.15.90.1-microsoft-standard-WSL2")
    inside = look_around(tmp_path)
    assert (inside.is_container, inside.is_wsl, inside.has_own_pids) == (True, True, True)


@pytest.mark.parametrize(("has_own_pids", "is_wsl"), [(True, False), (False, True), (True, True)])
def test_numbers_of_processes_are_those_of_another_system_in_containers_and_under_windows(has_own_pids, is_wsl):
    plain = Surroundings("Linux", is_container=False, is_wsl=False, has_own_pids=False)
    assert plain.sees_same_pids
    assert not plain._replace(has_own_pids=has_own_pids, is_wsl=is_wsl).sees_same_pids


def test_elsewhere_process_ids_are_everyones(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert not look_around().has_own_pids


def _times(user, idle, **others):
    return {"user": float(user), "idle": float(idle), **{name: float(value) for name, value in others.items()}}


def test_shares_of_the_processors():
    before = [_times(0, 0, iowait=0, guest=0), _times(0, 0, iowait=0, guest=0)]
    after = [_times(5, 5, iowait=0, guest=5), _times(0, 6, iowait=4, guest=0)]
    readings, cores = cpu_shares(before, after)
    # The guest's five seconds are user's seconds too.
    assert readings["cpu_fraction"].value == pytest.approx(5 / 20)
    assert readings["io_wait_fraction"].value == pytest.approx(4 / 20)
    assert cores == (0.5, 0.0)


def test_shares_need_time_and_the_same_processors():
    one = [_times(5, 5)]
    readings, cores = cpu_shares(one, one)
    assert readings["cpu_fraction"].cause is Cause.NOT_YET
    assert cores == (0.0,)
    assert cpu_shares(one, [*one, *one])[0]["cpu_fraction"].cause is Cause.NOT_YET
    readings, _ = cpu_shares([_times(0, 0)], one)
    assert readings["io_wait_fraction"].cause is Cause.NOT_SUPPORTED
    assert cpu_shares([_times(0, 0), _times(9, 9)], [_times(5, 5), _times(9, 9)])[1] == (0.5, 0.0)


def test_the_machine_is_read():
    host = HostReader()
    first = host.read(0.0)
    assert first.readings["memory_used_bytes"].value > 0
    assert first.readings["network_receive_bytes_per_s"].cause is Cause.NOT_YET
    assert "swap_used_bytes" in first.readings
    second = host.read(1.0, slow=False)
    assert second.readings["network_receive_bytes_per_s"].value is not None
    assert "swap_used_bytes" not in second.readings
    assert len(second.cores) == psutil.cpu_count()


def test_a_machine_that_hides_its_disks_and_network_says_so(monkeypatch):
    def fail(**_arguments):
        raise OSError("hidden")

    monkeypatch.setattr(host_module.psutil, "disk_io_counters", lambda **_arguments: None)
    monkeypatch.setattr(host_module.psutil, "net_io_counters", fail)
    readings = HostReader().read(0.0).readings
    assert readings["disk_read_bytes_per_s"].cause is Cause.HIDDEN
    assert readings["network_transmit_bytes_per_s"].cause is Cause.HIDDEN


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
