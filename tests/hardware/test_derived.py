"""Derived figures: each re-derives from the raw record, and is unknown where an input is."""

import pytest

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.derived import DERIVED_FIGURES, half_rate
from planner.hardware.gpu import Gpu
from planner.hardware.query import GpuQuery, select
from planner.hardware.query_fields import GPU_QUERY_FIELDS
from planner.hardware.query_schema import QueryContext
from planner.units import GIB

DATE = {"basis": "published", "certainty": "confirmed", "source": "made up", "as_of": "2026-11-21"}


def _by_hand(gpu: Gpu) -> dict[str, float | None]:
    """Return every derived figure from the record's own fields, written out once more."""
    price, watts, bandwidth = gpu.launch_price_usd, gpu.board_power_watts, gpu.bandwidth_bytes_per_s
    rate, memory = half_rate(gpu), gpu.memory_bytes
    flops = rate.ops_per_s if rate else None
    return {
        "usd_per_gib": price / (memory / GIB) if price and memory else None,
        "usd_per_tflops": price / (flops / 1e12) if price and flops else None,
        "bandwidth_per_usd": bandwidth / 1e9 / price if bandwidth and price else None,
        "tflops_per_watt": flops / 1e12 / watts if flops and watts else None,
        "ridge_point": flops / bandwidth if flops and bandwidth else None,
        "gib_per_watt": memory / GIB / watts if memory and watts else None,
        "bandwidth_per_watt": bandwidth / 1e9 / watts if bandwidth and watts else None,
    }


def test_every_derived_cell_of_every_card_re_derives(hardware: HardwareCatalog) -> None:
    for gpu in hardware.gpus:
        by_hand = _by_hand(gpu)
        assert set(by_hand) == set(DERIVED_FIGURES)
        for key, expected in by_hand.items():
            found = DERIVED_FIGURES[key].value(gpu)
            assert found == (None if expected is None else pytest.approx(expected, rel=1e-12)), (gpu.id, key)
            assert GPU_QUERY_FIELDS[key].read(gpu, QueryContext()) == found
            assert ("unknown without" in DERIVED_FIGURES[key].explained(gpu)) == (found is None)


@pytest.mark.parametrize(
    ("gpu_id", "flop_per_byte"), [("rtx-4090", 164), ("h100-sxm5-80gb", 295), ("b200-sxm-180gb", 281)]
)
def test_known_ridge_points(hardware: HardwareCatalog, gpu_id: str, flop_per_byte: float) -> None:
    assert DERIVED_FIGURES["ridge_point"].value(hardware.gpu(gpu_id)) == pytest.approx(flop_per_byte, abs=0.5)


def test_the_16_bit_rate_is_bf16_else_fp16_else_unknown(hardware: HardwareCatalog) -> None:
    rates = {gpu_id: half_rate(hardware.gpu(gpu_id)) for gpu_id in ("rtx-4090", "titan-v", "gtx-1080", "tesla-k80")}
    assert [rate and rate.dtype for rate in rates.values()] == ["bf16", "fp16", None, None]


def test_a_price_of_another_kind_takes_the_place_of_that_at_launch(hardware: HardwareCatalog) -> None:
    figure, gpu = DERIVED_FIGURES["usd_per_gib"], hardware.gpu("rtx-3090")
    assert figure.value(gpu) == pytest.approx(1499 / 24)
    assert figure.value(gpu, 720) == 30
    assert figure.explained(gpu, 720, "used price") == "used price 720 USD ÷ memory 24 GiB"
    assert (figure.has_price, figure.inputs, figure.formula) == (True, ("price", "memory"), "price ÷ memory")


def test_words_say_what_is_missing_and_by_what_is_scaled(hardware: HardwareCatalog) -> None:
    ridge = DERIVED_FIGURES["ridge_point"]
    assert ridge.formula == "16-bit rate ÷ bandwidth × 1000"
    assert not ridge.has_price
    assert ridge.explained(hardware.gpu("rtx-4090")) == "BF16 dense 165.2 TFLOPS ÷ bandwidth 1,008 GB/s × 1000"
    bare = Gpu(
        id="bare", name="Bare", vendor="AMD", segment="soc", architecture="none", memory_label="?", memory_bytes=None,
        provenance=DATE,
    )  # fmt: skip
    assert ridge.explained(bare) == "unknown without the 16-bit rate and the bandwidth"
    assert DERIVED_FIGURES["usd_per_gib"].explained(bare) == "unknown without the launch price and the memory"


def test_derived_words_filter_and_sort(hardware: HardwareCatalog) -> None:
    found = select(hardware.gpus, GpuQuery(where="usd_per_gib < 30 and memory_gib >= 16", sort=("usd_per_gib",)))
    values = [DERIVED_FIGURES["usd_per_gib"].value(gpu) for gpu in found]
    assert found
    assert values == sorted(value for value in values if value is not None)
    assert max(value or 0 for value in values) < 30
