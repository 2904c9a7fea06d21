"""This machine's cards are looked for once, in the background, when the catalog is shown."""

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


def test_the_catalog_is_what_it_looks_for_and_once_is_enough(qtbot, workspace, tasks):
    look = Looked()
    machine = CardDetector(workspace, tasks, look)
    machine.on_tab("memory")
    assert not tasks.busy
    with qtbot.waitSignal(workspace.devices_found):
        machine.on_tab("catalog")
    machine.on_tab("catalog")
    assert (workspace.devices, look.count) == ((CARD,), 1)


def test_what_the_monitor_has_told_is_not_looked_for(workspace, tasks):
    workspace.note_devices((CARD,))
    look = Looked()
    CardDetector(workspace, tasks, look).on_tab("catalog")
    assert (tasks.busy, look.count) == (False, 0)


def test_a_machine_that_cannot_be_looked_at_has_no_cards(qtbot, workspace, tasks):
    CardDetector(workspace, tasks, Looked(PlannerError("no driver"))).on_tab("catalog")
    qtbot.waitUntil(lambda: not tasks.busy)
    assert workspace.devices == ()


def test_no_look_forgets_what_another_found(workspace):
    workspace.note_devices((CARD,))
    workspace.note_devices(())
    assert workspace.devices == (CARD,)


@pytest.mark.oracle
def test_a_look_ends_by_itself():
    assert isinstance(read_machine_devices(), tuple)
