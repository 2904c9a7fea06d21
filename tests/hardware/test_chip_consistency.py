"""Every record against how its chip is built: units, ratios of rates, memory chips, links and generations."""

import re
from typing import Final

import pytest
from each_record import for_each

from planner.hardware.catalog import load_hardware
from planner.hardware.gpu import Gpu
from planner.hardware.system import System
from planner.paths import catalog_dir
from planner.units import GIB

pytestmark = pytest.mark.sweep

HARDWARE = load_hardware(catalog_dir())
GPUS, SYSTEMS = HARDWARE.gpus, HARDWARE.systems
NVIDIA = [gpu for gpu in GPUS if gpu.vendor == "NVIDIA"]
AMD = [gpu for gpu in GPUS if gpu.vendor == "AMD"]

_FP32_CORES_AN_SM: Final = {"7.0": 64, "7.2": 64, "7.5": 64, "8.0": 64}
"""By compute capability; 128 from 8.6 on. **Source** CUDA C++ Programming Guide, compute capabilities."""
_TENSOR_CORES_NOT_BY_SM: Final = {"jetson-t4000-64gb": 64, "jetson-t5000-128gb": 96}
"""What NVIDIA prints for Jetson Thor, whose 12 and 20 SMs would have 48 and 80."""
_HALF_RATE: Final = re.compile(r"GeForce RTX")
"""Cards whose tensor cores accumulate FP16 in FP32 at half the rate; the rates are those with FP32."""
_HALF_RATE_SERVERS: Final = {"l20", "l40"}
"""Server cards at half the rate of the L40S in every format, as NVIDIA prints them."""
_FP16_AN_SM_AND_CLOCK: Final = {"7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "12.0": 1024}
"""Dense operations of a full-rate card with FP32 accumulate. **Source** NVIDIA's architecture white papers."""
_FP64_SHARE: Final = {
    **dict.fromkeys(("3.5", "3.7"), 3),
    **dict.fromkeys(("5.0", "5.2", "6.1", "7.5"), 32),
    **dict.fromkeys(("6.0", "7.0", "8.0", "9.0", "10.0"), 2),
    **dict.fromkeys(("8.6", "8.9", "12.0", "10.3"), 64),
}
"""What part of FP32 FP64 is. **Source** CUDA C++ Programming Guide, throughput of native arithmetic instructions."""
_FP64_SHARE_AMD: Final = {
    **dict.fromkeys(("CDNA", "CDNA3", "CDNA4", "GCN 5.1 (Vega 20)"), 2),
    **{"CDNA2": 1, "RDNA2": 16, "RDNA3": 32, "RDNA4": 32},
}
"""The same by AMD's architecture, of vectors. **Source** AMD's data sheets of MI60, MI100, MI250X and RX 7900 XTX."""
_CUT_FP64: Final = {"radeon-vii": 4}
"""Products with less FP64 than their chip."""
_CAPABILITIES: Final = {
    "Kepler": "3",
    "Maxwell": "5",
    "Pascal": "6",
    "Volta": "7.0 7.2",
    "Turing": "7.5",
    "Ampere": "8.0 8.6 8.7",
    "Ada Lovelace": "8.9",
    "Hopper": "9.0",
    "Blackwell": "10.0 11.0 12.0 12.1",
    "Blackwell Ultra": "10.3",
}
_NVLINK: Final = {"Pascal": 1, "Volta": 2, "Turing": 2, "Ampere": 3, "Hopper": 4, "Blackwell": 5, "Blackwell Ultra": 5}
_PCIE: Final = {
    **dict.fromkeys(("Kepler", "Maxwell", "Pascal", "Volta", "Turing"), 3),
    **dict.fromkeys(("Ampere", "Ada Lovelace"), 4),
    **dict.fromkeys(("Hopper", "Blackwell", "Blackwell Ultra"), 5),
}
_FP16_A_CU_AND_CLOCK: Final = {"CDNA": 1024, "CDNA2": 1024, "CDNA3": 2048, "CDNA4": 4096, "RDNA3": 512, "RDNA4": 1024}
"""Dense matrix operations. **Source** ROCm, MI100, MI250 and MI300 microarchitecture; AMD's sparse rates for RDNA 4."""
_CHIP_GIB: Final = (0.25, 0.5, 1, 2, 3, 4, 6)
"""GiB on each 32 bits of a GDDR bus: a memory chip of 0.25 to 3 GiB, or two of them, one on each side of the board."""


def _sms(gpu: Gpu) -> float:
    assert gpu.shader_cores is not None
    return gpu.shader_cores / _FP32_CORES_AN_SM.get(gpu.compute_capability or "", 128)


@for_each("gpu", [gpu for gpu in NVIDIA if gpu.tensor_cores])
def test_tensor_cores_are_those_of_the_sms(gpu: Gpu) -> None:
    """Eight an SM in Volta and Turing, four since Ampere; a list that counts the full chip fails here."""
    an_sm = 8 if gpu.architecture in ("Volta", "Turing") else 4
    assert gpu.tensor_cores == _TENSOR_CORES_NOT_BY_SM.get(gpu.id, an_sm * _sms(gpu))


@for_each("gpu", NVIDIA)
def test_dense_rates_stand_in_their_ratios(gpu: Gpu) -> None:
    """Each halving of the width doubles the rate; a sparse or an FP16-accumulate figure among them fails here."""
    fp16 = gpu.rate("fp16")
    if fp16 is None or fp16.unit == "vector" or gpu.architecture in ("Blackwell Ultra", "Rubin"):
        pytest.skip("no tensor rate to compare with, or one that is not in proportion")
    integer = 2 if _HALF_RATE.search(gpu.name) else 1
    expected = {"tf32": 0.5, "bf16": 1, "fp8": 2, "int8": 2 * integer, "fp4": 4 * integer}
    known = {dtype: rate.ops_per_s / fp16.ops_per_s for dtype in expected if (rate := gpu.rate(dtype))}
    assert known == pytest.approx({dtype: expected[dtype] for dtype in known}, rel=0.03)


@for_each("gpu", NVIDIA)
def test_the_tensor_rate_follows_from_sms_and_clock(gpu: Gpu) -> None:
    """Of Hopper and the large Blackwell NVIDIA prints the rate at a lower clock than the highest."""
    fp16, an_sm = gpu.rate("fp16"), _FP16_AN_SM_AND_CLOCK.get(gpu.compute_capability or "")
    if fp16 is None or fp16.unit == "vector" or an_sm is None or not (gpu.shader_cores and gpu.boost_clock_hz):
        pytest.skip("the rate, its units or the clock is not published")
    share = 0.5 if _HALF_RATE.search(gpu.name) or gpu.id in _HALF_RATE_SERVERS else 1.0
    assert fp16.ops_per_s == pytest.approx(share * an_sm * _sms(gpu) * gpu.boost_clock_hz, rel=0.03)


@for_each("gpu", NVIDIA)
def test_fp64_is_the_share_of_fp32_that_the_chip_has(gpu: Gpu) -> None:
    fp64, fp32 = gpu.rate("fp64"), gpu.rate("fp32")
    if fp64 is None or fp32 is None:
        pytest.skip("one of the rates is not published")
    share = _FP64_SHARE[gpu.compute_capability or ""]
    assert fp32.ops_per_s / fp64.ops_per_s == pytest.approx(share, rel=0.04)


@pytest.mark.parametrize("gpu", AMD, ids=lambda gpu: gpu.id)
def test_fp64_of_amd_is_the_share_of_fp32_that_the_product_has(gpu: Gpu) -> None:
    """A Radeon with the FP64 of the Instinct on the same chip fails here."""
    rates = {rate.dtype: rate.ops_per_s for rate in gpu.rates if rate.unit == "vector"}
    if not {"fp32", "fp64"} <= rates.keys():
        pytest.skip("one of the rates is not published")
    share = _CUT_FP64.get(gpu.id, _FP64_SHARE_AMD[gpu.architecture])
    assert rates["fp32"] / rates["fp64"] == pytest.approx(share, rel=0.03)


@for_each("gpu", [gpu for gpu in NVIDIA if gpu.architecture in ("Blackwell Ultra", "Rubin")])
def test_int8_is_cut_to_less_than_a_twentieth_of_fp8_since_blackwell_ultra(gpu: Gpu) -> None:
    int8, fp8 = gpu.rate("int8"), gpu.rate("fp8")
    assert int8 is None or (fp8 is not None and int8.ops_per_s < fp8.ops_per_s / 20)


@pytest.mark.parametrize("gpu", AMD, ids=lambda gpu: gpu.id)
def test_matrix_rates_of_amd_follow_from_units_and_clock(gpu: Gpu) -> None:
    fp16, a_cu = gpu.rate("fp16"), _FP16_A_CU_AND_CLOCK.get(gpu.architecture)
    if fp16 is None or fp16.unit == "vector" or a_cu is None:
        pytest.skip("no matrix rate is published")
    assert gpu.shader_cores is not None
    assert gpu.boost_clock_hz is not None
    assert fp16.ops_per_s == pytest.approx(a_cu * gpu.shader_cores / 64 * gpu.boost_clock_hz, rel=0.03)
    expected = {"bf16": 0.5 if gpu.architecture == "CDNA" else 1, "tf32": 0.5, "fp8": 2, "fp4": 4}
    expected["int8"] = 1 if gpu.architecture == "CDNA2" else 2
    known = {dtype: rate.ops_per_s / fp16.ops_per_s for dtype in expected if (rate := gpu.rate(dtype))}
    assert known == pytest.approx({dtype: expected[dtype] for dtype in known}, rel=0.03)


@for_each("gpu", [gpu for gpu in GPUS if "DDR" in (gpu.memory_type or "")])
def test_memory_is_a_number_of_chips_on_its_bus(gpu: Gpu) -> None:
    if not str(gpu.memory_type).startswith(("GDDR", "DDR")) or gpu.memory_bus_bits is None or gpu.memory_bytes is None:
        pytest.skip("no graphics memory, or its bus is not published")
    assert gpu.memory_bytes / GIB / (gpu.memory_bus_bits / 32) in _CHIP_GIB


@for_each("gpu", NVIDIA)
def test_the_compute_capability_is_one_of_the_architecture(gpu: Gpu) -> None:
    if gpu.compute_capability is None:
        pytest.skip("not published")
    known = _CAPABILITIES[gpu.architecture].split()
    assert gpu.compute_capability in known or gpu.compute_capability.split(".")[0] in known


@for_each("gpu", NVIDIA)
def test_links_are_of_the_generation_of_the_architecture(gpu: Gpu) -> None:
    """Modules for boards of their own may have an older PCIe than cards of the same architecture, never a newer."""
    link = gpu.interconnect or ""
    assert {int(found) for found in re.findall(r"NVLink(\d)", link)} <= {_NVLINK.get(gpu.architecture, 6)}
    found = re.search(r"PCIe (\d)\.0 x(\d+)", link)
    if found:
        newest = _PCIE[gpu.architecture]
        assert int(found[1]) == newest or (gpu.segment == "edge" and int(found[1]) <= newest + 1)
        assert int(found[2]) in (4, 8, 16)


@for_each("system", [each for each in SYSTEMS if each.gpu_id])
def test_a_system_has_the_links_of_its_cards_and_is_no_older(system: System) -> None:
    card = HARDWARE.gpu(str(system.gpu_id))
    each = re.search(r"(\d+) GB/s (?:total )?per GPU", system.interconnect or "")
    if each and card.interconnect:
        assert f"{each[1]} GB/s" in card.interconnect
    if system.released and card.released:
        digits = min(len(system.released), len(card.released))
        assert system.released[:digits] >= card.released[:digits]


@for_each("gpu", GPUS)
def test_notes_on_tensor_rates_stand_where_there_are_such_rates(gpu: Gpu) -> None:
    told = [note for note in gpu.notes if "FP32 accumulate" in note and "left empty" not in note]
    if told:
        assert any(rate.unit == "tensor" and rate.accumulate == "fp32" for rate in gpu.rates), told
