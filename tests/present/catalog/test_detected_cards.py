"""Matching of this machine's cards with the catalog."""

from planner.hardware.catalog import load_hardware
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Reading
from planner.paths import catalog_dir
from planner.present.catalog.detected_cards import NO_CARDS, FoundKind, detect_cards, found_kinds
from planner.present.catalog.gpu_row import GpuRow
from planner.units import GIB

HARDWARE = load_hardware(catalog_dir())


def card(name: str, gib: float | None = None, index: int = 0, parent: str | None = None) -> Device:
    facts = {"memory_total_bytes": Reading(gib * GIB)} if gib else {}
    return Device(f"GPU-{index}", name, index, mig_parent=parent, facts=facts)


def test_cards_are_matched_by_name_and_memory() -> None:
    here = detect_cards(HARDWARE, [card("NVIDIA GeForce RTX 4090", 23.99, number) for number in range(2)])
    assert here.words == {"rtx-4090": "2 here"}
    assert here.sentence == "This machine: 2 × GeForce RTX 4090."
    assert here.details == ""


def test_a_name_that_matches_several_cards_lists_all_of_them() -> None:
    here = detect_cards(HARDWARE, [card("NVIDIA GeForce RTX 3060")])
    assert set(here.words.values()) == {"Perhaps here"}
    assert len(here.words) > 1
    assert "one of rtx-3060" in here.sentence


def test_an_unknown_card_shows_what_the_driver_reports() -> None:
    here = detect_cards(HARDWARE, [card("NVIDIA Mystery 9000", 24, 0), card("NVIDIA Mystery 8000", None, 1)])
    assert here.words == {}
    assert "NVIDIA Mystery 9000, 24.0\u2009GiB, not in the catalog under this name and memory" in here.sentence
    assert "NVIDIA Mystery 8000, not in" in here.sentence
    assert here.details == "NVIDIA Mystery 9000\nmemory_total_bytes: 25,769,803,776\n\nNVIDIA Mystery 8000"


def test_instances_are_not_counted_as_cards() -> None:
    assert detect_cards(HARDWARE, [card("NVIDIA A100 MIG 1g.5gb", 5, parent="GPU-9")]) is NO_CARDS
    assert detect_cards(HARDWARE, []) is NO_CARDS


def test_the_name_marks_detected_and_own_cards() -> None:
    gpu = HARDWARE.gpu("rtx-4090")
    assert GpuRow(gpu).marked_name == "GeForce RTX 4090"
    assert GpuRow(gpu, here="2 here").marked_name == "2 here: GeForce RTX 4090"
    assert GpuRow(gpu.evolve(own=True), here="Here").marked_name == "Here, yours: GeForce RTX 4090"
    assert GpuRow(gpu.evolve(own=True)).marked_name == "Yours: GeForce RTX 4090"


def test_kinds_are_counted_the_most_numerous_first() -> None:
    found = [card("NVIDIA Unheard Of"), card("NVIDIA GeForce RTX 4090", 24), card("NVIDIA GeForce RTX 4090", 24, 1)]
    instance = card("NVIDIA GeForce RTX 4090", 12, parent="GPU-1")
    kinds = found_kinds(HARDWARE, [*found, instance])
    assert kinds == (FoundKind("rtx-4090", "GeForce RTX 4090", 2), FoundKind(None, "NVIDIA Unheard Of", 1))
    assert [kind.text for kind in kinds] == ["2 × GeForce RTX 4090", "NVIDIA Unheard Of"]
