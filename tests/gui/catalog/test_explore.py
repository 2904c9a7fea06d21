"""Ranges, switches, saved filters and column sets of the catalog."""

import pytest
from each_record import for_each
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QToolButton, QWidget

from planner.gui.catalog.facets import RangeSlider
from planner.gui.catalog.filters import CatalogFilter, round_stops
from planner.gui.catalog.tab import CatalogTab
from planner.gui.widgets.layout import focus_stops
from planner.present.catalog.column_sets import COLUMN_SETS


@pytest.fixture
def tab(tab, qtbot, tasks):
    qtbot.waitUntil(lambda: not tasks.busy and any(row.prices for row in tab.gpus.model.all_records))
    return tab


def shown(tab):
    return tab.gpus.model.records


def test_bounds_typed_into_the_search_become_conditions_that_can_be_removed(tab):
    tab.focus_search()
    QTest.keyClicks(tab.bar.search, "24 GB card under 1,600 USD")
    assert {row.gpu.memory_bytes for row in shown(tab)} == {24 * 2**30}
    assert all(row.gpu.launch_price_usd <= 1600 for row in shown(tab))
    chips = tab.gpus.chips.findChildren(QToolButton)
    assert [chip.text() for chip in chips] == ["Price up to $1,600", "Memory 22.4\u2009GiB – 24\u2009GiB"]
    QTest.keyClick(chips[0], Qt.Key.Key_Space)
    assert tab.bar.search.text() == "24 GB card"


def test_prices_of_each_kind_have_a_range_of_their_own(tab):
    tab.gpus.narrow(CatalogFilter().with_bounds("used", None, 1050))
    assert shown(tab)
    assert all(row.prices.bought["used"].median_usd <= 1050 for row in shown(tab))
    tab.gpus.narrow(CatalogFilter().with_bounds("rent", None, 1.0))
    assert all(row.prices.rented["on-demand"].low.price_usd <= 1 for row in shown(tab))


def test_bounds_are_written_as_the_table_writes_them_and_years_without_a_comma(tab):
    facets = tab.gpus.facets
    written = {
        key: [edit.placeholderText() for edit in facets._ranges[key].findChildren(QLineEdit)]
        for key in ("bandwidth", "year")
    }
    assert written["bandwidth"][1] == "27,600"
    assert all(len(year) == 4 for year in written["year"])
    tab.gpus.narrow(CatalogFilter().with_bounds("year", 2020, None))
    assert facets._ranges["year"]._low.text == "2020"
    assert facets._sections["price"].findChild(QToolButton).text() == "Launch price, $"


def test_clear_all_is_disabled_without_conditions(tab):
    facets = tab.gpus.facets
    assert not facets._clear.isEnabled()
    facets._toggles["released"].click()
    assert facets._clear.isEnabled()
    facets._clear.click()
    assert not facets._clear.isEnabled()
    assert all(box.toolTip() for box in facets._toggles.values())


def test_unverified_and_preliminary_cards_can_be_hidden(tab):
    every = len(shown(tab))
    tab.gpus.facets._toggles["confirmed"].click()
    assert {row.gpu.provenance.certainty for row in shown(tab)} == {"confirmed", "preliminary"}
    tab.gpus.facets._toggles["released"].click()
    assert not any(row.gpu.preliminary for row in shown(tab))
    tab.gpus.facets.clear()
    assert len(shown(tab)) == every


def test_a_slider_narrows_from_both_ends(qtbot, theme):
    slider = RangeSlider(theme, (1, 2, 5, 10, 20))
    qtbot.addWidget(slider)
    slider.resize(200, 20)
    slider.show()
    told = []
    slider.slid.connect(told.append)
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(8, 10))
    QTest.mouseMove(slider, QPoint(55, 10))
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(55, 10))
    assert told[-1] == (2, None)
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(150, 10))
    assert slider.bounds == (2, 10)
    slider.set_bounds(None, 7)
    assert slider.bounds == (None, 10)
    slider.set_bounds(None, None)
    assert slider.bounds == (None, None)


def test_stops_are_round_and_hold_every_value():
    stops = round_stops([7, 130, 4100])
    assert stops[0] <= 7
    assert stops[-1] >= 4100
    assert 100 in stops
    assert round_stops([]) == (0.0, 1.0)


def test_a_dragged_range_is_typed_too(tab):
    group = tab.gpus.facets._ranges["memory"]
    group._slider.slid.emit((24.0, None))
    assert group.bounds == (24.0, None)
    assert tab.gpus.filter.bounds["memory"].low == 24


def test_filters_are_saved_applied_renamed_and_deleted(tab, workspace):
    wanted = CatalogFilter(confirmed=True).with_bounds("memory", 24, None)
    tab.gpus.narrow(wanted)
    tab.saved.save(" large ")
    tab.saved.save("")
    tab.gpus.facets.clear()
    tab.saved.fill()
    assert tab.saved.actions()[0].text() == "large"
    tab.saved.apply("large")
    assert tab.gpus.filter == wanted
    tab.saved.rename("large", "very large")
    tab.saved.rename("very large", " ")
    assert tab.saved.names == ("very large",)
    tab.saved.delete("very large")
    tab.saved.fill()
    assert tab.saved.actions()[0].text() == "No saved filters yet"


def test_a_filter_is_never_renamed_over_another(tab, workspace, qtbot):
    tab.gpus.narrow(CatalogFilter(confirmed=True))
    tab.saved.save("sure")
    tab.gpus.narrow(CatalogFilter().with_bounds("memory", 24, None))
    tab.saved.save("large")
    before = workspace.settings.current.catalog.filters
    with qtbot.waitSignal(workspace.failed) as told:
        tab.saved.rename("large", " sure ")
    assert told.args[0].message == "A saved filter “sure” already exists."
    assert told.args[0].hint
    tab.saved.rename("large", "large ")
    assert workspace.settings.current.catalog.filters == before


def test_a_saved_filter_of_another_version_is_reported(tab, workspace, qtbot):
    settings = workspace.settings
    settings.update(catalog=settings.current.catalog.evolve(filters={"old": {"bounds": {"gone": {"low": 1}}}}))
    with qtbot.waitSignal(workspace.failed) as told:
        tab.saved.apply("old")
    assert "cannot be read" in told.args[0].message


@for_each("name", COLUMN_SETS)
def test_column_sets_show_their_columns(tab, name):
    tab.show_columns(name)
    assert tab.gpus.table.layout_now().shown == COLUMN_SETS[name]


def test_the_pane_says_what_follows_from_other_records(tab):
    tab.gpus.table.choose("rtx-3090")
    said = tab.gpus.detail.as_text()
    assert "Power and cooling of 1 GPU" in said
    assert "Price per GiB" in said
    tab.gpus.table.choose("tesla-k80")
    assert "2 devices of 12.0\u2009GiB" in tab.gpus.detail.as_text()


def test_the_view_is_remembered(tab, qtbot, workspace, theme):
    tab.show_view("scatter")
    tab.swap_page()
    assert tab.page is tab.systems
    assert tab.systems.results.currentWidget() is tab.systems.scatter
    other = CatalogTab(workspace, theme, tab.tasks)
    qtbot.addWidget(other)
    assert other.view == "scatter"


@for_each("view", ["table", "scatter", "compare"])
def test_everything_that_takes_the_keyboard_in_a_view_has_a_name(tab, view, qtbot):
    tab.compare.add(("accelerators:rtx-4090",))
    tab.show_view(view)
    qtbot.waitUntil(lambda: not tab.tasks.busy)
    for widget in tab.findChildren(QWidget):
        if widget.isVisible() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            assert widget.accessibleName() or (isinstance(widget, QAbstractButton) and widget.text()), widget


@pytest.mark.parametrize("view", ["scatter", "compare"])
def test_nothing_is_cut_off_in_the_smallest_window(tab, view, qtbot):
    tab.compare.add(("accelerators:rtx-4090",))
    tab.show_view(view)
    qtbot.waitUntil(lambda: not tab.tasks.busy)
    assert tab.minimumSizeHint().width() <= 1160
    assert tab.minimumSizeHint().height() <= 700


def test_the_tab_key_goes_through_the_plot_before_the_details(tab):
    tab.show_view("scatter")
    stops = list(focus_stops(tab.gpus))
    plot, details = stops.index(tab.gpus.scatter.plot), stops.index(tab.gpus.detail._compare)
    assert stops.index(tab.gpus.scatter._presets) < plot < details
