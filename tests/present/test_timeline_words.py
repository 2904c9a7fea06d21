"""What is drawn and told of a trace's timeline."""

import pytest
from recordings import Recorder, training, two_steps

from planner.present.format import THIN
from planner.present.trace.view import timeline_point, timeline_series
from planner.trace.analysis.trace_result import conclude
from planner.units import MIB


def seen(text):
    return text.replace(THIN, " ")


@pytest.fixture(scope="module")
def result():
    return conclude(two_steps(MIB, training(batch=8)))


def test_series_are_stacked_with_what_stays_at_the_bottom(result):
    series = timeline_series(result.timeline)
    assert [one.category for one in series] == [
        "parameters",
        "inputs",
        "gradients",
        "optimizer_states",
        "activations",
        "temporaries",
    ]
    assert all(len(one.bytes) == len(result.timeline.times) for one in series)
    assert {one.term for one in series if one.category in ("parameters", "inputs")} == {"weights", "buffers"}


def test_empty_categories_are_left_out(result):
    timeline = result.timeline
    empty = timeline.series[0].model_copy(update={"bytes": (0,) * len(timeline.times)})
    assert len(timeline_series(timeline.model_copy(update={"series": (empty,)}))) == 0


def test_a_point_of_the_timeline_is_told(result):
    timeline = result.timeline
    point = timeline.times.index(result.peak_moment.time)
    moment = timeline_point(timeline, point)
    assert moment.bytes == result.peak_moment.bytes
    assert seen(moment.description) == "11.0 MiB in the backward pass of step 2: mm in layers.1 (net.py:20)"


def test_a_point_outside_every_phase_still_says_how_much(result):
    timeline = result.timeline.model_copy(update={"spans": ()})
    assert seen(timeline_point(timeline, 0).description) == "1.00 MiB: empty in layers.0 (net.py:10)"


def test_tokens_and_steps_are_counted_from_one():
    recorder = Recorder()
    for phase, step in (("prefill", 0), ("decode", 0), ("decode", 1)):
        recorder.begin(phase, step)
        recorder.make(MIB, "kv_cache", "", "", "")
    timeline = conclude(recorder.recording(training(task="inference"))).timeline
    assert [timeline_point(timeline, point).phase for point in range(3)] == [
        "while the prompt is read",
        "while the answer is generated, at token 1",
        "while the answer is generated, at token 2",
    ]


@pytest.mark.parametrize(
    ("operator", "line", "told"),
    [("", "", "1.00 MiB while the weights load"), ("", "a/net.py:3", "1.00 MiB while the weights load: net.py:3")],
)
def test_a_point_without_an_operator(operator, line, told):
    recorder = Recorder()
    recorder.begin("load")
    recorder.make(MIB, "parameters", operator, "", line)
    assert seen(timeline_point(conclude(recorder.recording()).timeline, 0).description) == told
