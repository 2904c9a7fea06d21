"""Every accelerator of the catalog: complete, sourced, dated and plausible."""

import re

import pytest
from each_record import for_each
from pydantic import ValidationError

from planner.errors import AmbiguousNameError, SpecError
from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.gpu import Gpu, Provenance
from planner.hardware.names import resolve_gpu
from planner.paths import catalog_dir
from planner.units import GIB

GPUS = load_hardware(catalog_dir()).gpus

# FP32 lanes that issue two instructions or packed pairs a clock: AMD counts four FLOP a lane there.
DUAL_ISSUE = {"CDNA3", "CDNA4", "RDNA3", "RDNA3.5", "RDNA4"}

# "Titan X" is what NVIDIA's 2016 card is called, and what people call the one of 2015.
SHARED_ALIASES = {"Titan X"}

UNITS = {"GHz": 1e9, "TFLOPS": 1e12, "TOPS": 1e12}


def provenances(gpu: Gpu) -> list[Provenance]:
    of_rates = [rate.provenance for rate in gpu.rates if rate.provenance]
    return [gpu.provenance, *(note.provenance for note in gpu.figure_notes), *of_rates]


def value_of(formula: str) -> float:
    """Multiply out a written formula: numbers with units, joined by × and ÷, remarks in parentheses."""
    value, operator = 1.0, "×"
    for part in re.split(r"([×÷])", re.sub(r"\([^)]*\)", "", formula)):
        if part in ("×", "÷"):
            operator = part
            continue
        number = re.match(r"\s*(\d+(?:\.\d+)?)(?:\^(\d+))?\s*(\w*)", part)
        assert number, f"no number in {part!r} of {formula!r}"
        factor = float(number[1]) ** int(number[2] or 1) * UNITS.get(number[3], 1)
        value = value * factor if operator == "×" else value / factor
    return value


def test_the_catalog_holds_every_accelerator() -> None:
    assert len(GPUS) == 388


@for_each("gpu", GPUS)
def test_record_is_sourced_dated_and_plausible(gpu: Gpu) -> None:
    for provenance in provenances(gpu):
        assert provenance.source.strip()
        assert "2026-01-01" <= provenance.as_of <= "2026-12-31"
    assert gpu.year is None or 2012 <= gpu.year <= 2026
    if gpu.memory_bytes is None:
        assert gpu.memory_label in ("shared", "not published") or gpu.memory_label.endswith("of SRAM")
    else:
        assert 2 * GIB <= gpu.memory_bytes <= 768 * GIB
        assert gpu.memory_label == f"{gpu.memory_bytes // GIB} GB"
    assert gpu.bandwidth_bytes_per_s is None or 1e10 <= gpu.bandwidth_bytes_per_s <= 3e13
    assert gpu.board_power_watts is None or 5 <= gpu.board_power_watts <= 2_000 or gpu.form_factor == "Wafer"
    assert gpu.boost_clock_hz is None or 5e8 <= gpu.boost_clock_hz <= 4e9
    assert all(1e10 <= rate.ops_per_s <= 2e17 for rate in gpu.rates)
    assert gpu.preliminary == (gpu.provenance.certainty == "preliminary")
    assert ("Laptop" in gpu.name or "laptop" in gpu.name) == (gpu.form_factor == "Laptop")


@for_each("gpu", GPUS)
def test_fields_with_notes_exist_and_are_set(gpu: Gpu) -> None:
    noted = [note.field for note in gpu.figure_notes]
    assert len(noted) == len(set(noted))
    assert all(getattr(gpu, field) is not None for field in noted)
    for field in ("usable_memory_bytes", "usable_memory_high_bytes", "smi_memory_bytes"):
        assert (getattr(gpu, field) is not None) == (field in noted)


@for_each("gpu", GPUS)
def test_memory_figures_stand_in_order(gpu: Gpu) -> None:
    device = gpu.device_memory_bytes
    if device is None:
        assert gpu.usable_memory_bytes is None
        return
    steps = [gpu.usable_memory_bytes, gpu.usable_memory_high_bytes, device]
    known = [step for step in steps if step is not None]
    assert known == sorted(known)
    assert gpu.smi_memory_bytes is None or 0.85 * device <= gpu.smi_memory_bytes <= device


@for_each("gpu", GPUS)
def test_derived_figures_follow_from_their_formulas(gpu: Gpu) -> None:
    for note in gpu.figure_notes:
        if note.provenance.basis == "derived":
            assert value_of(str(note.provenance.formula)) == getattr(gpu, note.field)
    for rate in gpu.rates:
        if rate.provenance and rate.provenance.basis == "derived":
            assert value_of(str(rate.provenance.formula)) == pytest.approx(rate.ops_per_s, rel=1e-9)


@pytest.mark.sweep
@for_each("gpu", GPUS)
def test_names_lead_back_to_the_record(gpu: Gpu, hardware: HardwareCatalog) -> None:
    for name in (gpu.id, gpu.name, *gpu.aliases):
        if name in SHARED_ALIASES:
            with pytest.raises(AmbiguousNameError):
                resolve_gpu(hardware, name)
        else:
            assert resolve_gpu(hardware, name).id == gpu.id


def test_aliases_are_unique() -> None:
    aliases = [alias.lower() for gpu in GPUS for alias in gpu.aliases]
    assert len(aliases) == len(set(aliases))


@for_each("gpu", [gpu for gpu in GPUS if gpu.vendor == "NVIDIA" and gpu.architecture != "Rubin"])
def test_dense_fp8_is_twice_fp16_on_nvidia(gpu: Gpu) -> None:
    fp16, fp8 = gpu.rate("fp16"), gpu.rate("fp8")
    if fp16 and fp8:  # the L40S datasheet prints 733 against 362, 2.5 % off
        assert fp8.ops_per_s == pytest.approx(2 * fp16.ops_per_s, rel=0.03)


@for_each("gpu", GPUS)
def test_fp32_is_two_flop_a_core_and_clock(gpu: Gpu) -> None:
    fp32 = next((rate for rate in gpu.rates if rate.dtype == "fp32" and rate.unit == "vector"), None)
    if fp32 and gpu.shader_cores and gpu.boost_clock_hz:
        per_clock = 4 if gpu.architecture in DUAL_ISSUE else 2
        assert fp32.ops_per_s == pytest.approx(per_clock * gpu.shader_cores * gpu.boost_clock_hz, rel=0.03)


@for_each("gpu", GPUS)
def test_rates_are_one_of_a_kind_and_say_what_they_accumulate_in(gpu: Gpu) -> None:
    kinds = [(rate.dtype, rate.unit) for rate in gpu.rates]
    assert len(kinds) == len(set(kinds))
    for rate in gpu.rates:
        if rate.unit == "vector":
            assert rate.accumulate is None
        elif rate.dtype == "int8":
            assert rate.accumulate == "int32"
        elif gpu.vendor == "NVIDIA" and rate.dtype in ("bf16", "tf32"):
            assert rate.accumulate == "fp32"


@pytest.mark.parametrize(
    ("gpu_id", "devices", "device_gib"),
    [
        ("tesla-k80", 2, 12),
        ("tesla-m60", 2, 8),
        ("a16", 4, 16),
        ("instinct-mi250", 2, 64),
        ("instinct-mi250x", 2, 64),
        ("max-1550", 2, 64),
        ("tpu-v3", 2, 16),
        ("tpu-v7-ironwood", 2, 96),
        ("inferentia2", 2, 16),
        ("b200-sxm-180gb", 1, 180),
        ("gb200-186gb", 1, 186),
    ],
)
def test_boards_know_their_devices(hardware: HardwareCatalog, gpu_id: str, devices: int, device_gib: int) -> None:
    gpu = hardware.gpu(gpu_id)
    assert gpu.device_count == devices
    assert gpu.device_memory_bytes == device_gib * GIB


@pytest.mark.parametrize(
    "gpu_id", ["apple-m4-max", "gb10", "jetson-agx-orin-64gb", "ryzen-ai-max-395", "instinct-mi300a"]
)
def test_shared_memory_is_marked(hardware: HardwareCatalog, gpu_id: str) -> None:
    assert hardware.gpu(gpu_id).unified_memory


def test_geforce_rate_is_the_dense_one_with_fp32_accumulate(hardware: HardwareCatalog) -> None:
    rate = hardware.gpu("rtx-4090").rate("bf16")
    assert rate is not None
    assert (rate.ops_per_s, rate.unit, rate.accumulate) == (165.2e12, "tensor", "fp32")


def test_cards_without_tensor_cores_have_vector_fp16(hardware: HardwareCatalog) -> None:
    rate = hardware.gpu("tesla-p100-sxm2-16gb").rate("fp16")
    assert rate is not None
    assert rate.unit == "vector"
    assert hardware.gpu("tesla-p100-sxm2-16gb").rate("bf16") is None


def test_provenance_of_a_figure_falls_back_to_the_record(hardware: HardwareCatalog) -> None:
    gpu = hardware.gpu("rtx-4090")
    assert gpu.provenance_of("bandwidth_bytes_per_s") is gpu.provenance
    assert gpu.provenance_of("usable_memory_bytes").basis == "measured"
    assert gpu.provenance_of("rate.int4") is gpu.provenance
    assert hardware.gpu("rtx-4080").provenance_of("rate.bf16").basis == "derived"


def test_a_derived_figure_needs_its_formula() -> None:
    with pytest.raises(SpecError, match="needs its formula"):
        Provenance(basis="derived", certainty="confirmed", source="a datasheet", as_of="2026-11-21")


def test_unknown_stays_unknown(hardware: HardwareCatalog) -> None:
    a10g = hardware.gpu("a10g")
    assert a10g.rates == ()
    assert a10g.shader_cores is None
    assert hardware.gpu("b100").year is None
    assert a10g.evolve(memory_bytes=None).device_memory_bytes is None


def test_only_a_card_of_its_own_has_the_words_of_one():
    card = load_hardware(catalog_dir()).gpu("rtx-4090")
    assert {"vram", "card"} <= card.kind_words
    assert not {"vram", "card"} & card.evolve(unified_memory=True).kind_words


def test_figures_of_a_card_may_be_as_small_as_one():
    fields = ("memory_bytes", "memory_bus_bits", "shader_cores", "tensor_cores", "l1_cache_bytes", "l2_cache_bytes")
    bare = GPUS[0].model_dump(exclude_unset=True) | dict.fromkeys(("usable_memory_bytes", "smi_memory_bytes"))
    small = Gpu.model_validate({**bare, **dict.fromkeys(fields, 1)})
    assert {getattr(small, field) for field in fields} == {1}
    for field in fields:
        with pytest.raises(ValidationError, match=field):
            Gpu.model_validate({**bare, field: 0})

    assert small.unified_memory is False
