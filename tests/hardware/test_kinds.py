"""Words that introductions use for hardware: each lists what it means, and is explained."""

import pytest
from each_record import for_each

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.kinds import KINDS, describe_kinds
from planner.hardware.query import GpuQuery, select

WORDS = {
    "CUDA cores": ({"rtx-4090", "gtx-1080-ti"}, {"radeon-rx-7900-xtx", "gaudi3"}),
    "tensor cores": ({"rtx-4090", "h100-sxm5-80gb"}, {"gtx-1080-ti", "radeon-rx-7900-xtx"}),
    "GDDR": ({"rtx-4090", "radeon-rx-7900-xtx"}, {"h100-sxm5-80gb", "apple-m4"}),
    "hbm3": ({"h100-sxm5-80gb"}, {"rtx-4090", "apple-m3"}),
    "VRAM": ({"rtx-4090"}, {"apple-m4"}),
    "NVLink": ({"h100-sxm5-80gb"}, {"rtx-4090"}),
    "workstation card": ({"rtx-5000-ada"}, {"rtx-4090"}),
    "gaming card": ({"rtx-4090", "radeon-rx-7900-xtx"}, {"rtx-5000-ada", "h100-sxm5-80gb"}),
    "data center GPU": ({"h100-sxm5-80gb"}, {"rtx-4090", "gaudi3"}),
    "cloud TPU": ({"tpu-v5e"}, {"rtx-4090"}),
    "integrated graphics": ({"radeon-680m", "apple-m4"}, {"rtx-4090"}),
    "Apple silicon": ({"apple-m4"}, {"rtx-4090"}),
    "Jetson": ({"jetson-t5000-128gb"}, {"rtx-4090"}),
    "Quadro": ({"quadro-rtx-4000"}, {"rtx-4090"}),
    "Titan": ({"titan-rtx"}, {"rtx-4090"}),
    "GeForce": ({"rtx-4090"}, {"rtx-5000-ada"}),
    "Tesla": ({"tesla-v100-sxm2-16gb"}, {"rtx-4090"}),
    "SXM": ({"h100-sxm5-80gb"}, {"h100-pcie-80gb"}),
    "ASIC": ({"tpu-v5e"}, {"rtx-4090"}),
}
"""Searches, with some of the cards that each lists and some that it leaves out."""
ONLY_EXPLAINED = ("TPU", "NPU", "FPGA", "NVSwitch", "blade", "DGX", "HGX", "InfiniBand", "supercomputer")


@for_each("words", WORDS)
def test_a_word_for_a_kind_lists_the_kind_and_is_explained(hardware: HardwareCatalog, words: str) -> None:
    listed = {gpu.id for gpu in select(hardware.gpus, GpuQuery(text=words))}
    inside, outside = WORDS[words]
    assert inside <= listed
    assert not outside & listed
    assert describe_kinds(words)


@pytest.mark.parametrize("words", ONLY_EXPLAINED)
def test_a_word_for_what_is_no_card_is_explained(words: str) -> None:
    assert describe_kinds(words)


def test_each_kind_has_one_sentence() -> None:
    assert all(text.endswith(".") and text.count(". ") == 0 for text in KINDS.values())


def test_names_are_found_alone_and_not_explained(hardware: HardwareCatalog) -> None:
    def found(text: str) -> set[str]:
        return {gpu.id for gpu in select(hardware.gpus, GpuQuery(text=text))}

    assert "rubin-288gb" not in found("m4")  # HBM4 is not M4
    assert found("rtx pro") == {gpu.id for gpu in hardware.gpus if "rtx pro" in gpu.name.lower()}
    assert describe_kinds("rtx 4090") == ""
    assert describe_kinds("Ryzen cpu") == KINDS["CPU"]
