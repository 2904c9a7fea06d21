"""Times of kernels on cards of the catalog."""

from pathlib import Path

import pytest

from planner.paths import catalog_dir
from planner.performance.kernels.attention import AttentionShape
from planner.performance.kernels.curves import curves_of, find_curve
from planner.performance.kernels.gpu_figures import GpuFigures, gpu_figures
from planner.performance.kernels.products import ExpertShape
from planner.performance.kernels.times import (
    FORMULAS,
    CollectiveCurve,
    attention_decode_time,
    attention_prefill_time,
    collective_seconds,
    collective_shape,
    collective_time,
    experts_time,
    launch_seconds,
    matmul_time,
)
from planner.plan.catalog import Catalog

FILES = sorted(path.stem for path in Path(catalog_dir(), "kernels").glob("*.json"))


def test_every_curve_has_the_parameters_of_its_law() -> None:
    curves = [curve for name in FILES for curve in curves_of(name)]
    assert len(curves) > 500
    wrong = [curve[:4] for curve in curves if len(curve.parameters) != len(FORMULAS[curve.kernel].curve._fields)]
    assert wrong == []


def test_every_table_is_of_a_card_or_a_family(catalog: Catalog) -> None:
    cards = {gpu.id for gpu in catalog.hardware.gpus}
    assert [
        name
        for name in FILES
        if name not in cards and not name.startswith(("family-", "warp-level-cards", "all-cards"))
    ] == []


def test_a_product_of_an_h100_takes_what_was_measured(catalog: Catalog) -> None:
    # aiconfigurator@095f58a, TensorRT-LLM 1.3.0rc20: 128 × 6,144 × 768 in bf16 take 6.556 µs.
    found = matmul_time(catalog.hardware.gpu("h100-sxm5-80gb"), "tensorrt-llm", "bf16", 128, 6_144, 768)
    assert found is not None
    assert found.origin == "own table"
    assert found.low_seconds < 6.556e-6 < found.high_seconds
    assert found.seconds == pytest.approx(6.556e-6, rel=0.15)


def test_every_kind_of_kernel_has_a_time(catalog: Catalog) -> None:
    gpu = catalog.hardware.gpu("h200-sxm-141gb")
    grouped = AttentionShape(16, 4_096, 32, 8, 128, 0, 2)
    times = [
        attention_prefill_time(gpu, "vllm", "bf16/bf16", grouped),
        attention_decode_time(gpu, "vllm", "bf16", grouped),
        attention_decode_time(gpu, "vllm", "bf16", grouped._replace(key_heads=32)),
        experts_time(gpu, "vllm", "bf16", ExpertShape(64, 2_048, 768, 128, 8, 1, 3, 2, 0)),
        collective_time(gpu, "vllm", "graph", "all-reduce", 4, 1e6),
        collective_time(gpu, "nccl", "nccl", "all-gather", 8, 1e8),
    ]
    assert [time is not None and time.low_seconds < time.seconds < time.high_seconds for time in times] == [True] * 6


def test_queries_with_keys_of_their_own_have_a_kernel_of_their_own(catalog: Catalog) -> None:
    gpu = catalog.hardware.gpu("h200-sxm-141gb")
    for key_heads, kernel in ((32, "attention-write-single"), (8, "attention-write")):
        shape = AttentionShape(16, 4_096, 32, key_heads, 128, 0, 2)
        curve, card = find_curve(gpu, kernel, "vllm", "bf16", 128), gpu_figures(gpu)
        found = attention_decode_time(gpu, "vllm", "bf16", shape)
        assert None not in (curve, card, found)
        formula = FORMULAS[kernel]
        assert found.seconds == formula.seconds(formula.curve(*curve.curve.parameters), shape, card)


def test_a_card_without_a_table_takes_the_curves_of_its_family(catalog: Catalog) -> None:
    found = matmul_time(catalog.hardware.gpu("rtx-4090"), "vllm", "bf16", 1, 4_096, 4_096)
    assert found is not None
    assert found.origin == "family"
    far = [
        matmul_time(catalog.hardware.gpu(name), "vllm", "bf16", 1, 4_096, 4_096)
        for name in ("tesla-v100-sxm2-32gb", "instinct-mi300x")
    ]
    assert [each and each.origin for each in far] == ["same instructions", "all cards"]


def test_formats_and_cards_without_figures_have_no_time(catalog: Catalog) -> None:
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    assert matmul_time(gpu, "vllm", "int3", 1, 4_096, 4_096) is None
    assert matmul_time(gpu.evolve(bandwidth_bytes_per_s=None), "vllm", "bf16", 1, 4_096, 4_096) is None


def test_a_graph_starts_a_quantised_product_as_fast_as_one_in_16_bits(catalog: Catalog) -> None:
    gpu = catalog.hardware.gpu("b200-sxm-180gb")
    assert launch_seconds(gpu, "tensorrt-llm") == pytest.approx(2.1e-6, rel=0.05)
    alone, fused = (matmul_time(gpu, "tensorrt-llm", "fp8", 64, 4_096, 4_096, fused=each) for each in (False, True))
    assert alone is not None
    assert fused is not None
    assert alone.seconds - fused.seconds == pytest.approx(13.9e-6 - 2.1e-6, rel=0.02)  # the launches of the two curves
    plain = matmul_time(gpu, "tensorrt-llm", "bf16", 64, 4_096, 4_096)
    assert matmul_time(gpu, "tensorrt-llm", "bf16", 64, 4_096, 4_096, fused=True) == plain


CARD = GpuFigures(1e12, 100e12, multiprocessors=100, cache_bytes=1.0, link_bytes_per_s=1e11, clock_hz=1e9)
CURVE = CollectiveCurve(launch=10, hops=1.5, link=0.8, crowd=0.9, overlap=30, protocol=0)


def test_an_all_reduce_sends_everything_twice_but_the_own_part() -> None:
    assert collective_shape("all-reduce", 4, 1e9).sent_bytes == 1.5e9
    assert collective_shape("all-gather", 4, 1e9).sent_bytes == 0.75e9


def test_large_messages_are_bound_by_the_links() -> None:
    shape = collective_shape("all-reduce", 4, 1e9)
    assert collective_seconds(CURVE, shape, CARD) == pytest.approx(1.5e9 / (1e11 * 0.8 * 0.9), rel=1e-4)


def test_small_messages_take_the_latency() -> None:
    assert collective_seconds(CURVE, collective_shape("all-reduce", 8, 8), CARD) == pytest.approx(
        10e-6 * 1.5**2, rel=1e-4
    )


def test_messages_in_between_grow_with_the_root_of_their_size() -> None:
    between = CURVE._replace(protocol=100.0)
    assert collective_seconds(between, collective_shape("all-gather", 2, 2e6), CARD) == pytest.approx(100e-6, rel=1e-4)
