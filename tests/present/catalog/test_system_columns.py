"""Table columns of systems."""

from datetime import date

from catalog_samples import CARD, RACK, SHEET

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.system import System
from planner.memory.fit import CardFit
from planner.plan.catalog import load_catalog
from planner.plan.placement import SystemFit
from planner.plan.prices import rents_by_system, rents_of, system_price_fields
from planner.present import format as fmt
from planner.present.catalog.records import system_fields
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_details import system_details
from planner.present.catalog.system_row import (
    system_rows,
)
from planner.present.format import THIN, UNKNOWN
from planner.units import GIB

COLUMNS = {column.key: column for column in SYSTEM_COLUMNS}


def plain(text):
    return text.replace(THIN, " ")


def test_no_cell_of_any_system_is_empty(rows):
    for row in rows:
        for column in SYSTEM_COLUMNS:
            assert column.text(row)
            assert "None" not in column.text(row)
            if column.tooltip:
                assert isinstance(column.tooltip(row), str)


def test_the_second_column_is_the_plans_verdict():
    assert SYSTEM_COLUMNS[1].key == "fits"
    assert SYSTEM_COLUMNS[1].shown


def test_free_memory_is_that_of_each_of_several_accelerators():
    single = System(id="box", name="Box", vendor="ACME", kind="server", gpu_id="card", provenance=SHEET)
    fits = dict.fromkeys(("rack", "box"), SystemFit(CardFit("card", "fits", 74 * GIB, 80 * GIB, 6 * GIB, ())))
    tooltips = [
        plain(COLUMNS["fits"].tooltip(row))
        for row in system_rows(HardwareCatalog(gpus=(CARD,), systems=(RACK, single)), fits)
    ]
    assert tooltips == [
        "6.00 GiB free on each of 72, shared as in the plan or by its software",
        "6.00 GiB free",
    ]


def test_figures_of_one_accelerator_have_their_source(rows, by_id):
    row, unknown = by_id["dgx-h100"], by_id["dgx-station-v100"]
    assert [COLUMNS[key].text(row) for key in ("cards", "memory_each", "link")] == ["8", "80", "900"]
    assert plain(COLUMNS["memory_each"].tooltip(row)).startswith("85,899,345,920 B\nderived: ")
    assert [COLUMNS[key].text(unknown) for key in ("cards", "memory_each", "link")] == ["4", UNKNOWN, UNKNOWN]
    assert (COLUMNS["memory_each"].tooltip(unknown), COLUMNS["link"].tooltip(unknown)) == ("", "")
    assert [COLUMNS[key].text(row) for key in ("kind", "topology", "architecture")] == ["server", "switch", "Hopper"]
    found = {detail.title: detail for group in system_details(row) for detail in group.details}
    assert plain(found["Links per accelerator"].text) == "900 GB/s, sum of both directions"
    assert found["Topology"].source
    assert "Links per accelerator" not in {each.title for group in system_details(unknown) for each in group.details}


def test_rents_are_for_the_whole_machine_and_have_a_month():
    catalog = load_catalog()
    day = date(2026, 11, 22)
    rents = rents_by_system(catalog, day)
    rows = {row.id: row for row in system_rows(catalog.hardware, rents=rents)}
    for name, row in rows.items():
        assert rents[name] == rents_of(row.system, catalog, day)
    known, unknown = rows["dgx-h100"], rows["gb300-nvl72"]
    low = known.on_demand.low.price_usd
    assert COLUMNS["rent"].value(known) == low == system_price_fields(rents)["dgx-h100"]["rent"]
    assert COLUMNS["rent"].tooltip(known).startswith("Cheapest: ")
    assert system_price_fields(rents)["gb300-nvl72"] == {}
    assert COLUMNS["rent"].text(unknown) == UNKNOWN
    assert (
        COLUMNS["rent"].tooltip(unknown) == "The catalog has no rental offer for a machine with this many accelerators."
    )
    told, none = system_fields(known), system_fields(unknown)
    assert (told["rent_usd_per_hour"], none["rent_usd_per_hour"], none["rent_source"]) == (low, None, None)
    assert told["memory_bytes_each"] == 80 * GIB
    assert told["links_bytes_per_s_each"] == 900e9


def test_every_system_column_reads_a_bare_and_a_full_row():
    unknown = System(id="box", name="Box", vendor="ACME", kind="server", gpu_id="card", provenance=SHEET)
    rows = system_rows(HardwareCatalog(gpus=(CARD,), systems=(RACK, unknown)))
    for row in rows:
        for column in SYSTEM_COLUMNS:
            assert column.text(row)
            assert column.value(row) is None or column.value(row) != ""
            assert column.tooltip is None or column.tooltip(row) or column.key == "fits"
    columns = {column.key: column for column in SYSTEM_COLUMNS}
    assert columns["price"].tooltip(rows[0]).startswith("estimate price\n2025\n")
    assert columns["accelerators"].text(rows[1]) == "Card"
    assert columns["year"].text(rows[1]) == fmt.UNKNOWN
