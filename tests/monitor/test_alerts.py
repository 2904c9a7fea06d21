"""Alerts are raised once after the hold time, and again only after the value fell clearly."""

import pytest

from planner.monitor.alerts import AlertKind, AlertWatch
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, Sample, Xid
from planner.monitor.settings import AlertRules
from planner.monitor.supervisor.snapshot import apply_update

GIB = 2**30
CARD = Device("GPU-a", "NVIDIA Test", 0, facts={"memory_total_bytes": Reading(10.0 * GIB)})


class Scene:
    """One card that is watched second by second."""

    def __init__(self, **rules):
        self.watch = AlertWatch(AlertRules(is_on=True, hold_seconds=2, **rules))
        self.latest, self.second = Latest(), 100.0
        self.hear(Inventory("1", devices=(CARD,)))

    def hear(self, update):
        apply_update(self.latest, update)
        return [alert.kind for alert in self.watch.note(update, self.latest)]

    def see(self, processes=None, **readings):
        self.second += 1
        found = {name: value if isinstance(value, Reading) else Reading(value) for name, value in readings.items()}
        return self.hear(Sample(self.second, self.second, {CARD.uuid: found}, processes=processes))


def test_heat_alerts_once_it_lasts_and_again_only_after_cooling():
    scene = Scene(temperature_celsius=80)
    assert [scene.see(temperature_celsius=value) for value in (85, 85)] == [[], []]
    assert scene.see(temperature_celsius=85) == [AlertKind.TEMPERATURE]
    assert [scene.see(temperature_celsius=value) for value in (86, 79, 85, 85, 85)] == [[]] * 5
    assert [scene.see(temperature_celsius=value) for value in (77, 85, 85)] == [[]] * 3
    assert scene.see(temperature_celsius=85) == [AlertKind.TEMPERATURE]


def test_a_short_peak_raises_no_alert():
    scene = Scene(temperature_celsius=80)
    assert [scene.see(temperature_celsius=value) for value in (85, 60, 85, 60, 85)] == [[]] * 5


def test_nearly_full_memory_raises_an_alert():
    scene = Scene(memory_fraction=0.9)
    seen = [scene.see(memory_used_bytes=9.5 * GIB) for _ in range(3)]
    assert seen == [[], [], [AlertKind.MEMORY]]


def test_unknown_values_and_disabled_thresholds_raise_no_alert():
    scene = Scene(temperature_celsius=None, memory_fraction=None)
    assert [scene.see(temperature_celsius=149, memory_used_bytes=10 * GIB) for _ in range(4)] == [[]] * 4
    scene = Scene()
    assert [scene.see(temperature_celsius=missing(Cause.NOT_SUPPORTED)) for _ in range(4)] == [[]] * 4


def test_a_card_idle_for_long_raises_an_alert():
    scene = Scene(idle_minutes=0.05, temperature_celsius=None)
    seen = [scene.see(utilization_fraction=value) for value in (0.5, 0.0, 0.01, 0.0, 0.0)]
    assert seen == [[], [], [], [], [AlertKind.IDLE]]


@pytest.mark.parametrize(("wanted", "told"), [(True, [AlertKind.LOST]), (False, [])])
def test_a_lost_card_raises_one_alert(wanted, told):
    scene = Scene(lost=wanted)
    lost = Inventory("1", devices=(Device("GPU-a", "NVIDIA Test", 0, state="lost"),))
    assert scene.hear(lost) == told
    assert scene.hear(Inventory("2", devices=lost.devices)) == []


@pytest.mark.parametrize(("wanted", "told"), [(True, [AlertKind.PROCESS_ENDED]), (False, [])])
def test_an_ended_process_raises_an_alert_if_enabled(wanted, told):
    scene = Scene(process_ended=wanted)
    running = CardProcess(7, CARD.uuid, "compute", Reading(1.0))
    assert scene.see(processes=(running,)) == []
    assert scene.see() == []
    assert scene.see(processes=()) == told


def test_a_process_on_a_card_that_does_not_answer_has_not_ended():
    scene = Scene(process_ended=True, silent=False)
    assert scene.see(processes=(CardProcess(7, CARD.uuid, "compute", Reading(1.0)),)) == []
    silent = Fault(FaultKind.CARD_NOT_ANSWERING, 0.0, CARD.uuid)
    assert scene.hear(Inventory("1", devices=(CARD,), faults=(silent,))) == []
    assert scene.see(processes=()) == []
    assert scene.hear(Inventory("1", devices=(CARD,))) == []
    assert scene.see(processes=()) == [AlertKind.PROCESS_ENDED]


def test_no_alert_is_raised_while_alerts_are_off():
    watch = AlertWatch(AlertRules(hold_seconds=0, temperature_celsius=50))
    latest = Latest()
    for update in (
        Inventory("1", devices=(CARD,)),
        Sample(1.0, 1.0, {CARD.uuid: {"temperature_celsius": Reading(90)}}),
    ):
        apply_update(latest, update)
        assert watch.note(update, latest) == ()


def test_a_card_that_only_encodes_is_not_idle():
    scene = Scene(idle_minutes=0.05)
    # The encoder of an RTX 2080 Super at work (nvidia_gpu_exporter, internal/captures, MIT), with less of the rest.
    assert [scene.see(utilization_fraction=0.04, encoder_fraction=1.0) for _ in range(5)] == [[]] * 5
    assert [scene.see(utilization_fraction=0.04, encoder_fraction=0.0) for _ in range(4)] == [[]] * 3 + [
        [AlertKind.IDLE]
    ]


def test_a_card_without_readings_raises_no_alert():
    scene = Scene(temperature_celsius=50)
    assert [scene.hear(Sample(second, second)) for second in (200.0, 300.0)] == [[], []]


def test_an_xid_raises_an_alert_once_in_ten_minutes():
    scene = Scene()

    def see(number, seconds=1.0):
        scene.second += seconds
        return scene.hear(Sample(scene.second, scene.second, {CARD.uuid: {}}, xids=(Xid(CARD.uuid, number),)))

    assert [see(79), see(79), see(31)] == [[AlertKind.XID], [], [AlertKind.XID]]
    assert [see(79, 500.0), see(79, 100.0)] == [[], [AlertKind.XID]]
    assert Scene(xid=False).hear(Sample(200.0, 200.0, xids=(Xid(CARD.uuid, 79),))) == []


def test_silence_of_a_card_and_of_a_machine_raises_an_alert_once_whatever_its_reason_becomes():
    def with_faults(*faults):
        return Inventory("1", devices=(CARD,), faults=faults)

    scene = Scene()
    card, gone = Fault(FaultKind.CARD_NOT_ANSWERING, 1.0, CARD.uuid), Fault(FaultKind.CARD_NOT_ANSWERING, 1.0, "GPU-z")
    assert scene.hear(with_faults(card, gone)) == [AlertKind.SILENT]
    assert scene.hear(with_faults(card)) == []
    assert scene.hear(with_faults(Fault(FaultKind.REMOTE_SILENT, 1.0))) == []
    assert scene.hear(with_faults(Fault(FaultKind.UNREACHABLE, 1.0))) == [AlertKind.SILENT]
    assert scene.hear(with_faults(Fault(FaultKind.REFUSED, 1.0))) == []
    assert scene.hear(with_faults()) == []
    assert scene.hear(with_faults(Fault(FaultKind.NOT_ANSWERING, 1.0))) == [AlertKind.SILENT]
    assert Scene(silent=False).hear(with_faults(card)) == []
