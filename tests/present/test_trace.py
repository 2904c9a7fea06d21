"""A trace as sentences, rows and a timeline."""

import shlex

import pytest
from recordings import Recorder, training, two_steps

from planner.cli.trace.command import _target_of_command, make_parser
from planner.cli.trace.options import request_from_arguments
from planner.plan.trace_request import operator_fields
from planner.present.format import THIN
from planner.present.trace import (
    CATEGORY_TITLES,
    command_text,
    notable_modules,
    operator_name,
    shell_command,
    short_source_line,
    timeline_point,
    timeline_series,
    trace_subject,
    trace_view,
)
from planner.trace.analysis.trace_result import conclude
from planner.trace.launcher import parse_command
from planner.trace.notation import parse_assumed_values
from planner.trace.recording import CATEGORIES, TraceDifference
from planner.trace.request import TraceRequest
from planner.trace.result import OutOfMemory
from planner.units import GIB, MIB


def seen(text):
    return text.replace(THIN, " ")


def inference(**changes):
    return training(task="inference", **changes)


@pytest.fixture(scope="module")
def result():
    return conclude(two_steps(MIB, training(batch=8)))


@pytest.fixture(scope="module")
def view(result):
    return trace_view(result)


DIFFERENCES = (
    TraceDifference(
        name="cuDNN scratch", explanation="chosen by it", source="its manual", bytes=0, high_bytes=GIB, place="a"
    ),
    TraceDifference(
        name="cuDNN scratch", explanation="chosen by it", source="its manual", bytes=0, high_bytes=GIB, place="b"
    ),
    TraceDifference(
        name="reserve", explanation="on this GPU", source="measured", bytes=MIB, low_bytes=MIB, high_bytes=GIB
    ),
)


def test_the_memory_needed_and_the_smallest_cards_come_first(result):
    answer = seen(trace_view(result, smallest=("P4", "T4")).memory.answer)
    assert answer.startswith("Needs ")
    assert answer.endswith("The smallest GPUs that fit: P4 and T4.")


def test_the_reason_names_the_allocation_at_the_peak(view):
    assert "in the backward pass" in view.memory.reason
    assert "by aten.mm" in view.memory.reason
    assert "net.py:20" in view.memory.reason


def test_live_allocations_are_sorted_and_sum_to_the_peak(view, result):
    sizes = [row.bytes for row in view.alive]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == result.peak_moment.bytes
    assert sum(row.share for row in view.alive) == pytest.approx(1)


def test_a_row_of_live_allocations(view):
    row = next(row for row in view.alive if row.title == "Optimizer states" and row.module == "layers.1")
    assert (row.operator, row.shape, row.place) == ("zeros_like", "2 × 128x128", "")
    assert seen(row.exact) == "2,097,152 B"
    row = next(row for row in view.alive if row.title == "Gradients")
    assert (row.shape, row.line, row.place) == ("128x128", "net.py:20", "net.py:20")


def test_tensors_of_unknown_shape_are_counted():
    recorder = Recorder()
    recorder.make(MIB, "inputs")
    recorder.make(MIB, "inputs")
    (row,) = trace_view(conclude(recorder.recording())).alive
    assert row.shape == "2 tensors"


def test_modules_keep_their_order_and_list_their_memory(view):
    assert [(row.title, row.depth) for row in view.modules] == [
        ("(whole model)", 0),
        ("layers", 1),
        ("layers.0", 2),
        ("layers.1", 2),
    ]
    whole, *_, last = view.modules
    assert whole.share == 1
    assert seen(last.parameters_text) == "0.262 M"
    assert seen(last.holds).startswith("optimizer states 2.00 MiB, parameters 1.00 MiB, ")
    assert dict(last.shares)["optimizer_states"] == 2 * MIB


def test_upper_and_large_modules_are_notable(view):
    assert notable_modules(view.modules, 2) == view.modules[:2]
    assert len(notable_modules(view.modules, 3)) == 3
    assert notable_modules(view.modules, 10) == view.modules


def test_the_reservation_has_figures_and_exact_bytes(view):
    rows = {row.title: seen(row.text) for row in view.reservation}
    assert rows["Peak allocated"] == "11.0 MiB"
    assert rows["Allocator settings"] == "PyTorch's defaults"
    assert rows["Unallocated when first reserved"].endswith(" %")
    assert {row.title for row in view.reservation if row.exact} == {
        "Peak allocated",
        "Peak reserved",
        "Largest free block then",
    }


def test_a_large_card_does_not_run_out(view):
    assert view.runs_out == ""


def test_a_small_card_runs_out_of_memory_at_a_source_line(catalog):
    recorder = Recorder()
    recorder.begin("forward")
    recorder.make(30 * GIB, "activations", "aten.mm.default", "head", "/home/me/net.py:7", "1x1")
    gpu = catalog.hardware.gpu("rtx-4090")
    result = conclude(recorder.recording(), gpu, catalog.hardware.usable_memory(gpu))
    sentence = seen(trace_view(result, gpu.name).runs_out)
    assert sentence.startswith("PyTorch would run out of memory in the forward pass of step 1: mm in head at /home/me/")
    assert "requests 30.0 GiB while 0 B are allocated and 0 B reserved" in sentence


def test_a_failed_allocation_may_have_no_operator(result):
    sizes = {"bytes": GIB, "allocated_bytes": 0, "reserved_bytes": 0}
    out = OutOfMemory(time=0, step=0, phase="load", operator="", module="", line="", **sizes)
    full = result.evolve(reservation=result.reservation.evolve(out_of_memory=out))
    assert "while the weights load: an allocation requests" in trace_view(full).runs_out


def test_assumptions_have_bounds_and_appear_once():
    recorder = Recorder()
    recorder.make(GIB)
    view = trace_view(conclude(recorder.recording(differences=DIFFERENCES, notes=("by hand",))))
    first, second = view.differences
    assert (first.name, seen(first.range_text), first.place) == ("cuDNN scratch", "0 – 2.00 GiB", "")
    assert (second.source, seen(second.amount)) == ("measured", "1.00 MiB")
    assert seen(second.range_text).endswith("1.00 GiB")
    assert "by hand" in view.memory.notes
    assert not any("cuDNN" in note for note in view.memory.notes)


def test_without_differences_every_note_stays(result, view):
    assert set(result.notes) <= set(view.memory.notes)


def test_the_subject_names_module_work_and_cards(result):
    text = seen(trace_subject(result, "T4", 2))
    assert (
        text == "net.py:Net · 0.524 M parameters, all trained · 1.00 MFLOP per step · training, AdamW, batch 8 · 2 × T4"
    )
    frozen = result.evolve(trainable_parameters=1000, flops=None)
    assert (
        seen(trace_subject(frozen))
        == "net.py:Net · 0.524 M parameters, 1,000 of them trained · training, AdamW, batch 8"
    )
    assert "trained" not in trace_subject(result.evolve(request=inference()))


@pytest.mark.parametrize(
    ("changes", "device"),
    [
        ({"device": "cpu"}, "the CPU."),
        ({}, "a CUDA device."),
        ({"compute_capability": "8.9"}, "a CUDA device of compute capability 8.9."),
    ],
)
def test_the_versions_and_the_device_of_a_trace_are_stated(result, changes, device):
    traced = result.evolve(request=TraceRequest.model_validate({**dict(result.request), **changes}))
    assert (
        seen(trace_view(traced).traced_with)
        == f"Traced in 0.5 s with PyTorch 2.13.0 and Python 3.11.7, assuming {device}"
    )


def test_the_version_of_transformers_is_stated_if_used(result):
    environment = result.environment.evolve(transformers="5.23")
    text = trace_view(result.evolve(environment=environment)).traced_with
    assert "PyTorch 2.13.0, transformers 5.23 and Python" in text


def test_long_lived_categories_are_stacked_at_the_bottom(result):
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


def test_a_point_of_the_timeline_has_a_description(result):
    timeline = result.timeline
    point = timeline.times.index(result.peak_moment.time)
    moment = timeline_point(timeline, point)
    assert moment.bytes == result.peak_moment.bytes
    assert seen(moment.description) == "11.0 MiB in the backward pass of step 2: mm in layers.1 (net.py:20)"


def test_a_point_outside_every_phase_has_its_size(result):
    timeline = result.timeline.model_copy(update={"spans": ()})
    assert seen(timeline_point(timeline, 0).description) == "1.00 MiB: empty in layers.0 (net.py:10)"


def test_tokens_and_steps_are_counted_from_one():
    recorder = Recorder()
    for phase, step in (("prefill", 0), ("decode", 0), ("decode", 1)):
        recorder.begin(phase, step)
        recorder.make(MIB, "kv_cache", "", "", "")
    timeline = conclude(recorder.recording(training(task="inference"))).timeline
    assert [timeline_point(timeline, point).phase for point in range(3)] == [
        "during prefill",
        "during decoding, at token 1",
        "during decoding, at token 2",
    ]


@pytest.mark.parametrize(
    ("operator", "line", "told"),
    [("", "", "1.00 MiB while the weights load"), ("", "a/net.py:3", "1.00 MiB while the weights load: net.py:3")],
)
def test_the_description_leaves_out_unknown_parts(operator, line, told):
    recorder = Recorder()
    recorder.begin("load")
    recorder.make(MIB, "parameters", operator, "", line)
    assert seen(timeline_point(conclude(recorder.recording()).timeline, 0).description) == told


def test_every_category_has_a_title():
    assert list(CATEGORY_TITLES) == list(CATEGORIES)


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        ("aten.mm.default", "mm"),
        ("aten::addmm", "addmm"),
        ("aten::_foreach_addcdiv_.ScalarList", "_foreach_addcdiv_"),
        ("mamba.scan", "mamba.scan"),
    ],
)
def test_operators_lose_their_common_prefix_and_suffix(operator, name):
    assert operator_name(operator) == name


@pytest.mark.parametrize("line", ["net.py:4", "/home/me/net.py:4", "C:\\me\\net.py:4"])
def test_source_lines_lose_their_folder_on_any_system(line):
    assert short_source_line(line) == "net.py:4"


LINES = (
    "train.py",
    "train.py --lr 0.1",
    "torchrun --nproc_per_node=2 train.py --note 'two words'",
    "-m package.train",
    "python -m package.train --x 1",
)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    "fields",
    [
        {"device": "cuda"},
        {"device": "cpu", "steps": 3, "assume": parse_assumed_values("mask=0.5, train.py:3=2")},
    ],
)
def test_the_command_line_reads_the_same_request(line, fields, catalog, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    gpu = catalog.hardware.gpu("rtx-4090")
    operators = operator_fields(gpu) if fields["device"] == "cuda" else {}
    asked = TraceRequest(target=parse_command(shlex.split(line)), task="training", **operators | fields)
    words = shlex.split(shell_command(asked, gpu))[2:]
    end = words.index("--") if "--" in words else len(words)
    arguments = make_parser().parse_args(words[:end])
    target = _target_of_command(arguments, words[end + 1 :], catalog.models)
    read = request_from_arguments(arguments, target, gpu)
    assert arguments.gpu == "rtx-4090"
    assert read == asked


def test_a_script_is_named_from_its_working_folder():
    target = parse_command(("torchrun", "/home/me/runs/train.py"))
    request = TraceRequest(target=target.evolve(folder="/home/me/my runs"), task="training")
    assert (
        shell_command(request, None) == "cd '/home/me/my runs' && gpu-planner trace -- torchrun /home/me/runs/train.py"
    )
    inside = request.evolve(target=target.evolve(folder="/home/me"))
    assert shell_command(inside, None) == "cd /home/me && gpu-planner trace -- torchrun runs/train.py"
    assert command_text(inside.target) == "torchrun runs/train.py"
