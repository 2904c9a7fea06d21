"""Reopening of sessions, and releasing cards so that they can sleep."""

from time import monotonic, sleep

import pytest
from cards_kit import pci_card
from fake_nvml_kit import LONGEST_SECONDS, A, B, card

from planner.monitor.host.environment import HostEnvironment
from planner.monitor.host.sleep import nvidia_sleep_policy
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.sample import Xid
from planner.monitor.sampler.nvidia_watch import NvidiaWatch
from planner.monitor.settings import BackOff

PLAIN = HostEnvironment("Linux", is_container=False, is_wsl=False, has_own_pids=False)


@pytest.fixture
def watch(near_nvml, tmp_path):
    """Return a way to watch cards, which are let go in the end."""
    made = []

    def make(surroundings=PLAIN, first_try=0.0, hang_seconds=10.0):
        sleep = nvidia_sleep_policy(tmp_path / "pci")
        made.append(NvidiaWatch(surroundings, sleep, first_try, BackOff(1.0, 60.0), BackOff(10.0, 300.0), hang_seconds))
        return made[-1]

    yield make
    for one in made:
        one.close()


def wait_until(holds):
    """Wait for a thread that the driver lets go, for as long as it may take on a busy machine."""
    until = monotonic() + LONGEST_SECONDS
    while not holds():
        assert monotonic() < until
        sleep(0.001)


def sweep(watch, now, *, slow=True, processes=True):
    return watch.sweep(now, 1000.0 + now, slow=slow, processes=processes, budget_seconds=10.0)


def kinds(watch):
    return {fault.kind for fault in watch.faults.current}


def test_the_driver_is_not_opened_before_its_time(watch, near_nvml):
    near_nvml.say(card(0, A))
    cards = watch(first_try=5.0)
    assert sweep(cards, 4.9).devices == {}
    assert near_nvml.calls() == []
    assert set(sweep(cards, 5.0).devices) == {A}


def test_a_card_that_hangs_is_left_alone_until_it_answers_while_the_others_are_read(watch, near_nvml):
    healthy = card(0, A), card(1, B)
    near_nvml.say(*healthy)
    cards = watch(hang_seconds=1.0)
    sweep(cards, 0.0)
    near_nvml.say(card(0, A) | {"0.stall.nvmlDeviceGetPowerUsage": 1}, card(1, B), events=("0 8 79",))
    assert sweep(cards, 1.0).devices == {}
    (fault,) = cards.faults.current
    assert (fault.kind, fault.uuid, fault.detail) == (FaultKind.CARD_NOT_ANSWERING, A, "nvmlDeviceGetPowerUsage")
    asked = len([call for call in near_nvml.calls() if call.endswith(" 0")])
    others = sweep(cards, 2.0)
    assert set(others.devices) == {B}
    assert others.devices[B]["power_limit_watts"].value == 450
    assert others.xids == (Xid(A, 79),)
    assert len([call for call in near_nvml.calls() if call.endswith(" 0")]) == asked
    near_nvml.say(*healthy)
    wait_until(lambda: not cards.nvml.hanging)
    # It is not trusted at once.
    assert set(sweep(cards, 3.0).devices) == {B}
    assert cards.faults.current == (fault,)
    returned = sweep(cards, 4.0, slow=False).devices
    assert set(returned) == {A, B}
    assert returned[A]["power_limit_watts"].value == 450
    assert kinds(cards) == set()


def test_a_driver_that_answers_for_no_card_is_a_fault_of_the_driver(watch, near_nvml):
    near_nvml.say(card(0, A), card(1, B))
    cards = watch(hang_seconds=1.0)
    sweep(cards, 0.0)
    stall = "stall.nvmlDeviceGetPowerUsage"
    near_nvml.say(card(0, A) | {f"0.{stall}": 1}, card(1, B) | {f"1.{stall}": 1})
    sweep(cards, 1.0)
    assert kinds(cards) == {FaultKind.CARD_NOT_ANSWERING}
    sweep(cards, 2.0)
    (fault,) = cards.faults.current
    assert (fault.kind, fault.uuid) == (FaultKind.NOT_ANSWERING, None)
    assert fault.detail == f"nvmlDeviceGetPowerUsage of {A}"
    near_nvml.say(card(0, A), card(1, B))
    wait_until(lambda: not cards.nvml.hanging)
    sweep(cards, 3.0)
    assert set(sweep(cards, 4.0).devices) == {A, B}
    assert kinds(cards) == set()


def test_a_call_for_all_cards_that_hangs_stops_all_readings(watch, near_nvml):
    near_nvml.say(card(0, A))
    cards = watch(hang_seconds=1.0)
    sweep(cards, 0.0)
    near_nvml.say(card(0, A), stall__nvmlDeviceGetCount_v2=1)
    assert sweep(cards, 1.0).devices == {}
    assert [fault.detail for fault in cards.faults.current] == ["nvmlDeviceGetCount"]
    asked = len(near_nvml.calls())
    assert sweep(cards, 2.0).devices == {}
    assert len(near_nvml.calls()) == asked
    near_nvml.say(card(0, A))
    wait_until(lambda: not cards.nvml.hanging)


def test_a_driver_that_hangs_is_let_go_by_the_end_of_the_process(watch, near_nvml):
    near_nvml.say(card(0, A))
    cards = watch(hang_seconds=1.0)
    sweep(cards, 0.0)
    near_nvml.say(card(0, A) | {"0.stall.nvmlDeviceGetPowerUsage": 1})
    sweep(cards, 1.0)
    cards.release(1001.0)
    assert cards.must_restart
    assert "nvmlShutdown " not in near_nvml.calls()
    near_nvml.say(card(0, A))
    wait_until(lambda: not cards.nvml.hanging)
    cards.nvml.call("nvmlShutdown", "")


def test_opening_is_retried_after_growing_pauses(watch, near_nvml):
    near_nvml.say(card(0, A), error__nvmlInitWithFlags=9)
    cards = watch()
    for now in (0.0, 0.5, 1.0, 2.5, 3.0):
        sweep(cards, now)
    assert near_nvml.calls().count("nvmlInitWithFlags ") == 3
    assert kinds(cards) == {FaultKind.NO_DRIVER}
    near_nvml.say(card(0, A), error__nvmlInitWithFlags=4)
    sweep(cards, 7.0)
    assert kinds(cards) == {FaultKind.NO_PERMISSION}


def test_only_an_opened_sampler_restarts_for_a_new_library(watch, near_nvml):
    near_nvml.say(card(0, A), error__nvmlInitWithFlags=18)
    cards = watch()
    sweep(cards, 0.0)
    assert not cards.must_restart
    near_nvml.say(card(0, A))
    sweep(cards, 1.0)
    near_nvml.say(card(0, A) | {"0.error.*": 1}, error__nvmlInitWithFlags=18)
    sweep(cards, 2.0)
    assert kinds(cards) == set()
    sweep(cards, 2.1)
    assert cards.must_restart
    assert kinds(cards) == {FaultKind.MISMATCH}


def test_a_reset_is_reported_for_some_time(watch, near_nvml):
    near_nvml.say(card(0, A))
    cards = watch()
    sweep(cards, 0.0)
    near_nvml.say(card(0, A) | {"0.error.nvmlDeviceGetMemoryInfo_v2": "1 0"})
    sweep(cards, 1.0)
    assert set(sweep(cards, 2.0).devices) == {A}
    assert kinds(cards) == {FaultKind.DRIVER_RESET}
    sweep(cards, 62.0)
    assert kinds(cards) == set()


def test_a_session_that_ends_during_opening_is_retried(watch, near_nvml):
    near_nvml.say(card(0, A) | {"0.error.nvmlDeviceGetEccMode": 1})
    cards = watch()
    assert sweep(cards, 0.0).devices == {}
    assert kinds(cards) == {FaultKind.DRIVER_ERROR}
    near_nvml.say(card(0, A))
    assert set(sweep(cards, 1.0).devices) == {A}
    assert kinds(cards) == set()


def test_a_driver_that_disappears_during_reopening_is_reported(watch, near_nvml):
    near_nvml.say(card(0, A))
    cards = watch()
    sweep(cards, 0.0)
    near_nvml.say(card(0, A), card(1, B), error__nvmlInitWithFlags=9)
    assert sweep(cards, 1.0).devices == {}
    assert kinds(cards) == {FaultKind.NO_DRIVER}


def test_lost_cards_are_searched_after_growing_pauses(watch, near_nvml):
    gone = {"0.error.*": 15}
    near_nvml.say(card(0, A), card(1, B))
    cards = watch()
    sweep(cards, 0.0)
    near_nvml.say(card(0, A) | gone, card(1, B))
    opened = []
    for now in range(1, 60):
        sweep(cards, float(now))
        if near_nvml.calls().count("nvmlInitWithFlags ") > len(opened) + 1:
            opened.append(now)
    assert opened == [11, 31]
    near_nvml.say(card(0, A), card(1, B))
    assert set(sweep(cards, 80.0).devices) == {A, B}
    sweep(cards, 150.0)
    near_nvml.say(card(0, A) | gone, card(1, B))
    sweep(cards, 151.0)
    before = near_nvml.calls().count("nvmlInitWithFlags ")
    sweep(cards, 160.9)
    assert near_nvml.calls().count("nvmlInitWithFlags ") == before
    sweep(cards, 161.0)
    assert near_nvml.calls().count("nvmlInitWithFlags ") == before + 1


def test_wsl_and_containers_are_reported_as_faults(watch, near_nvml):
    near_nvml.say(card(0, A))
    cards = watch(HostEnvironment("Linux", is_container=True, is_wsl=True, has_own_pids=True))
    sweep(cards, 0.0)
    assert kinds(cards) == {FaultKind.FOREIGN_PIDS, FaultKind.WSL}


def test_implausible_processes_are_reported_while_listed(watch, near_nvml):
    near_nvml.say(card(0, A) | {"0.process.compute": f"1:{2**60}"})
    cards = watch()
    sweep(cards, 0.0)
    assert kinds(cards) == {FaultKind.UNRELIABLE_PROCESSES}
    near_nvml.say(card(0, A))
    sweep(cards, 1.0, processes=False)
    assert kinds(cards) == {FaultKind.UNRELIABLE_PROCESSES}
    sweep(cards, 2.0)
    assert kinds(cards) == set()


def test_implausible_values_are_reported_until_read_again(watch, near_nvml):
    near_nvml.say(card(0, A, fan=900, temperature__0=900))
    cards = watch()
    sweep(cards, 0.0)
    assert [fault.detail for fault in cards.faults.current] == ["fan_fraction, temperature_celsius"]
    near_nvml.say(card(0, A))
    sweep(cards, 1.0, slow=False)
    assert [(fault.since_seconds, fault.detail) for fault in cards.faults.current] == [(1000.0, "fan_fraction")]
    sweep(cards, 2.0)
    assert kinds(cards) == set()


def test_a_name_that_became_valid_text_is_no_longer_reported(watch, near_nvml):
    near_nvml.say(card(0, A, name="\\xf8"))
    cards = watch()
    sweep(cards, 0.0)
    assert kinds(cards) == {FaultKind.BAD_NAME}
    near_nvml.say(card(0, A), card(1, B))
    sweep(cards, 1.0)
    assert kinds(cards) == set()


def test_added_instances_are_found_and_removed_instances_dropped(watch, near_nvml):
    parts = card(0, A, mig=1, mig_devices=1)
    near_nvml.say(parts)
    cards = watch()
    sweep(cards, 0.0)
    near_nvml.say(parts | {"0:0.uuid": "MIG-1", "0:0.gpu_instance": 1, "0:0.compute_instance": 0})
    assert set(sweep(cards, 1.0).devices) == {A, "MIG-1"}
    near_nvml.say(parts)
    assert set(sweep(cards, 2.0).devices) == {A}
    assert [device.uuid for device in cards.inventory().devices] == [A]
    assert kinds(cards) == set()


def test_a_sleeping_card_is_listed_but_not_queried(watch, near_nvml, tmp_path):
    pci_card(tmp_path / "pci", "suspended")
    near_nvml.say(card(0, A))
    cards = watch()
    sweep(cards, 0.0)
    assert near_nvml.calls() == []
    assert [(device.uuid, device.state) for device in cards.inventory().devices] == [("pci-0000:01:00.0", "asleep")]
    pci_card(tmp_path / "pci", "active")
    sweep(cards, 1.0)
    assert [(device.uuid, device.state) for device in cards.inventory().devices] == [(A, "running")]
    assert kinds(cards) == set()


def test_an_idle_card_is_released_to_sleep_and_reopened_when_used(watch, near_nvml, tmp_path):
    pci_card(tmp_path / "pci", "active")
    near_nvml.say(card(0, A, utilization=0))
    cards = watch()
    for now in range(10):
        assert set(sweep(cards, float(now)).devices) == {A}
    sweep(cards, 10.0)
    assert near_nvml.calls()[-1] == "nvmlShutdown "
    assert kinds(cards) == {FaultKind.ASLEEP}
    assert cards.inventory().devices[0].state == "asleep"
    assert sweep(cards, 12.0).devices == {}
    pci_card(tmp_path / "pci", "suspended")
    assert sweep(cards, 18.0).devices == {}
    pci_card(tmp_path / "pci", "active")
    assert set(sweep(cards, 19.0).devices) == {A}
    assert cards.inventory().devices[0].state == "running"


@pytest.mark.parametrize(("control", "use"), [("on", 0), ("auto", 50)])
def test_a_card_in_use_or_without_suspend_is_not_released(watch, near_nvml, tmp_path, control, use):
    pci_card(tmp_path / "pci", "active", control)
    near_nvml.say(card(0, A, utilization=use))
    cards = watch()
    for now in range(0, 60, 5):
        assert set(sweep(cards, float(now)).devices) == {A}


def test_a_card_with_a_process_is_not_released(watch, near_nvml, tmp_path):
    pci_card(tmp_path / "pci", "active")
    near_nvml.say(card(0, A, utilization=0) | {"0.process.compute": "1:100"})
    cards = watch()
    for now in range(0, 60, 5):
        assert set(sweep(cards, float(now)).devices) == {A}
