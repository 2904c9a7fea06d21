"""Systems are filtered by facets, ranges and search words, as accelerators are."""

import csv
import io
import json

import pytest
from each_record import for_each
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QCheckBox, QLineEdit, QToolButton, QWidget

from planner.cli.main import main
from planner.gui.catalog.facets import RangeSlider
from planner.gui.catalog.filters import conditions
from planner.gui.catalog.system_page import SYSTEMS, SystemFilter
from planner.hardware.query import SystemQuery, select
from planner.present import format as fmt


@pytest.fixture
def tab(make_tab, qtbot, tasks):
    tab = make_tab(on_systems=True)
    qtbot.waitUntil(lambda: not tasks.busy and any(row.on_demand for row in tab.systems.model.all_records))
    return tab


@pytest.fixture
def page(tab):
    return tab.systems


def shown(page):
    return [row.id for row in page.model.records]


def box(page, facet, words):
    return next(each for each in page.facets._groups[facet].findChildren(QCheckBox) if each.text() == words)


def chips(page):
    return page.chips.findChildren(QToolButton)


def test_boxes_are_ticked_by_mouse_and_counts_follow(page, qtbot):
    numbers = page.facets._groups["kind"]._numbers
    assert numbers["server"].text() == "12"
    ticked = box(page, "vendor", "AWS")
    QTest.mouseClick(ticked, Qt.MouseButton.LeftButton, pos=QPoint(8, ticked.height() // 2))
    assert {row.system.vendor for row in page.model.records} == {"AWS"}
    qtbot.waitUntil(lambda: numbers["server"].text() == "0")
    assert numbers["cloud instance"].text() == "3"
    assert page.facets._groups["vendor"]._numbers["NVIDIA"].text() == "28"


def test_boxes_are_ticked_and_chips_lifted_by_keyboard(page, tab):
    rack = box(page, "kind", "rack")
    rack.setFocus()
    QTest.keyClick(rack, Qt.Key.Key_Space)
    unknown = box(page, "topology", "unknown")
    unknown.setFocus()
    QTest.keyClick(unknown, Qt.Key.Key_Space)
    assert shown(page) == ["amd-helios-72", "trn2-ultraserver", "trn3-ultraserver"]
    assert [chip.text() for chip in chips(page)] == ["rack", "Topology unknown"]
    QTest.keyClick(chips(page)[1], Qt.Key.Key_Space)
    assert len(shown(page)) == 8
    assert tab.bar.count.text() == "8 of 54"
    tab.clear_filters()
    assert len(shown(page)) == 54


def test_a_range_is_dragged_and_typed(page):
    ranged = page.facets._ranges["memory"]
    slider = ranged.findChild(RangeSlider)
    middle = QPoint(slider.width() // 2, slider.height() // 2)
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(4, middle.y()))
    QTest.mouseMove(slider, middle)
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=middle)
    low = ranged.bounds[0]
    assert low > 60
    assert all(row.system.memory_bytes >= low * 2**30 for row in page.model.records)
    page.facets.clear()
    edit = page.facets._ranges["power"].findChildren(QLineEdit)[1]
    edit.setFocus()
    QTest.keyClicks(edit, "6.5")
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert page.model.records
    assert all(row.system.max_power_watts <= 6_500 for row in page.model.records)
    assert [chip.text() for chip in chips(page)] == ["Power up to 6.5\u2009kW"]


def test_bounds_are_typed_into_the_search_in_any_unit(tab, page):
    assert tab.bar.search.placeholderText().endswith("e.g. at least 600 GiB under 12 kW")
    tab.focus_search()
    QTest.keyClicks(tab.bar.search, "dgx system with at least 1 TiB under 12000 W")
    assert shown(page) == ["dgx-h200"]
    assert [chip.text() for chip in chips(page)] == ["Memory from 1,024\u2009GiB", "Power up to 12\u2009kW"]
    QTest.keyClick(chips(page)[0], Qt.Key.Key_Space)
    assert tab.bar.search.text() == "dgx system with under 12000 W"
    QTest.keyClick(tab.bar.search, Qt.Key.Key_Escape)
    assert len(shown(page)) == 54


def test_list_prices_are_told_from_those_of_shops(page):
    page.facets._sections["price_kind"].set_open(True)
    listed = box(page, "price_kind", "list price")
    listed.setFocus()
    QTest.keyClick(listed, Qt.Key.Key_Space)
    assert {row.system.price_kind for row in page.model.records} == {"list"}
    assert [chip.text() for chip in chips(page)] == ["list price"]


def test_rents_are_narrowed_once_they_are_read(page):
    page.narrow(page.filter.with_bounds("rent", None, 30.0))
    assert "dgx-h100" in shown(page)
    assert all(row.on_demand.low.price_usd <= 30 for row in page.model.records)


def test_only_what_fits_and_what_is_sure_is_left(page):
    for field in ("only_fitting", "confirmed", "released"):
        page.facets._toggles[field].click()
    assert page.facets._toggles["only_fitting"].text() == "&Only what fits"
    assert page.model.records
    for row in page.model.records:
        assert row.verdict in ("fits", "tight")
        assert row.provenance.certainty not in ("single-source", "conflicting")
        assert not row.preliminary


def test_a_filter_by_rent_waits_for_the_prices(page, monkeypatch):
    monkeypatch.setattr(page.lookups, "prices", None)
    page.narrow(page.filter.with_bounds("rent", None, 1.0))
    assert page.empty._words.text() == "Rental prices are being read…"
    assert page.empty._button.isHidden()
    monkeypatch.undo()
    page.show_rows()
    assert "no system is left" in page.empty._words.text()
    assert not page.empty._button.isHidden()


def test_nothing_left_names_what_removed_the_last_and_lifts_it(tab, page):
    page.narrow(page.filter.with_query(kinds=("pod",)))
    page.narrow(page.filter.with_bounds("price", None, 1_000.0), "price")
    assert page.results.currentWidget() is page.empty
    assert page.empty._words.text() == "With “Price up to $1,000”, no system is left. Without it, there are 9 systems."
    QTest.mouseClick(page.empty._button, Qt.MouseButton.LeftButton)
    assert len(shown(page)) == 9


def test_filters_of_systems_are_saved_apart_from_those_of_cards(tab, page, workspace):
    wanted = SystemFilter(confirmed=True).with_bounds("cards", 8, 8).with_query(topologies=("switch", None))
    page.narrow(wanted)
    tab.saved.save("eight")
    page.facets.clear()
    tab.saved.fill()
    assert tab.saved.actions()[0].text() == "eight"
    tab.saved.apply("eight")
    assert page.filter == wanted
    tab.swap_page()
    assert tab.saved.names == ()
    tab.apply_filter(wanted)
    assert tab.page is page
    assert workspace.settings.current.catalog.filters == {}
    tab.saved.delete("eight")
    assert tab.saved.names == ()


def test_sections_are_remembered_apart_from_those_of_cards(tab, page, workspace):
    page.facets._sections["memory"].set_open(False)
    page.facets._sections["memory"].toggled.emit(False)
    closed = workspace.settings.current.closed_facets
    assert "systems-memory" in closed
    assert "memory" not in closed
    assert "street" in closed


def test_widths_of_other_panes_than_there_are_now_are_left_aside(make_tab, workspace):
    workspace.settings.update(splitters={"catalog-systems": (852, 278)})
    made = make_tab()
    made.bar.pages.button(1).click()
    assert made.systems.splitter.sizes()[0] < 300


def test_what_is_shown_is_copied_and_saved(tab, page, tmp_path):
    page.narrow(page.filter.with_query(kinds=("rack",)))
    tab._export_menu.fill()
    by_name = {action.text(): action for action in tab._export_menu.actions()}
    by_name["Copy as &CSV"].trigger()
    rows = list(csv.DictReader(io.StringIO(QGuiApplication.clipboard().text())))
    assert [row["id"] for row in rows] == shown(page)
    assert all(row["source"] and row["kind"] == "rack" for row in rows)
    by_name["Copy as &JSON"].trigger()
    assert [record["id"] for record in json.loads(QGuiApplication.clipboard().text())] == shown(page)
    by_name["Copy as &table"].trigger()
    assert len(QGuiApplication.clipboard().text().splitlines()) == 9
    tab.export_to(tmp_path / "systems.json")
    assert len(json.loads((tmp_path / "systems.json").read_text(encoding="utf-8"))) == 8


@for_each(
    "case",
    [
        ({"memory": (600, None), "power": (None, 12)}, {}, "memory_gib >= 600 and power <= 12000"),
        ({}, {"topologies": ("switch",), "vendors": ("NVIDIA",)}, 'topology == "switch" and vendor == "NVIDIA"'),
        ({"link": (900, None)}, {"kinds": ("server",)}, 'link >= 900 and kind == "server"'),
        ({"bf16": (10, None), "cards": (None, 16)}, {}, "bf16_dense >= 10000 and cards <= 16"),
        ({"bandwidth": (None, 30)}, {"architectures": ("Hopper",)}, 'bandwidth <= 30000 and architecture == "Hopper"'),
        ({"memory_each": (80, 141)}, {}, "memory_each_gib >= 80 and memory_each_gib <= 141"),
        ({"year": (2024, None), "price": (None, 1e6)}, {}, "price <= 1000000 and year >= 2024"),
        ({"rent": (None, 30)}, {}, "rent <= 30"),
    ],
)
def test_the_shell_finds_what_the_window_shows(page, case, capsys):
    bounds, chosen, words = case
    wanted = SystemFilter().with_query(**chosen)
    for key, (low, high) in bounds.items():
        wanted = wanted.with_bounds(key, low, high)
    page.table.sort_by("memory", descending=True)
    page.narrow(wanted)
    assert main(["gpus", "--systems", "--where", words, "--sort", "-memory_gib", "--json"]) == 0
    found = [record["id"] for record in json.loads(capsys.readouterr().out)]
    assert found
    assert sorted(found) == sorted(shown(page))
    assert main(["gpus", "--systems", "--where", words, "--csv"]) == 0
    exported = {row["id"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert exported.keys() == set(found)


def test_every_range_narrows_and_is_named(page):
    for key in SYSTEMS.ranges:
        current = SystemFilter().with_bounds(key, 0, None)
        known = {row.id for row in page.model.all_records if page.facets._kind.columns[key].value(row) is not None}
        assert current.passing(page.model.all_records) == known
        (condition,) = conditions(current)
        assert condition.words.startswith(SYSTEMS.columns[key].title)
        assert condition.lifted.is_empty


def test_the_search_by_name_finds_what_a_query_finds(page):
    rows = page.model.all_records
    for text in ("", "dgx", "workstation h", "google v5", "nothing like it"):
        found = {row.id for row in select(rows, SystemQuery(text=text))}
        assert page._names.ids_containing(text) == found


def test_everything_that_takes_the_keyboard_has_a_name_and_nothing_is_cut_off(tab, page):
    for widget in tab.findChildren(QWidget):
        if widget.isVisible() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            assert widget.accessibleName() or (isinstance(widget, QAbstractButton) and widget.text()), widget
    assert page.facets.widget().minimumSizeHint().width() <= page.facets.viewport().width()
    assert tab.minimumSizeHint().width() <= 1160


def test_a_price_in_a_sentence_says_what_it_is(tab, qtbot):
    qtbot.waitUntil(lambda: any(row.buying for row in tab.gpus.model.all_records), timeout=60_000)
    prices = [row for row in tab.gpus.model.all_records if row.buying]
    listed = next(row for row in prices if row.buying.certainty == "assumed")
    asked = next(row for row in prices if row.buying.certainty != "assumed")
    assert tab.gpus.price_phrase(listed).endswith(" at launch")
    assert tab.gpus.price_phrase(asked).startswith("$")
    assert "launch" not in tab.gpus.price_phrase(asked)
    each = tab.gpus.price_phrase(asked)
    tab.workspace.apply("count", count=2)
    assert tab.gpus.price_phrase(asked) == f"2 for {fmt.rounded_money(2 * asked.buying.value)} at {each}"
    assert tab.gpus.price_phrase(next(row for row in tab.gpus.model.all_records if not row.buying)) == ""
    machine = next(row for row in tab.systems.model.all_records if tab.systems.name_and_price(row)[1])
    assert tab.systems.price_phrase(machine) == fmt.money(tab.systems.name_and_price(machine)[1])
