"""The scatter plot of the catalog: its points, names and legend, and its selection."""

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from planner.gui.catalog.scatter_panel import PRESETS
from planner.gui.catalog.scatter_plot import ScatterPlot, padded_range, points_to_name, scatter_data, symbol_of
from planner.gui.plot.pens import blended
from planner.gui.settings import PlotChoice
from planner.monitor.readings.inventory import Device
from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.present.catalog.gpu_row import gpu_rows

_COVERED = 170 / 255
COLUMNS = {column.key: column for column in GPU_COLUMNS}


@pytest.fixture(scope="module")
def rows():
    from planner.plan.catalog import load_catalog

    return gpu_rows(load_catalog().hardware)


@pytest.fixture
def tab(tab, qtbot):
    qtbot.waitUntil(lambda: any(row.buying for row in tab.gpus.model.all_records))
    tab.show_view("scatter")
    return tab


@pytest.fixture
def plot(tab):
    return tab.gpus.scatter.plot


def drawn(rows, **choice):
    def numbers(key):
        return {row.id: COLUMNS[key].value(row) for row in rows}

    def words(key):
        return {row.id: COLUMNS[key].text(row) for row in rows}

    return scatter_data([row.id for row in rows], COLUMNS, numbers, words, PlotChoice(**{"x": "price", **choice}))


def are_alike(one, other):
    return max(abs(mine - theirs) for mine, theirs in zip(one.getRgb(), other.getRgb(), strict=True)) < 4


def test_only_rows_with_both_figures_have_a_place(rows):
    data = drawn(rows, x="price", y="bandwidth", log_x=True, log_y=False)
    known = [row for row in rows if row.gpu.launch_price_usd and row.gpu.bandwidth_bytes_per_s]
    assert list(data.ids) == [row.id for row in known]
    assert data.left_out == len(rows) - len(known)
    place = data.ids.index("rtx-4090")
    assert data.xs[place] == pytest.approx(np.log10(1599))
    assert data.ys[place] == pytest.approx(1008)


def test_the_pareto_front_goes_through_what_nothing_beats(rows):
    data = drawn(rows, x="price", y="bandwidth")
    front = [(data.xs[one], data.ys[one]) for one in data.front]
    assert front == sorted(front)
    for x, y in front:
        assert not ((data.xs <= x) & (data.ys > y)).any()
    assert drawn(rows, x="year", y="bandwidth", log_x=False).front == ()


def test_classes_are_words_or_steps_of_a_number(rows):
    by_vendor = drawn(rows, color="vendor")
    assert by_vendor.class_names[0] == "NVIDIA"
    assert not by_vendor.ordered
    many = drawn(rows, x="memory", y="bandwidth", color="architecture")
    assert len(many.class_names) == 8
    assert many.class_names[-1] == "others"
    by_year = drawn(rows, x="memory", y="bandwidth", color="power")
    assert by_year.ordered
    assert by_year.class_names[-1] == "unknown"
    assert drawn(rows, color="").class_names == ("",)
    assert set(drawn(rows, x="memory", y="bandwidth", size="power").sizes) == {6.0, 8.0, 10.0, 13.0, 16.0}


def test_sizes_say_what_the_smallest_and_the_largest_stand_for(rows):
    known = drawn(rows, x="price", y="bandwidth", size="memory")
    (small, fewest), (large, most) = known.size_ends
    assert (small, large) == (known.sizes.min(), known.sizes.max()) == (6.0, 16.0)
    assert fewest == "2 – 4"
    assert most == "96 – 128"
    assert drawn(rows, x="price", y="bandwidth").size_ends == ()
    (_, fewest), _ = drawn(rows, x="memory", y="bandwidth", size="price").size_ends
    assert fewest.endswith(" or unknown")
    unpriced = [row for row in rows if row.gpu.launch_price_usd is None]
    assert drawn(unpriced, x="memory", y="bandwidth", size="price").size_ends == ((6.0, "unknown"),)
    alike = [row for row in rows if row.gpu.launch_price_usd == 1499]
    assert drawn(alike, x="memory", y="bandwidth", size="price").size_ends == ((6.0, "1,499"),)


def test_axes_leave_room():
    low, high = padded_range(np.array([2010.0, 2020.0]), logarithmic=False)
    assert 2009 < low < 2010 < 2020 < high < 2021
    assert padded_range(np.zeros(0), logarithmic=True) == (0.0, 1.0)
    assert padded_range(np.array([5.0]), logarithmic=False)[0] < 5


def test_over_the_years_the_best_of_each_are_named_and_never_the_worst(rows):
    data = drawn(rows, x="year", y="usd_per_gib", log_x=False)
    best = points_to_name(data, ("year", "usd_per_gib"))
    assert sorted(data.xs[best]) == sorted({*data.xs})
    for place in best:
        assert data.ys[place] == data.ys[data.xs == data.xs[place]].min()
    assert [*data.ys[best]] == sorted(data.ys[best])
    turned = drawn(rows, x="usd_per_gib", y="year", log_y=False)
    assert {turned.ids[place] for place in points_to_name(turned, ("usd_per_gib", "year"))} == {
        data.ids[one] for one in best
    }


def test_names_go_first_to_the_pareto_front_then_to_the_best_upwards(rows):
    data = drawn(rows, x="memory", y="price")
    best = points_to_name(data, ("memory", "price"))
    assert tuple(best[: len(data.front)]) == data.front
    assert best[len(data.front)] == data.ys.argmin()
    neither = drawn(rows, x="year", y="ridge_point", log_x=False)
    assert neither.ys.argmax() in points_to_name(neither, ("year", "ridge_point"))


def test_the_cards_of_the_plan_and_of_this_machine_have_their_names(tab, plot, workspace, qtbot):
    workspace.note_devices((Device("GPU-0", "NVIDIA GeForce RTX 3090", 0),))
    tab.gpus.scatter.choose(PRESETS["accelerators"]["Price of memory over the years"])
    tab.gpus.table.choose("titan-v")
    plot.place_names()
    assert {"GeForce RTX 4090", "Titan V"} <= {*plot.names.shown_names}
    assert any("GeForce RTX 3090" in name for name in plot.names.shown_names)
    assert len(plot.names.shown_names) == len(plot.names.boxes)
    assert "Quadro RTX 6000" not in plot.names.shown_names


def test_no_name_in_a_preset_covers_the_point_of_another(tab, plot):
    for choice in PRESETS["accelerators"].values():
        tab.gpus.scatter.choose(choice)
        plot.place_names()
        centres = {name: plot.pixels_of(name) for name in plot.data.ids}
        kept = tab.gpus.model.find(tab.gpus.table.current_id).gpu.name
        corner = plot._item.getViewBox().mapToScene(0, 0).toPoint()
        for name, box in zip(plot.names.shown_names, plot.names.boxes, strict=True):
            covered = [other for other, place in centres.items() if box.translated(corner).contains(place)]
            assert name == kept or not covered


def test_every_preset_draws_something(tab, plot):
    for page in (tab.gpus, tab.systems):
        page.show_view("scatter")
        for choice in PRESETS[page.key].values():
            page.scatter.choose(choice)
            assert page.scatter.choice == choice
            assert len(page.scatter.plot.data.ids) > 3
            assert page.scatter.read_out


def test_a_click_and_the_arrow_keys_choose_in_the_table(tab, plot):
    place = plot.pixels_of("rtx-3090")
    QTest.mouseClick(plot._plot.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert tab.gpus.table.current_id == "rtx-3090"
    assert tab.gpus.detail.as_text().startswith("GeForce RTX 3090\n")
    data = plot.data
    QTest.keyClick(plot, Qt.Key.Key_Right)
    right = tab.gpus.table.current_id
    assert data.xs[data.ids.index(right)] >= data.xs[data.ids.index("rtx-3090")]
    QTest.keyClick(plot, Qt.Key.Key_Up)
    assert data.ys[data.ids.index(tab.gpus.table.current_id)] >= data.ys[data.ids.index(right)]


def test_enter_uses_the_point_under_the_keyboard(tab, plot, workspace):
    tab.gpus.table.choose("rtx-3090")
    QTest.keyClick(plot, Qt.Key.Key_Return)
    assert workspace.plan.gpu == "rtx-3090"
    workspace.undo_stack.undo()
    assert workspace.plan.gpu == "rtx-4090"


def test_a_box_selects_rows(tab, plot):
    viewport = plot._plot.viewport()
    middle = plot.pixels_of("rtx-3090")
    area = QRect(middle - QPoint(30, 30), middle + QPoint(30, 30))
    wanted = plot.names_within(area)
    assert "rtx-3090" in wanted
    QTest.mousePress(viewport, Qt.MouseButton.LeftButton, pos=area.topLeft())
    QTest.mouseMove(viewport, area.bottomRight())
    QTest.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=area.bottomRight())
    assert {row.id for row in tab.gpus.table.selected_records} == set(wanted)


def test_hovering_says_the_figures(tab, plot, qtbot):
    QTest.mouseMove(plot._plot.viewport(), plot.pixels_of("rtx-3090"))
    assert plot.card.isVisible()
    lines = plot.card.text().splitlines()
    assert "Bandwidth: 936\u2009GB/s" in lines
    assert any(line.startswith("Bandwidth: 936") for line in lines)
    QApplication.sendEvent(plot._plot.viewport(), QEvent(QEvent.Type.Leave))
    assert not plot.card.isVisible()


def test_the_plot_follows_the_filter_and_names_keep_apart(tab, plot, qtbot):
    before = len(plot.data.ids)
    tab.bar.search.setText("rtx at least 24 GiB")
    assert 0 < len(plot.data.ids) < before
    qtbot.waitUntil(lambda: bool(plot.names.boxes))
    boxes = plot.names.boxes
    assert not any(box.intersects(other) for place, box in enumerate(boxes) for other in boxes[place + 1 :])
    tab.bar.search.setText("no such thing at all")
    assert tab.gpus.empty.isVisible()


def test_what_is_drawn_can_be_chosen_and_is_remembered(tab, plot, qtbot, workspace, theme):
    panel = tab.gpus.scatter
    panel.boxes["pareto"].click()
    assert not workspace.settings.current.catalog.plots["accelerators"].pareto
    panel.fields["x"].edited.emit("year")
    assert panel.choice.x == "year"
    assert not panel.choice.log_x
    assert not panel.boxes["log_x"].isEnabled()
    workspace.settings.update(
        catalog=workspace.settings.current.catalog.evolve(plots={"accelerators": PlotChoice(x="gone")})
    )
    assert panel.choice == next(iter(PRESETS["accelerators"].values()))


def test_the_pareto_front_is_offered_only_where_there_is_one(tab, plot):
    def take(preset):
        next(action for action in panel._presets.menu().actions() if action.text() == preset).trigger()

    def has_line():
        xs, _ = plot._front.getOriginalDataset()
        return xs is not None and len(xs) > 0

    panel = tab.gpus.scatter
    line = panel.boxes["pareto"]
    take("Memory against price")
    assert line.isEnabled()
    assert line.isChecked()
    assert has_line()
    take("Bandwidth over the years")
    assert not line.isEnabled()
    assert not line.isChecked()
    assert "“Year”" in line.toolTip()
    assert not has_line()
    take("Memory against price")
    assert line.isChecked()
    line.click()
    assert not has_line()
    take("Bandwidth over the years")
    take("Bandwidth against price")
    assert line.isEnabled()
    assert not line.isChecked()
    assert not has_line()


def test_the_legend_says_sizes_only_where_they_mean_something(tab, plot):
    panel = tab.gpus.scatter
    panel.choose(PlotChoice(x="price", y="bandwidth", size="memory", color="vendor"))
    assert panel.legend.names == ("NVIDIA", "AMD", "Intel", "Tenstorrent", "Memory, GiB:", "2 – 4", "96 – 128")
    assert panel.legend.accessibleName() == "Legend: NVIDIA, AMD, Intel, Tenstorrent; Memory, GiB: 2 – 4, 96 – 128"
    panel.choose(PlotChoice(x="price", y="bandwidth", color="vendor"))
    assert panel.legend.names == ("NVIDIA", "AMD", "Intel", "Tenstorrent")


def test_the_plot_goes_to_files(tab, plot, tmp_path):
    panel = tab.gpus.scatter
    for name in ("plot.png", "plot.svg", "plot.csv"):
        panel.export.save_to(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    drawing = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert "<image" not in drawing  # shapes stay sharp at any size
    assert drawing.count("<path") >= len(plot.data.ids)
    head, *lines = (tmp_path / "plot.csv").read_text(encoding="utf-8").splitlines()
    assert head.startswith('id,name,"Price, USD","Bandwidth, GB/s"')
    assert len(lines) == len(plot.data.ids)


def test_dark_colours_and_steps_of_a_number(tab, plot, theme):
    tab.gpus.scatter.choose(PlotChoice(x="memory", y="bandwidth", color="power"))
    colors = {plot.class_color(place).name() for place in range(6)}
    assert len(colors) == 6
    assert [symbol_of(place, ordered=True) for place in (0, 4, 5)] == ["o", "o", "+"]
    theme.apply("dark")
    assert {plot.class_color(place).name() for place in range(6)} != colors
    theme.apply("light")


def test_points_are_painted_in_place_in_the_colour_of_their_class(tab, plot, theme):
    def around(name):
        # The nearest pixels: which of them a small symbol fills depends on where between two of them its point lies.
        image, place = plot._plot.grab().toImage(), plot.pixels_of(name)
        return [image.pixelColor(place + QPoint(x, y)) for x in (0, -1, 1) for y in (0, -1, 1)]

    tab.gpus.scatter.choose(PlotChoice(x="price", y="bandwidth", color="vendor", pareto=False))
    data = plot.data
    places = {name: plot.pixels_of(name) for name in data.ids}
    alone = [
        name
        for name, place in places.items()
        if sum((place - other).manhattanLength() < 30 for other in places.values()) == 1
    ]
    classes = [data.classes[data.ids.index(name)] for name in alone]
    assert len(set(classes)) > 1
    shades = [blended(plot.class_color(place), theme.color("surface"), _COVERED) for place in classes]
    for name, shade in zip(alone, shades, strict=True):
        assert any(are_alike(found, shade) for found in around(name))
    theme.apply("dark")
    for name, shade in zip(alone, shades, strict=True):
        assert not any(are_alike(found, shade) for found in around(name))
    theme.apply("light")


def test_later_classes_lie_above_earlier_ones_whatever_the_order_of_the_rows(qtbot, theme):
    plot = ScatterPlot(theme)
    qtbot.addWidget(plot)
    plot.resize(300, 300)
    words = {"late": "b", "early": "a", "also early": "a", "away": "a"}
    numbers = {"late": 10.0, "early": 10.0, "also early": 10.0, "away": 20.0}
    choice = PlotChoice(x="memory", y="bandwidth", color="vendor", pareto=False)
    data = scatter_data([*words], COLUMNS, lambda _: numbers, lambda _: words, choice)
    assert data.class_names == ("a", "b")
    plot.draw(data, choice, str)
    plot.grab()
    seen = plot.grab().toImage().pixelColor(plot.pixels_of("late"))
    ground = theme.color("surface")
    for place in (0, 0, 1):
        ground = blended(plot.class_color(place), ground, _COVERED)
    assert are_alike(seen, ground)


def test_the_plot_shows_that_it_has_the_keyboard_but_its_picture_does_not(tab, plot, theme):
    def edge():
        return plot.grab().toImage().pixelColor(plot.rect().center().x(), 0).name()

    plot.setFocus()
    assert edge() == theme.color("focus").name()
    assert plot.picture().toImage().pixelColor(plot.rect().center().x(), 0).name() == theme.color("surface").name()
    tab.bar.search.setFocus()
    assert edge() != theme.color("focus").name()


def test_to_paint_the_axis_moves_no_point_away_from_its_name(tab, plot, qapp):
    for choice in PRESETS["accelerators"].values():
        tab.gpus.scatter.choose(choice)
        plot._item.layout.activate()
        leftmost = plot.data.ids[plot.data.xs.argmin()]
        before = plot.pixels_of(leftmost).x()
        plot.grab()
        qapp.processEvents()
        assert plot.pixels_of(leftmost).x() == before
