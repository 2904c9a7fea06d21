"""Figures of reports."""

from types import SimpleNamespace

import pytest
from cost_samples import estimated
from memory_samples import on_card, result, seen
from recordings import training, two_steps

from planner.cost.rent_or_buy.uncertainty import simulate, tornado
from planner.cost.terms import DailyHours
from planner.present.cost.amounts import swing_rows
from planner.present.memory.view import memory_view
from planner.present.report.document import (
    Area,
    Bullets,
    Drawing,
    DrawingLabel,
    Polyline,
    Prose,
    Rectangle,
    ReportTable,
)
from planner.present.report.figures import (
    ReadingsCurve,
    cost_figure,
    memory_blocks,
    memory_figure,
    readings_figure,
    swing_figure,
    timeline_figure,
)
from planner.trace.analysis.trace_result import conclude
from planner.units import GIB, MIB


def _texts(figure):
    return [seen(shape.text) for shape in figure.shapes if isinstance(shape, DrawingLabel)]


def test_the_memory_bar_is_as_long_as_the_card_and_names_every_part():
    figure = memory_figure(memory_view(on_card(24 * GIB, "fits"), "T4"))
    bars = [shape for shape in figure.shapes if isinstance(shape, Rectangle) and shape.height > 20]
    assert sum(bar.width for bar in bars) == pytest.approx(figure.width)
    assert bars[0].width == pytest.approx(figure.width / 2)  # 12 of 24 GiB are weights
    assert {"Weights 12.0 GiB", "KV cache 3.00 GiB", "Free 8.00 GiB"} <= set(_texts(figure))
    assert "Weights 12.0 GiB" in seen(figure.caption)
    assert max(shape.y for shape in figure.shapes if isinstance(shape, DrawingLabel)) < figure.height


def test_a_bar_that_is_too_long_marks_where_the_card_ends():
    figure = memory_figure(memory_view(on_card(12 * GIB, "does-not-fit"), "T4"))
    mark = next(shape for shape in figure.shapes if isinstance(shape, Polyline))
    assert mark.points[0][0] == pytest.approx(figure.width * 12 / 16)
    bars = [shape for shape in figure.shapes if isinstance(shape, Rectangle) and shape.height > 20]
    assert sum(bar.width for bar in bars) == pytest.approx(figure.width)  # nothing is drawn twice
    assert "usable 12.0 GiB" in _texts(figure)
    assert not any(isinstance(shape, Polyline) for shape in memory_figure(memory_view(result())).shapes)


def test_the_costs_have_bands_and_the_break_even(catalog):
    estimate = estimated(catalog)
    figure = cost_figure(estimate, simulate(estimate.case), "Buying")
    assert sum(isinstance(shape, Area) for shape in figure.shapes) == 2
    assert {"Renting", "Buying", "years"} <= set(_texts(figure))
    assert "80 %" in seen(figure.caption)
    crossing = estimate.result.break_even.years
    marked = any(text.startswith("break-even") for text in _texts(figure))
    assert marked == (crossing is not None and 0 < crossing <= estimate.result.curve[-1].years)
    bare = cost_figure(estimate, None, "Buying")
    assert not any(isinstance(shape, Area) for shape in bare.shapes)


def test_costs_that_cross_are_marked_where_they_do(catalog):
    estimate = estimated(catalog, DailyHours(hours_per_day=24, days_per_week=7), buy={"card_price_usd": 2_000})
    figure = cost_figure(estimate, None, "Buying")
    assert 0 < estimate.result.break_even.years < 5
    assert any(shape.is_dashed for shape in figure.shapes if isinstance(shape, Polyline))


def test_costs_of_cents_are_drawn_below_a_dollar():
    points = [SimpleNamespace(years=year, rent_usd=year / 2, own_usd=0.25) for year in (0.0, 1.0)]
    estimate = SimpleNamespace(result=SimpleNamespace(curve=points, break_even=None))
    figure = cost_figure(estimate, None, "Buying")
    assert {"months", "10"} <= set(_texts(figure))
    lines = [shape for shape in figure.shapes if isinstance(shape, Polyline)]
    rented = next(line.points for line in lines if line.color == "series-1")
    assert [y for _, y in rented] == pytest.approx([260, 260 - 248 * 0.5 / 1.05])


def test_without_a_curve_there_is_no_figure(catalog):
    assert cost_figure(SimpleNamespace(result=SimpleNamespace(curve=())), None, "Buying") is None


def _bars(figure):
    """Return the widths of the bars, which are higher than the squares of the legend."""
    return [shape.width for shape in figure.shapes if isinstance(shape, Rectangle) and shape.height > 10]


def test_the_tornado_has_a_bar_for_each_input_from_the_widest(catalog):
    rows = swing_rows(tornado(estimated(catalog).case))
    figure = swing_figure(rows, "Buying")
    bars = _bars(figure)
    assert bars == sorted(bars, reverse=True)
    assert len(bars) == min(len(rows), 10)
    assert rows[0].title in _texts(figure)
    said = {"changes the decision", "does not change it"}
    for kinds, told in (((True,), {"changes the decision"}), ((False,), {"does not change it"}), ((True, False), said)):
        drawn = swing_figure([rows[0]._replace(flips=flips) for flips in kinds], "Buying")
        assert said & set(_texts(drawn)) == told
    assert swing_figure((), "Buying") is None


def test_an_input_that_changes_nothing_has_a_line_of_its_own(catalog):
    row = swing_rows(tornado(estimated(catalog).case))[0]._replace(low_saving_usd=0.0, high_saving_usd=0.0)
    assert _bars(swing_figure([row], "Buying")) == [1]


def test_readings_are_drawn_over_a_suitable_time_with_their_gaps():
    curve = ReadingsCurve("0 T4", (0.0, 300.0, 600.0, 900.0), (50.0, None, 60.0, 120.0))
    figure = readings_figure("Use", "%", (curve,), 100.0)
    assert "minutes" in _texts(figure)
    lines = [shape.points for shape in figure.shapes if isinstance(shape, Polyline) and shape.color == "series-1"]
    assert [len(points) for points in lines] == [1, 2]
    assert lines[1][1][1] == pytest.approx(12)  # what is above the axis stays in the plot
    assert "0 T4" not in _texts(figure)
    both = readings_figure("Use", "%", (curve, curve._replace(title="1 T4")))
    assert {"0 T4", "1 T4"} <= set(_texts(both))
    assert both.height > figure.height


def test_a_gap_at_the_end_ends_the_line():
    curve = ReadingsCurve("0", (0.0, 1.0, 2.0), (1.0, 2.0, None))
    lines = [shape for shape in readings_figure("Use", "%", (curve,)).shapes if isinstance(shape, Polyline)]
    assert sum(line.color == "series-1" for line in lines) == 1


def test_titles_are_a_third_of_the_plot_apart():
    curves = [ReadingsCurve(title, (0.0, 1.0), (1.0, 2.0)) for title in ("0", "1", "2")]
    figure = readings_figure("Use", "%", curves)
    swatches = [shape.x for shape in figure.shapes if isinstance(shape, Rectangle)]
    assert swatches == pytest.approx([64, 64 + 644 / 3, 64 + 2 * 644 / 3])


@pytest.mark.parametrize(
    "curve",
    [
        ReadingsCurve("0", (), ()),
        ReadingsCurve("0", (0.0, 1.0), (None, None)),
        ReadingsCurve("0", (0.0,), (5.0,)),
    ],
)
def test_without_readings_there_is_no_figure(curve):
    assert readings_figure("Use", "%", (curve,)) is None


def test_the_timeline_is_stacked_and_keeps_the_peak():
    timeline = conclude(two_steps(MIB, training(batch=8))).timeline
    figure = timeline_figure(timeline)
    areas = [shape for shape in figure.shapes if isinstance(shape, Area)]
    peak = max(sum(series.bytes[index] for series in timeline.series) for index in range(len(timeline.times)))
    top = min(y for _, y in areas[-1].points)
    assert top == pytest.approx(240 - 228 / 1.05)
    assert peak > 0
    first = timeline.series[0]
    for series in ((), (first.evolve(bytes=first.bytes[:1]),)):
        moment = timeline.evolve(times=(0,), series=series, operators=("",), modules=("",), lines=("",))
        assert timeline_figure(moment) is None


def test_a_long_timeline_is_thinned_without_losing_its_peak():
    timeline = conclude(two_steps(MIB, training(batch=8))).timeline
    series = timeline.series[0]
    sizes = (*[GIB] * 900, 4 * GIB, *[GIB] * 900)
    length = len(sizes)
    blank = ("",) * length
    long = timeline.evolve(
        times=tuple(range(length)),
        series=(series.evolve(bytes=sizes),),
        operators=blank,
        modules=blank,
        lines=blank,
    )
    area = next(shape for shape in timeline_figure(long).shapes if isinstance(shape, Area))
    assert len(area.points) < 2 * 500
    assert min(y for _, y in area.points) == pytest.approx(240 - 228 / 1.05)
    assert any(text.endswith(" GiB") for text in _texts(timeline_figure(long)))


def test_sentences_are_followed_by_the_bar_the_parts_and_the_phases():
    blocks = list(memory_blocks(memory_view(on_card(24 * GIB, "fits"), "T4")))
    assert isinstance(blocks[0], Prose)
    assert any(isinstance(block, Drawing) for block in blocks)
    terms, phases, cards = [block for block in blocks if isinstance(block, ReportTable)]
    assert seen(" ".join(terms.rows[-1])) == "Total 16.00  15.5 – 17.0 GiB "
    assert terms.last_is_total
    assert [row[0] for row in phases.rows if row[2] == "peak"] == ["Decode"]
    assert cards.rows == ()


def test_a_plan_that_the_card_cannot_run_has_its_reason_alone():
    memory = on_card(24 * GIB, None, unsupported=("it has no such format",), notes=("a note",))
    first, second = memory_blocks(memory_view(memory, "T4"))
    assert first == Prose("Not supported on T4: it has no such format.")
    assert isinstance(second, Bullets)
