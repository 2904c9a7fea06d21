"""Time behavior of programs: launches by host and format, and defaults of engines."""

import pytest
from known_engines import ENGINES
from small_models import bundled
from timed_requests import gpu

from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.work import work_of
from planner.performance.software.engine import Engine


def test_launches_by_engine_host_and_format():
    assert gpu_speed(gpu("h100-sxm5-80gb"), ENGINES["hf"], "bf16").layer_seconds == 610e-6
    assert gpu_speed(gpu("a100-sxm4-80gb"), ENGINES["hf"], "bf16").layer_seconds == pytest.approx(840e-6)
    assert gpu_speed(gpu("a100-sxm4-80gb"), ENGINES["hf"], "nf4").layer_seconds == pytest.approx(1_160e-6 * 84 / 61)
    assert gpu_speed(gpu("h100-sxm5-80gb"), ENGINES["hf"], "gptq4-128").layer_seconds == 610e-6
    assert gpu_speed(gpu("a100-sxm4-80gb"), ENGINES["llama.cpp"], "F16").layer_seconds == 100e-6
    assert gpu_speed(gpu("rtx-4090"), ENGINES["llama.cpp"], "F16").layer_seconds == 70e-6


def test_a_cache_is_split_over_no_more_cards_than_key_heads() -> None:
    work = work_of(bundled().models.model("meta-llama/Llama-3.1-8B"), "bf16")
    engine = Engine(name="test", layer_seconds=1e-6, source="a test")
    assert [engine.cache_cards(work, cards) for cards in (1, 4, 8, 16)] == [1, 4, 8, 8]


def test_formats_have_launch_times_of_their_own() -> None:
    card = bundled().hardware.gpu("rtx-4090")
    engine = Engine(name="test", layer_seconds=1e-6, source="a test", quantised_layer_seconds={"awq": 5e-6})
    assert engine.seconds_per_layer(card, "bf16") == 1e-6
    assert engine.seconds_per_layer(card, "awq4-128") == 5e-6


def test_cards_without_4_bit_floats_read_them_as_other_formats_of_4_bits() -> None:
    engine = Engine(name="test", layer_seconds=1e-6, source="a test")
    shares = {name: engine.read_share(gpu(name), "nvfp4").fraction for name in ("h100-sxm5-80gb", "b200-sxm-180gb")}
    assert shares == {"h100-sxm5-80gb": 0.58, "b200-sxm-180gb": 0.45}


def test_chunks_follow_each_other_through_equal_stages() -> None:
    work = work_of(bundled().models.model("meta-llama/Llama-3.1-8B"), "bf16")
    engine = Engine(name="test", layer_seconds=1e-6, source="a test")
    # Eight chunks on four stages: each stage works on eight, and three times none.
    assert engine.passes_in_stages(work, [0.5] * 4 + [1.5] * 4, 4) == pytest.approx((8 + 3) / 4)


def test_prompts_are_launched_by_python_where_no_graph_holds_them() -> None:
    work = work_of(bundled().models.model("Qwen/Qwen3-30B-A3B"), "bf16")
    engine = Engine(
        name="test",
        layer_seconds=1e-6,
        source="a test",
        eager_layer_seconds=1e-3,
        eager_expert_layer_seconds=2e-3,
        graph_rows=512,
    )
    assert [engine.eager_seconds(work, rows) for rows in (1, 512, 513)] == [0, 0, pytest.approx(48 * 3e-3)]
    assert Engine(name="test", layer_seconds=1e-6, source="a test").eager_seconds(work, 1e6) == 0
