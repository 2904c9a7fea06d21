"""Names that people and drivers write: exact after normalisation, and never a wrong card."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import AmbiguousNameError, SpecError
from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.gpu import Gpu
from planner.hardware.names import find_gpu_candidates, hardware_family, parse_count, resolve_gpu
from planner.paths import catalog_dir

HARDWARE = load_hardware(catalog_dir())


@pytest.mark.parametrize(
    ("text", "gpu_id"),
    [
        ("RTX 4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("RTX 4090 24 GB", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("4090 laptop", "rtx-4090-laptop-gpu"),
        ("RTX 4090 Mobile", "rtx-4090-laptop-gpu"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx-4090-laptop-gpu"),
        ("3060ti", "rtx-3060-ti"),
        ("4080 super", "rtx-4080-super"),
        ("RTX 3060 12GB", "rtx-3060-12-gb"),
        ("h100-sxm", "h100-sxm5-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA H100 NVL", "h100-nvl-94gb"),
        ("NVIDIA H200", "h200-sxm-141gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("80 GiB A100 PCIe", "a100-pcie-80gb"),
        ("Tesla T4", "tesla-t4"),
        ("t4-16gb", "tesla-t4"),
        ("Tesla V100-SXM2-32GB", "tesla-v100-sxm2-32gb"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("RTX A6000", "rtx-a6000"),
        ("Quadro RTX 6000", "quadro-rtx-6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-blackwell-maxq"),
        ("NVIDIA B200", "b200-sxm-180gb"),
        ("L40", "l40"),
        ("L40S", "l40s"),
        ("MI300X", "instinct-mi300x"),
        ("AMD Instinct MI300X OAM", "instinct-mi300x"),
        ("rx 7900 xtx", "radeon-rx-7900-xtx"),
        ("M4 Max", "apple-m4-max"),
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "ryzen-ai-max-395"),
        ("Intel(R) Data Center GPU Max 1550", "max-1550"),
        ("TPU v5e", "tpu-v5e"),
        ("a10-24gb", "a10"),
        ("p100-16gb-sxm", "tesla-p100-sxm2-16gb"),
    ],
)
def test_a_name_means_one_card(text: str, gpu_id: str) -> None:
    assert resolve_gpu(HARDWARE, text).id == gpu_id


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("A100", ("a100-pcie-40gb", "a100-sxm4-40gb", "a100-pcie-80gb", "a100-sxm4-80gb")),
        ("A100 80GB", ("a100-pcie-80gb", "a100-sxm4-80gb")),
        ("A100-80G", ("a100-pcie-80gb", "a100-sxm4-80gb")),
        ("A100 SXM", ("a100-sxm4-40gb", "a100-sxm4-80gb")),
        ("H100", ("h100-pcie-80gb", "h100-sxm5-80gb", "h100-nvl-94gb", "h100-pcie-96gb")),
        ("3060", ("rtx-3060-8-gb", "rtx-3060-12-gb")),
        ("NVIDIA GeForce RTX 3060", ("rtx-3060-8-gb", "rtx-3060-12-gb")),
        ("Titan X", ("gtx-titan-x-maxwell", "titan-x-pascal")),
        ("RTX PRO 6000", tuple(f"rtx-pro-6000-blackwell-{edition}" for edition in ("ws", "maxq", "server"))),
    ],
)
def test_a_name_of_several_lists_them(text: str, ids: tuple[str, ...]) -> None:
    with pytest.raises(AmbiguousNameError) as caught:
        resolve_gpu(HARDWARE, text)
    assert caught.value.candidates == ids
    assert all(gpu_id in caught.value.message for gpu_id in ids)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("RTX 409", "rtx-4090"),
        ("490", "Close names: rtx-4090,"),
        ("RTX 4900", "Close names: rtx-4090,"),
        ("4090 Ti", "Close names: rtx-4090,"),
        ("orin", "jetson-orin-nano-4gb"),
        ("RX 5500 XT", "Did you mean 'radeon-rx-5500-xt-8gb'"),  # a 4 GB card of this name exists elsewhere
        ("GTX 4090", "rtx-4090"),
        ("AMD 4090", "rtx-4090"),
        ("RTX 4090 48GB", "rtx-4090"),
        ("Voodoo 5", "gpu-planner gpus"),
        ("", "gpu-planner gpus"),
        ("GPU", "gpu-planner gpus"),
    ],
)
def test_an_unknown_name_is_never_guessed(text: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolve_gpu(HARDWARE, text)
    assert not isinstance(caught.value, AmbiguousNameError)
    assert hint in caught.value.hint
    assert "gpu-planner gpus" in caught.value.hint


def test_a_family_name_never_takes_laptop_parts_or_other_models(hardware: HardwareCatalog) -> None:
    assert [gpu.id for gpu in find_gpu_candidates(hardware, "RTX 3080")] == ["rtx-3080-10-gb", "rtx-3080-12-gb"]
    assert [gpu.id for gpu in find_gpu_candidates(hardware, "3080 laptop")] == [
        "rtx-3080-8-gb-laptop-gpu",
        "rtx-3080-16-gb-laptop-gpu",
    ]
    assert find_gpu_candidates(hardware, "NVIDIA") == ()


@settings(max_examples=50)
@given(st.text(max_size=40))
def test_any_text_gives_a_card_or_an_error_with_a_hint(text: str) -> None:
    try:
        outcome = resolve_gpu(HARDWARE, text).id
    except SpecError as error:
        outcome = error.hint
    assert outcome


@pytest.mark.parametrize("text", ["24gb", " 24 GiB "])
def test_a_size_alone_is_no_card_but_a_filter(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolve_gpu(HARDWARE, text)
    assert "gpus --where 'memory_gib == 24'" in caught.value.hint


@settings(max_examples=50)
@given(st.sampled_from(HARDWARE.gpus), st.randoms(use_true_random=False))
def test_case_and_punctuation_do_not_matter(gpu: Gpu, random: Random) -> None:
    words = gpu.id.split("-")
    combined = "".join(random.choice((str.upper, str.lower))(letter) for letter in "_".join(words))
    assert resolve_gpu(HARDWARE, combined).id == gpu.id


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 x RTX 3090", (2, "RTX 3090")),
        (" 2×DGX H100 ", (2, "DGX H100")),
        ("2xrtx-3090", (2, "rtx-3090")),
        ("0 x l4", (0, "l4")),
        ("RTX 3090", (None, "RTX 3090")),
        ("7900XTX", (None, "7900XTX")),
        ("8 H100", (8, "H100")),
        ("Dual RTX 3090", (2, "RTX 3090")),
        ("4060 Ti", (None, "4060 Ti")),
        ("24 GB", (None, "24 GB")),
        ("", (None, "")),
    ],
)
def test_a_number_stands_before_the_name(text: str, expected: tuple[int | None, str]) -> None:
    assert parse_count(text) == expected


def test_a_family_is_what_shares_a_name_else_what_has_its_words(hardware: HardwareCatalog) -> None:
    assert [each.id for each in hardware_family(hardware, "RTX 3080")] == ["rtx-3080-10-gb", "rtx-3080-12-gb"]
    assert {each.id for each in hardware_family(hardware, "DGX-1")} == {
        each.id for each in hardware.systems if "DGX-1" in each.name
    }
    tpus = hardware_family(hardware, "TPU")
    assert {each.id for each in tpus} >= {"tpu-v5e", "tpu-v6e"}
    assert all("tpu" in each.id for each in tpus)
    assert hardware_family(hardware, "abacus") == ()


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("A100 40G*4", (4, "A100 40G")),
        ("RTX 4090 x2", (2, "RTX 4090")),
        ("8 * A10G", (8, "A10G")),
        ("RTX 4090", (None, "RTX 4090")),
        ("24 GB", (None, "24 GB")),
    ],
)
def test_a_count_may_stand_before_or_after_a_name(text: str, split: tuple[int | None, str]) -> None:
    assert parse_count(text) == split


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("H100s", "Did you mean 'H100'?"),
        ("Google Colab T4", "Did you mean 'T4'?"),
        ("MacBook Pro 16GB", "Name its chip, such as apple-m5: `gpu-planner gpus macbook pro` lists 15."),
        ("RTX 4070S", "rtx-4070-super"),
    ],
)
def test_plurals_places_and_computers_lead_to_the_card(text: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolve_gpu(load_hardware(catalog_dir()), text)
    assert hint in caught.value.hint


def test_every_card_and_system_is_found_where_files_are_parsed_on_demand():
    on_demand = load_hardware(catalog_dir(), on_demand=True)
    assert [on_demand.gpu(gpu.id) for gpu in HARDWARE.gpus] == list(HARDWARE.gpus)
    assert [on_demand.system(system.id) for system in HARDWARE.systems] == list(HARDWARE.systems)
    assert [resolve_gpu(load_hardware(catalog_dir(), on_demand=True), name).id for name in ("RTX 4090", "T4")] == [
        "rtx-4090",
        "tesla-t4",
    ]
    with pytest.raises(SpecError, match="has the id"):
        on_demand.gpu("rtx-0")
    assert on_demand.gpu("h100-sxm5-80gb-mig-1g.10gb") == HARDWARE.gpu("h100-sxm5-80gb-mig-1g.10gb")
