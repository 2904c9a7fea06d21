"""Containers, WSL and PID namespaces."""

import sys

import pytest

from planner.monitor.host.environment import HostEnvironment, detect_environment


@pytest.mark.skipif(sys.platform != "linux", reason="links as Linux has them")
def test_containers_wsl_and_process_ids_are_recognised(tmp_path, monkeypatch):
    monkeypatch.delenv("container", raising=False)
    monkeypatch.setattr("platform.release", lambda: "6.1.0-generic")
    plain = detect_environment(tmp_path)
    assert (plain.is_container, plain.is_wsl, plain.has_own_pids) == (False, False, False)
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    assert not detect_environment(tmp_path).has_own_pids
    (tmp_path / "proc/self/ns/pid").unlink()
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026532001]")
    (tmp_path / ".dockerenv").touch()
    monkeypatch.setattr("platform.release", lambda: "5.15.90.1-microsoft-standard-WSL2")
    inside = detect_environment(tmp_path)
    assert (inside.is_container, inside.is_wsl, inside.has_own_pids) == (True, True, True)


@pytest.mark.parametrize(("has_own_pids", "is_wsl"), [(True, False), (False, True), (True, True)])
def test_numbers_of_processes_are_those_of_another_system_in_containers_and_under_windows(has_own_pids, is_wsl):
    plain = HostEnvironment("Linux", is_container=False, is_wsl=False, has_own_pids=False)
    assert plain.sees_same_pids
    assert not plain._replace(has_own_pids=has_own_pids, is_wsl=is_wsl).sees_same_pids


def test_elsewhere_process_ids_are_everyones(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert not detect_environment().has_own_pids
