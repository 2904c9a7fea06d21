"""What a card reports beside its line, as titles with texts."""

from state_kit import A, latest_of

from planner.monitor.readings.inventory import Device
from planner.monitor.readings.latest import card_sharing
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, Link, Sample
from planner.plan.catalog import load_catalog
from planner.present.format import THIN
from planner.present.monitor.card_details import SHARING, card_details, details_text
from planner.present.monitor.readings import card_rows

GIB = 2**30


def _row(device, links=(), processes=(), **readings):
    latest = latest_of(device)
    values = {name: value if isinstance(value, Reading) else Reading(value) for name, value in readings.items()}
    latest.note_sample(Sample(2.0, 3.0, {device.uuid: values}, processes=processes, links={device.uuid: links}))
    return card_rows(latest)[0]


def _details(device, hardware=None, **readings):
    return {title: text.replace(THIN, " ") for title, text in card_details(_row(device, **readings), hardware)}


def test_a_cards_details_in_words():
    facts = {
        "bar1_total_bytes": Reading(256.0 * GIB),
        "pcie_generation_most": Reading(5),
        "pcie_width_most": Reading(16),
    }
    links = (
        *(Link(number, True, 25e9, 0, 0, 0) for number in range(3)),
        Link(3, True, None, 1, 0, 20),
        Link(4, False),
    )
    found = _details(
        Device(A, "NVIDIA H100", 0, facts=facts),
        links=links,
        bar1_used_bytes=float(GIB),
        memory_temperature_celsius=70.0,
        graphics_active_fraction=0.9,
        fp32_active_fraction=0.08,
        compute_mode=3,
        power_source=1,
        fabric_state=9,
        pcie_generation=4,
        pcie_width=16,
        pcie_replays=1,
        ecc_corrected=2,
        ecc_uncorrected=0,
        ecc_corrected_lifetime=1200,
        retired_corrected=1,
        retired_uncorrected=2,
        retirement_pending=1,
        fan_fraction=missing(Cause.NOT_SUPPORTED),
        hotspot_temperature_celsius=missing(Cause.NOT_SUPPORTED),
    )
    assert found == {
        "Mapped for the CPU (BAR1)": "1.00 GiB of 256 GiB",
        "Memory temperature": "70 °C",
        "Active": "engine 90 %, FP32 8 %",
        "Compute mode": "one process at a time",
        "Power source": "battery",
        "PCIe": "4.0 × 16 of at most 5.0 × 16, 1 replay",
        "NVLink 0 to 2": "25 GB/s each way, no errors",
        "NVLink 3": "active, 1 × replay, 20 × CRC error",
        "NVLink 4": "not active",
        "Memory errors": "2 corrected, 0 uncorrected since the driver was loaded; 1,200 corrected in its life",
        "Retired pages": "1 after corrected errors, 2 after uncorrected errors, more at the next reboot",
        "Not reported by this driver": "Fan",
    }
    assert details_text(card_details(_row(Device(A, "X", 0), pcie_generation=3, pcie_width=8))) == "PCIe: 3.0 × 8"


def test_many_missing_readings_are_counted():
    names = ("utilization_fraction", "memory_used_bytes", "memory_free_bytes", "power_watts", "energy_joules")
    more = ("temperature_celsius", "sm_clock_mhz", "memory_clock_mhz", "fan_fraction", "encoder_fraction")
    readings = dict.fromkeys((*names, *more, "performance_state"), missing(Cause.NOT_SUPPORTED))
    found = _details(Device("AMD-1", "AMD X", 0, driver="amdgpu"), **readings)
    assert found["Read by"] == "amdgpu"
    # A state that only NVIDIA's driver knows is not missed on other cards.
    assert found["Not reported by this driver"].endswith("Memory clock and 2 more")


def test_an_apu_says_whose_memory_it_uses():
    facts = {"unified_memory": Reading(1), "shared_memory_total_bytes": Reading(96.0 * GIB)}
    found = _details(Device("AMD-1", "AMD X", 0, driver="amdgpu", facts=facts), shared_memory_used_bytes=4.0 * GIB)
    assert found["RAM used by the GPU"] == "4.00 GiB of 96.0 GiB"
    assert found["Memory"].startswith("The GPU uses the memory of the CPU")
    bare = _details(Device("AMD-1", "AMD X", 0), shared_memory_used_bytes=4.0 * GIB)
    assert bare["RAM used by the GPU"] == "4.00 GiB"


def test_a_card_that_is_not_running_has_no_details():
    assert card_details(_row(Device(A, "NVIDIA A", 0, state="lost"))) == ()


def _instance(name="NVIDIA H100 80GB HBM3 MIG 3g.40gb", profile="3g.40gb", **facts):
    readings = {fact: value if isinstance(value, Reading) else Reading(value) for fact, value in facts.items()}
    return Device(A, name, 0, mig_parent="GPU-b", mig_instance=(1, 0), mig_profile=profile, facts=readings)


def test_where_a_mig_instance_lies_or_may_lie():
    hardware = load_catalog().hardware
    told = _instance(mig_first_slice=4, mig_memory_slices=4, multiprocessors=60)
    assert _details(told)["MIG instance"] == "3g.40gb, memory slices 4 to 7, 60 SMs"
    hidden = _instance(mig_first_slice=missing(Cause.NO_PERMISSION))
    expected = "3g.40gb, 4 memory slices from 0 or 4 on (which one is readable by administrators only)"
    assert _details(hidden, hardware)["MIG instance"] == expected
    assert _details(_instance(name="NVIDIA Other MIG", profile=""), hardware)["MIG instance"] == "NVIDIA Other MIG"
    assert _details(_instance(profile="9g.9gb"), hardware)["MIG instance"] == "9g.9gb"


def test_how_processes_share_a_card():
    def sharing(*kinds, **facts):
        device = Device(A, "NVIDIA A", 0, facts=facts)
        processes = tuple(CardProcess(number, A, kind, Reading(1)) for number, kind in enumerate(kinds))
        row = _row(device, processes=processes)
        found = card_sharing(device, row.latest)
        assert dict(card_details(row)).get("Sharing") == (None if found is None else SHARING[found])
        return found

    assert sharing("compute") is None
    assert sharing("compute", "graphics") is None
    assert sharing("compute", "compute") == "time-slicing"
    assert sharing("compute", "mps") == "mps"
    assert sharing("compute", mig_enabled=Reading(1)) == "mig"
