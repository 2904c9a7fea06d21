"""Every record against arithmetic: rates, clocks, buses, sources, and what popular figures really are."""

from typing import Final

import pytest
from each_record import for_each

from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.gpu import Gpu, Provenance
from planner.hardware.system import System
from planner.paths import catalog_dir

pytestmark = pytest.mark.sweep

HARDWARE = load_hardware(catalog_dir())
GPUS, SYSTEMS = HARDWARE.gpus, HARDWARE.systems
_GBIT_PER_PIN: Final = {
    "DDR3": (1.6, 2.2),
    "GDDR5": (3.6, 9.1),
    "GDDR5X": (9.0, 11.5),
    "GDDR6": (10, 20.1),
    "GDDR6X": (18.9, 24),
    "GDDR7": (18, 32.1),
    "HBM2": (1.2, 2.5),
    "HBM2e": (2.0, 3.7),
    "HBM3": (4.5, 6.6),
    "HBM3e": (5.8, 9.9),
    "LPDDR4": (3.1, 4.3),
    "LPDDR4X": (3.7, 4.3),
    "LPDDR5": (4.2, 6.5),
    "LPDDR5X": (7.4, 10.8),
}
"""What memories of each type run at; JEDEC's and the makers' speed grades, and the lower ones that cards use."""
_TWICE: Final = {
    "dual issue": ("RDNA3", "RDNA3.5", "RDNA4"),
    "packed instructions": ("CDNA3", "CDNA4"),
}
"""Why AMD counts twice 2 × cores × clock for FP32, by architecture: two instructions a cycle, or two values in one.

**Source** ROCm Compute Profiler, RDNA; ROCm, MI300 microarchitecture.
"""
_NO_PRICE_IN_USD: Final = {
    *("rtx-3060-8-gb", "rtx-4090-d", "rtx-5090-d", "rtx-5090-d-v2", "gtx-1630", "titan-v-ceo"),
    *("radeon-rx-570-8gb", "radeon-rx-580-8gb", "radeon-rx-590", "radeon-rx-vega-56", "radeon-rx-vega-64"),
    *("radeon-rx-5600-xt", "radeon-rx-5700", "radeon-rx-5700-xt", "radeon-rx-6600"),
    *("radeon-rx-6600-xt", "radeon-rx-6650-xt", "radeon-rx-6700", "radeon-rx-6750-xt", "radeon-rx-7600"),
    *("radeon-rx-9060-xt-8gb", "radeon-rx-9070-gre"),
}
"""Desktop cards without a known launch price in USD; those with a D are made for China, the CEO Edition was a gift."""
_VENDOR_SAYS_DOUBLE: Final = ("NVIDIA", "AMD", "Google")
"""Intel says one rate for both of Gaudi 3, and AWS others of its chips."""


def _all_provenance(gpu: Gpu) -> list[Provenance]:
    rates = [rate.provenance for rate in gpu.rates if rate.provenance is not None]
    return [gpu.provenance, *rates, *(note.provenance for note in gpu.figure_notes)]


@for_each("gpu", GPUS)
def test_bandwidth_is_bus_times_rate(gpu: Gpu) -> None:
    """The rate that follows from bus and bandwidth is one that memory of this type has."""
    if gpu.memory_bus_bits is None or gpu.bandwidth_bytes_per_s is None or gpu.memory_type is None:
        pytest.skip("bus, bandwidth or type is not published")
    low, high = _GBIT_PER_PIN[gpu.memory_type]
    gbit = gpu.bandwidth_bytes_per_s * 8 / gpu.memory_bus_bits / 1e9
    assert low <= gbit <= high


@for_each("gpu", [gpu for gpu in GPUS if gpu.vendor in _VENDOR_SAYS_DOUBLE and gpu.architecture != "Rubin"])
def test_dense_fp8_is_twice_dense_fp16(gpu: Gpu) -> None:
    fp8, fp16 = gpu.rate("fp8"), gpu.rate("fp16") or gpu.rate("bf16")
    if fp8 is None or fp16 is None:
        pytest.skip("one of the rates is not published")
    assert fp8.ops_per_s == pytest.approx(2 * fp16.ops_per_s, rel=0.03)


@for_each("gpu", GPUS)
def test_fp32_is_two_operations_a_core_and_clock_within_3_percent(gpu: Gpu) -> None:
    rate = gpu.rate("fp32")
    if rate is None or rate.unit != "vector" or gpu.shader_cores is None or gpu.boost_clock_hz is None:
        pytest.skip("rate, cores or clock is not published")
    doubled = [how for how, architectures in _TWICE.items() if gpu.architecture in architectures]
    issued = 4 if doubled else 2
    assert rate.ops_per_s == pytest.approx(issued * gpu.shader_cores * gpu.boost_clock_hz, rel=0.03)
    assert [how for how in _TWICE if any(f"FP32 counts {how}" in note for note in gpu.notes)] == doubled


def test_every_desktop_card_for_consumers_has_a_launch_price() -> None:
    cards = [gpu for gpu in GPUS if gpu.segment == "consumer" and gpu.form_factor != "Laptop"]
    assert {gpu.id for gpu in cards if gpu.launch_price_usd is None} == _NO_PRICE_IN_USD


@for_each("gpu", GPUS)
def test_every_figure_has_source_and_date(gpu: Gpu) -> None:
    for provenance in _all_provenance(gpu):
        assert provenance.source.strip()
        assert "yours" not in (provenance.basis, provenance.certainty)
        assert provenance.as_of >= "2026-01-01"
        assert (provenance.basis == "derived") == (provenance.formula is not None)


@for_each("gpu", GPUS)
def test_laptop_parts_say_so_in_their_name(gpu: Gpu) -> None:
    assert (gpu.form_factor == "Laptop") == ("laptop" in gpu.name.lower())


@for_each("record", [*GPUS, *SYSTEMS])
def test_no_zero_stands_for_unknown(record: Gpu | System) -> None:
    fields = record.model_dump()
    numbers = {name: value for name, value in fields.items() if isinstance(value, int | float)}
    assert not [name for name, value in numbers.items() if value == 0 and not isinstance(value, bool)]
    assert not [name for name, value in fields.items() if value in ("", "N/A", "n/a", "unknown", "-")]


@for_each("system", SYSTEMS)
def test_systems_add_up(system: System) -> None:
    if system.gpu_id is None or system.gpu_count is None or system.memory_bytes is None:
        pytest.skip("the card, their number or the memory is not published")
    each = HARDWARE.gpu(system.gpu_id).memory_bytes
    assert each is not None
    assert system.memory_bytes == pytest.approx(each * system.gpu_count, rel=0.02)


CLASSICS: Final = (
    "tesla-k80 tesla-p100-sxm2-16gb tesla-v100-sxm2-16gb a100-sxm4-40gb tesla-t4 rtx-2060 rtx-2070 rtx-2080 rtx-2080-ti"
    " rtx-3060-12-gb rtx-3070 rtx-3080-10-gb rtx-3090 titan-v titan-rtx quadro-rtx-6000 rtx-a6000 a40 radeon-rx-6800-xt"
    " radeon-rx-6900-xt geforce-930m tpu-v2 tpu-v3"
)
CLASSIC_SYSTEMS: Final = "tpu-v2-8 tpu-v3-8 tpu-v3-pod dgx-1-p100 dgx-1-v100-16gb dgx-2 dgx-a100-320gb dgx-a100-640gb"


@pytest.mark.parametrize("gpu_id", CLASSICS.split())
def test_every_classic_is_there_with_its_figures(gpu_id: str) -> None:
    gpu = HARDWARE.gpu(gpu_id)
    assert gpu.memory_bytes
    assert gpu.bandwidth_bytes_per_s
    assert gpu.rates


@pytest.mark.parametrize("system_id", CLASSIC_SYSTEMS.split())
def test_every_classic_system_says_what_its_performance_counts(system_id: str) -> None:
    system = HARDWARE.system(system_id)
    assert system.gpu_id
    assert system.memory_bytes
    assert system.performance_label
    assert system.performance_basis
    assert any(word in system.performance_basis.lower() for word in ("dense", "sparse", "vector"))


@pytest.mark.parametrize(
    ("record_id", "figure", "word"),
    [
        ("a100-sxm4-40gb", "624", "sparsity"),
        ("a100-pcie-80gb", "624", "sparsity"),
        ("tesla-v100-sxm2-16gb", "149", "no figure of any"),
        ("tesla-v100-pcie-32gb", "149", "no figure of any"),
        ("a40", "299.4", "sparsity"),
        ("tpu-v3", "420", "markets"),
        ("tesla-p100-pcie-16gb", "21 TFLOPS", "vector"),
        ("rtx-3090", "285", "sparsity"),
        ("h100-sxm5-80gb", "1979", "sparse"),
        ("l4", "485", "sparse"),
    ],
)
def test_a_popular_figure_is_said_to_be_what_it_is(record_id: str, figure: str, word: str) -> None:
    notes = HARDWARE.gpu(record_id).notes
    assert any(figure in note and word in note for note in notes), notes


def test_sparse_performance_of_systems_is_called_so(hardware: HardwareCatalog) -> None:
    assert "SPARSE" in (hardware.system("dgx-a100-640gb").performance_basis or "")
    assert "vector" in (hardware.system("dgx-1-p100").performance_basis or "")
