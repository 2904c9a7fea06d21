"""Samples of exporters become cards with our names and units."""

from pathlib import Path

import pytest
import scrapes
from each_record import for_each
from fleet_kit import dcgm_fleet

from planner.fleet.cards import FleetCard, Work, card_key, metric_rows, missing_evidence, read_cards
from planner.fleet.exporters import EXPORTER_BY_KEY
from planner.monitor.readings.reading import Cause
from planner.parsing.metrics import parse_prometheus

TRUTH = Path(__file__).parent.parent / "truth" / "exporters"
# Read by hand from the files: W, °C, MHz of the SM clock, bytes in use and in all, utilization, clock reasons.
REAL = {
    "rtx-2080-super__595.71.05__load": (111.5, 45, 2055, 858_783_744, 8_589_934_592, 0.08, 0),
    "rtx-4080-super__595.71.05__idle": (26.2, 43, 210, 624_951_296, 17_171_480_576, 0.0, 1),
    "h100-80gb-hbm3__590.48.01__idle": (69.85, 41, 345, 0, 85_520_809_984, 0.0, 1),
    "h100-mig__590.48.01__idle": (71.15, 42, 345, 61_865_984, 85_520_809_984, None, 1),
    "l40s__595.80__load": (110.23, 54, 2520, 1_294_991_360, 48_305_799_168, 0.09, 0),
}


def cards_of(text: str, instance: str = "10.0.0.7:9400", **more: str) -> list[FleetCard]:
    samples = [
        (
            one.name,
            {"exported_instance": one.labels.get("instance", ""), **one.labels, "instance": instance, **more},
            one.value,
        )
        for one in parse_prometheus(text)
    ]
    return [*read_cards(samples, at=5.0).cards.values()]


def values_of(card: FleetCard) -> dict[str, float | None]:
    readings = {**card.readings, **card.device.facts}
    return {name: None if one.value is None else pytest.approx(one.value) for name, one in readings.items()}


@pytest.mark.parametrize(
    ("text", "expected", "name", "host", "index"),
    [
        (scrapes.DCGM, scrapes.DCGM_READINGS, "NVIDIA A100-SXM4-80GB", "dgx-2", 3),
        (scrapes.AMD, scrapes.AMD_READINGS, "AMD INSTINCT MI300X OAM", "mi300-1", 5),
        (scrapes.AMD.replace("amd_", ""), scrapes.AMD_READINGS, "AMD INSTINCT MI300X OAM", "mi300-1", 5),
        (scrapes.INTEL, scrapes.INTEL_READINGS, "Intel(R) Data Center GPU Max 1550", "aurora-7", 1),
        (scrapes.ALL_SMI, scrapes.ALL_SMI_READINGS, "NVIDIA H200", "node-a", 2),
        (scrapes.NVITOP, scrapes.NVITOP_READINGS, "NVIDIA GeForce RTX 3090", "10.1.2.3", 0),
        (scrapes.OURS, scrapes.OURS_READINGS, "NVIDIA L4", "10.0.0.7", 0),
    ],
)
def test_each_exporter_is_read_without_an_error_of_units(text, expected, name, host, index):
    card = cards_of(text)[0]
    assert values_of(card) == expected
    assert (card.device.name, card.host, card.device.index) == (name, host, index)


@for_each("stem", REAL)
def test_real_scrapes_state_what_was_read_from_them_by_hand(stem):
    (path,) = TRUTH.glob(f"*{stem}.metrics")
    (card,) = cards_of(path.read_text())
    watts, celsius, megahertz, used, total, use, reasons = REAL[stem]
    assert (card.value("power_watts"), card.value("temperature_celsius")) == (watts, celsius)
    assert card.value("sm_clock_mhz") == pytest.approx(megahertz)
    assert (card.value("memory_used_bytes"), card.value("memory_total_bytes")) == (used, total)
    assert (card.use, card.value("clock_reasons")) == (use, reasons)


@for_each("path", sorted(TRUTH.glob("*.metrics")))
def test_every_real_scrape_is_read_with_plausible_values_only(path):
    (card,) = cards_of(path.read_text())
    assert len(card.readings) >= 16
    assert not any(reading.is_implausible for reading in (*card.readings.values(), *card.device.facts.values()))
    assert card.device.name.startswith("NVIDIA ")


def test_pods_are_those_of_the_card_and_not_of_the_exporter():
    labels = {"exported_pod": "train-1", "exported_namespace": "ml", "pod": "dcgm-exporter-x", "namespace": "gpu"}
    (card,) = cards_of(scrapes.DCGM, **labels)
    assert card.work == (Work("train-1", "ml"),)
    assert card.work[0].title == "ml/train-1"
    (card,) = cards_of(scrapes.DCGM, pod="nvidia-dcgm-exporter-x", namespace="gpu")
    assert card.work == ()
    (card,) = cards_of(scrapes.DCGM, pod_name="old", pod_namespace="ml", container_name="main")
    assert card.work == (Work("old", "ml", "main"),)
    (card,) = cards_of(scrapes.DCGM, hpc_job="4711")
    assert card.work[0].title == "job 4711"
    assert cards_of(scrapes.INTEL)[0].work == (Work("solver-0", "hpc"),)
    assert cards_of(scrapes.AMD)[0].work[0].title == "job 812"


def test_hosts_are_named_by_either_spelling_or_by_their_address():
    assert cards_of(scrapes.DCGM.replace("Hostname", "hostname"))[0].host == "dgx-2"
    without = scrapes.DCGM.replace(',Hostname="dgx-2"', "")
    assert cards_of(without)[0].host == "10.0.0.7"
    assert cards_of(without, instance="gpu-box")[0].host == "gpu-box"
    assert cards_of(without, instance="")[0].host == "unknown host"


def test_a_card_without_a_uuid_is_told_by_its_address_and_number():
    without = scrapes.DCGM.replace("GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52", "")
    assert cards_of(without)[0].key == "10.0.0.7:9400/3"
    assert cards_of(without, instance="")[0].key == "dgx-2/3"
    dcgm = EXPORTER_BY_KEY["dcgm"]
    assert card_key(dcgm, {"instance": "a:1", "pci_bus_id": "0A"}) == "a:1/0A"
    unnamed = cards_of(scrapes.DCGM.replace('modelName="NVIDIA A100-SXM4-80GB",', ""))
    assert unnamed[0].device.name == "unknown GPU (dcgm-exporter)"


MIG = """\
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1a",modelName="NVIDIA A100",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7",Hostname="n"} 11
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1a",modelName="NVIDIA A100",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7",Hostname="n"} 21
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-1a",modelName="NVIDIA A100",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"} 0.4
"""


def test_mig_instances_are_cards_of_their_own_whose_use_is_that_of_their_engine():
    report = read_cards((one.name, one.labels, one.value) for one in parse_prometheus(MIG))
    (card,) = report.cards.values()
    assert (card.key, card.device.mig_parent, card.device.mig_instance) == ("1a/7", "1a", (7, 0))
    assert card.device.name == "NVIDIA A100 MIG 1g.5gb"
    assert card.use == 0.4
    assert card.readings["utilization_fraction"].cause is Cause.MIG
    assert card.device.fact("memory_total_bytes") == 32 * 2**20
    assert report.notes == ("1 GPUs report their MIG instances only, not the GPU itself.",)
    smi = 'nvidia_smi_mig_memory_used_bytes{uuid="e",gpu_instance_id="3"} 5\nnvidia_smi_memory_used_bytes{uuid="e"} 9\n'
    whole = read_cards((one.name, one.labels, one.value) for one in parse_prometheus(smi))
    assert [(card.key, card.value("memory_used_bytes")) for card in whole.cards.values()] == [("e/3", 5), ("e", 9)]
    assert whole.cards["e/3"].device.name.endswith("MIG instance 3")
    assert whole.notes == ()
    ours = cards_of(scrapes.OURS)[1]
    assert (ours.device.mig_parent, ours.device.index, ours.device.mig_instance) == ("cccc0000-1", 2, (2, 0))


def test_xids_are_told_and_zero_is_none():
    assert cards_of(scrapes.DCGM)[0].xid == 79
    assert cards_of(scrapes.OURS)[0].xid == 48
    for number in ("0", "²", "9" * 5_000):
        assert cards_of(scrapes.OURS.replace('xid="48"', f'xid="{number}"'))[0].xid is None
    assert cards_of(scrapes.DCGM.replace("} 79", "} 0"))[0].xid is None


def test_numbers_of_cards_that_are_none_are_not_calculated_with():
    (card,) = cards_of(MIG.replace('GPU_I_ID="7"', 'GPU_I_ID="²"'))
    assert (card.device.index, card.device.mig_instance) == (0, None)
    assert cards_of(scrapes.DCGM.replace('gpu="3"', f'gpu="{"9" * 5_000}"'))[0].device.index == 99_999


def test_values_that_are_not_numbers_are_missing_and_said():
    samples = [(name, labels, float("nan") if "POWER" in name else value) for name, labels, value in dcgm_fleet(2)]
    report = read_cards(samples)
    assert all(card.value("power_watts") is None for card in report.cards.values())
    assert next(iter(report.cards.values())).readings["power_watts"].cause is Cause.UNREADABLE
    assert report.notes == ("2 values are not numbers (NaN) and count as not known.",)
    nothing = read_cards([("DCGM_FI_DEV_XID_ERRORS", dcgm_fleet(1)[0][1], float("nan"))])
    assert nothing.cards == {}


def test_the_first_of_two_readings_counts_and_a_note_says_so():
    samples = dcgm_fleet(1)
    replica = [(name, {**labels, "instance": "other:9400"}, value + 1) for name, labels, value in samples]
    report = read_cards([*samples, *replica])
    (card,) = report.cards.values()
    assert card.value("power_watts") == 70
    assert card.instances == ("10.0.0.0:9400", "other:9400")
    assert (card.seen_seconds, read_cards(samples, at=5.0).cards[card.key].seen_seconds) == (0.0, 5.0)
    assert report.notes == ("1 GPUs are reported more than once; the first of each two readings counts.",)
    same = read_cards([*samples, *samples])
    assert same.notes == report.notes
    limit = ("nvidia_smi_enforced_power_limit_watts", {"uuid": "00000001-0000-0000-0000-000000000000"}, 400.0)
    assert read_cards([*samples, *samples, limit]).notes == report.notes
    shared = [(name, {**labels, "exported_pod": "b"}, value) for name, labels, value in samples]
    both = read_cards([*samples, *shared])
    assert both.notes == ()
    assert [work.pod for work in next(iter(both.cards.values())).work] == ["b"]


def test_two_exporters_of_a_card_complete_each_other():
    smi = 'nvidia_smi_enforced_power_limit_watts{uuid="604ac76c-d9cf-fef3-62e9-d92044ab6e52"} 400\n'
    (card,) = cards_of(smi + scrapes.DCGM)
    assert (card.exporter, card.value("power_limit_watts"), card.value("power_watts")) == ("dcgm", 400, 312.5)


def test_rates_of_counters_are_shares_of_time():
    labels = dcgm_fleet(1)[0][1]
    rates = [("DCGM_FI_DEV_POWER_VIOLATION", labels, 2.5e8), ("DCGM_FI_DEV_POWER_USAGE", labels, 1.0)]
    samples = [*dcgm_fleet(1), ("DCGM_FI_DEV_POWER_VIOLATION", labels, 1e15), ("unknown", labels, 1.0)]
    (card,) = read_cards(samples, rates).cards.values()
    assert (card.value("power_capped_fraction"), card.value("power_watts")) == (0.25, 70)


def test_what_the_diagnosis_needs_and_is_not_exported_is_named():
    (card,) = cards_of(scrapes.DCGM)
    text = missing_evidence(card)
    assert "SMs active (DCGM_FI_PROF_SM_ACTIVE)" in text
    assert "clock reasons (DCGM_FI_DEV_CLOCKS_EVENT_REASONS)" in text
    assert "CSV file of dcgm-exporter" in text
    assert missing_evidence(cards_of(scrapes.NVITOP)[0]) == ""


def test_a_silent_card_has_no_readings_but_its_properties():
    (card,) = read_cards(dcgm_fleet(1)).cards.values()
    silent = FleetCard(card.key, card.host, card.exporter, card.device, card.readings, {}, is_silent=True)
    assert (silent.use, silent.memory_fraction, silent.value("power_watts")) == (None, None, None)
    assert silent.value("memory_total_bytes") == 81_559 * 2**20


def test_a_prefix_of_the_site_is_known_where_the_exporter_has_one():
    assert [row.metric.ours for row in metric_rows("amd_gpu_gfx_activity")] == ["utilization_fraction"]
    assert metric_rows("my_DCGM_FI_DEV_GPU_UTIL") == ()


def test_readings_that_come_again_are_kept_but_not_without_end(monkeypatch):
    monkeypatch.setattr("planner.fleet.cards._MOST_KNOWN", 3)
    labels = dcgm_fleet(1)[0][1]
    for watts in (*range(9), 2):
        (card,) = read_cards([("DCGM_FI_DEV_POWER_USAGE", labels, float(watts))]).cards.values()
        assert card.value("power_watts") == watts
    assert all(len(row.known) <= 3 for row in metric_rows("DCGM_FI_DEV_POWER_USAGE"))
