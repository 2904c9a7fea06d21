"""The cards in this machine stay on top of the catalog's table."""

from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Reading
from planner.units import GIB


def card(name, gib, index=0):
    return Device(f"GPU-{index}", name, index, facts={"memory_total_bytes": Reading(gib * GIB)})


def names(tab):
    return [row.id for row in tab.gpus.model.records]


def test_cards_of_this_machine_stay_on_top_in_every_sort_order(tab, workspace):
    assert tab.gpus.here.isHidden()
    workspace.note_devices((card("NVIDIA GeForce RTX 3090", 24), card("Tesla T4", 15, 1)))
    assert set(names(tab)[:2]) == {"rtx-3090", "tesla-t4"}
    tab.gpus.table.sort_by("memory")
    assert names(tab)[:2] == ["tesla-t4", "rtx-3090"]
    tab.gpus.table.sort_by("memory", descending=True)
    assert names(tab)[:2] == ["rtx-3090", "tesla-t4"]
    assert tab.gpus.model.texts(0)[0] == "Here: GeForce RTX 3090"
    assert tab.gpus.here.text() == "This machine: GeForce RTX 3090; Tesla T4."


def test_a_filter_hides_cards_of_this_machine_too(tab, workspace):
    workspace.note_devices((card("NVIDIA GeForce RTX 3090", 24),))
    tab.gpus.search("h100")
    assert "rtx-3090" not in names(tab)


def test_an_unknown_card_shows_what_the_driver_knows(tab, workspace):
    workspace.note_devices((card("NVIDIA Mystery 9000", 24),))
    assert "NVIDIA Mystery 9000, 24.0\u2009GiB, not in the catalog" in tab.gpus.here.text()
    assert "memory_total_bytes: 25,769,803,776" in tab.gpus.here.toolTip()
