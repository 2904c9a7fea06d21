"""The cards of this machine are detected once, in the background, when the Catalog tab is shown."""

import pytest

from planner.errors import PlannerError
from planner.gui.app import CardDetector, read_machine_devices
from planner.monitor.readings.inventory import Device

CARD = Device("GPU-1", "NVIDIA GeForce RTX 4090", 0)


class Looked:
    """Counts the looks, each of which finds a card."""

    def __init__(self, error=None):
        self.count = 0
        self.error = error

    def __call__(self):
        self.count += 1
        if self.error is not None:
            raise self.error
        return (CARD,)


def test_cards_are_detected_once_when_the_catalog_is_shown(qtbot, workspace, tasks):
    look = Looked()
    machine = CardDetector(workspace, tasks, look)
    machine.on_tab("memory")
    assert not tasks.busy
    with qtbot.waitSignal(workspace.devices_found):
        machine.on_tab("catalog")
    machine.on_tab("catalog")
    assert (workspace.devices, look.count) == ((CARD,), 1)


def test_the_start_page_too_asks_for_the_cards(qtbot, workspace, tasks):
    with qtbot.waitSignal(workspace.detection_ended):
        CardDetector(workspace, tasks, Looked()).on_tab("start")
    assert (workspace.devices, workspace.detection) == ((CARD,), "done")


def test_cards_known_from_the_monitor_are_not_detected_again(workspace, tasks):
    workspace.note_devices((CARD,))
    look = Looked()
    CardDetector(workspace, tasks, look).on_tab("catalog")
    assert (tasks.busy, look.count) == (False, 0)


def test_a_failed_detection_leaves_no_cards(qtbot, workspace, tasks):
    CardDetector(workspace, tasks, Looked(PlannerError("no driver"))).on_tab("catalog")
    qtbot.waitUntil(lambda: not tasks.busy)
    assert (workspace.devices, workspace.detection) == ((), "failed")


def test_an_empty_detection_keeps_the_known_cards(workspace):
    workspace.note_devices((CARD,))
    workspace.note_devices(())
    assert workspace.devices == (CARD,)


@pytest.mark.oracle
def test_the_devices_of_this_machine_can_be_read():
    assert isinstance(read_machine_devices(), tuple)
