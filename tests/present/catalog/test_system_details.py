"""Details of a system, and the power and cooling of cards in one machine."""

from catalog_samples import CARD, DERIVED, RACK, SHEET, card, details

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import FigureNote
from planner.hardware.system import System
from planner.present import format as fmt
from planner.present.catalog.system_details import power_group, system_details
from planner.present.catalog.system_row import (
    system_rows,
)
from planner.present.format import THIN, UNKNOWN

WITHOUT_SOURCE = ("Id in the catalog", "Circuit", "Assumed")


def plain(text):
    return text.replace(THIN, " ")


def test_every_known_figure_has_a_source(rows):
    for row in rows:
        for group in system_details(row):
            for detail in group.details:
                assert detail.text
                assert detail.source or detail.text in (UNKNOWN, "not published") or detail.title in WITHOUT_SOURCE


def test_power_and_cooling_are_those_of_the_whole_machine(by_id):
    groups = {group.title: group for group in system_details(by_id["dgx-h100"])}
    found = [(detail.title, plain(detail.text)) for detail in groups["Power and cooling"].details]
    assert found == [
        ("Circuit", "30 A at 240 V"),
        ("From the wall", "10,200 W"),
        ("Current", "42.5 A"),
        ("Circuits of this kind", "2"),
        ("Heat", "34,802 BTU/h"),
        ("Airflow", "1,604 CFM"),
        ("Airflow", "2,725 m³/h"),
        ("Assumed", "air cooling only"),
    ]
    assert len(system_details(by_id["dgx-station-v100"])) == 3


def test_the_details_of_a_system_include_its_accelerators():
    unknown = System(id="box", name="Box", vendor="ACME", kind="server", provenance=SHEET)
    rows = system_rows(HardwareCatalog(gpus=(CARD,), systems=(RACK, unknown)))
    assert [row.id for row in rows] == ["rack", "box"]
    assert [row.accelerators for row in rows] == ["72 × Card", None]
    assert "72 × card" in rows[0].search_text
    found = details(system_details(rows[0]))
    assert found["Accelerators"].text == "72 × Card"
    assert found["Price (estimate)"].text == "$3,000,000"
    assert found["Total memory"].exact == fmt.exact_bytes(RACK.memory_bytes)
    assert details(system_details(rows[1]))["Price"].text == fmt.NOT_PUBLISHED


def test_a_single_figure_of_a_system_may_have_its_own_source():
    rack = RACK.evolve(max_power_watts=120_000, figure_notes=(FigureNote(field="max_power_watts", provenance=DERIVED),))
    (row,) = system_rows(HardwareCatalog(gpus=(CARD,), systems=(rack,)))
    found = details(system_details(row))
    assert found["Maximum power"].source == found["From the wall"].source == "Sheet"
    assert found["First sold or rented"].source == "Data sheet"


def test_a_build_has_its_power_and_warnings():
    group = power_group(card(board_power_watts=600.0, form_factor="Dual-slot"), 4)
    assert group.title == "Power and cooling of 4 GPUs"
    said = {detail.title: detail for detail in group.details}
    assert said["From the wall"].basis
    assert said["Warning"].text
    unknown = power_group(card(board_power_watts=None), 1)
    assert [detail.title for detail in unknown.details][-1] == "Warning"
