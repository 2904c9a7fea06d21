"""RAM as people name it, and its bandwidth."""

import pytest

from planner.errors import SpecError
from planner.workload.software.ram import RAM_TITLES, known_ram, ram_bytes_per_s
from planner.workload.workload import Inference


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        (None, 89.6),
        ("DDR4-3200x2", 51.2),
        ("ddr5-4800x12", 460.8),
        ("LPDDR5X-7500x2", 120.0),
        ("102GB/s", 102.0),
        ("89.6 GB/s", 89.6),
    ],
)
def test_a_channel_of_64_bits_moves_8_bytes_a_transfer(name, gigabytes):
    assert ram_bytes_per_s(name) == pytest.approx(gigabytes * 1e9)


def test_offered_ram_is_known_and_says_its_bandwidth():
    assert RAM_TITLES["DDR5-6000x2"] == "DDR5-6000, 2 channels (96 GB/s)"
    assert all(known_ram(name) == name for name in RAM_TITLES)
    assert known_ram(None) is None


@pytest.mark.parametrize("name", ["much", "DDR5", "DDR5-6000x0", "0GB/s", "99999GB/s", "DDR5-6000x2x2"])
def test_what_names_no_bandwidth_is_refused(name):
    with pytest.raises(SpecError) as refused:
        Inference(profile="llama.cpp", engine={"ram": name})
    assert refused.value.field == "engine.ram"
