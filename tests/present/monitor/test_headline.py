"""The headline on all cards, and the texts of each card's line."""

import pytest

from planner.monitor.diagnosis.verdict import OtherFinding, Verdict, VerdictKind
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import Sample
from planner.present.monitor.headline import (
    Headline,
    card_line,
    cards_headline,
    machine_headline,
    numbered_card_name,
    used_memory_exact_text,
)
from planner.present.monitor.readings import card_rows
from planner.units import GIB

HEAT = Verdict(
    VerdictKind.THERMAL, "warning", "slowed by heat", "It is too hot.", 0.0, 60.0, advice=("Clear dust.", "Cool.")
)
LITTLE = Verdict(VerdictKind.UNDER_USED, "note", "lightly used", "It could do more.", 0.0, 60.0, advice=("Load data.",))
WELL = Verdict(
    VerdictKind.COMPUTE_BOUND, "good", "limited by compute", "It always works.", 0.0, 60.0, advice=("bf16.",)
)
IDLE = Verdict(VerdictKind.IDLE, "note", "idle", "Nothing is running on the GPU.", 0.0, 60.0)
LOST = Verdict(VerdictKind.LOST, "error", "lost", "It does not answer.", 0.0, 60.0, advice=("Reboot.",))


def cards(count: int) -> list[Device]:
    return [Device(f"GPU-{number}", "NVIDIA GPU", number) for number in range(count)]


def headline_of(*verdicts: Verdict) -> Headline:
    found = cards(len(verdicts))
    return cards_headline({device.uuid: verdict for device, verdict in zip(found, verdicts, strict=True)}, found)


def broken(*kinds: FaultKind) -> Inventory:
    return Inventory(faults=tuple(Fault(kind, 1.0) for kind in kinds))


def test_a_machine_without_readings_has_a_headline_that_says_why():
    sentences = {
        machine_headline({}, Inventory("580", devices=tuple(cards(1))), is_released=True).sentence,
        machine_headline({}, Inventory("580"), is_released=False).sentence,
        machine_headline({}, Inventory(), is_released=False).sentence,
        machine_headline({}, broken(FaultKind.NO_LIBRARY), is_released=False).sentence,
        machine_headline({}, broken(FaultKind.WSL, FaultKind.MISMATCH), is_released=False).sentence,
    }
    assert sentences == {
        "Disconnected from the driver; the GPUs are not being read.",
        "No GPU was found here.",
        "No GPU of NVIDIA, AMD, Intel or Apple was found on this machine.",
        "No GPU can be monitored here: the driver was updated, but the old kernel module is still loaded.",
        "Looking for GPUs…",
    }
    machine = Inventory("580", devices=tuple(cards(1)))
    assert machine_headline({"GPU-0": IDLE}, machine, is_released=False) == headline_of(IDLE)


def test_the_headline_is_empty_before_the_first_verdict():
    assert cards_headline({}, cards(2)) == Headline("")


@pytest.mark.parametrize(
    ("verdict", "tone", "advice"), [(HEAT, "warn", "Clear dust."), (WELL, "ok", ""), (IDLE, "muted", "")]
)
def test_the_headline_of_one_card_has_its_verdict_and_advice_if_it_has_a_problem(verdict, tone, advice):
    said = headline_of(verdict)
    assert said.sentence == f"{verdict.title[0].upper()}{verdict.title[1:]}."
    assert (said.more, said.tone, said.advice, said.uuid) == (verdict.sentence, tone, advice, "GPU-0")


def test_further_problems_of_a_single_card_are_named():
    also = Verdict(
        VerdictKind.IDLE,
        "note",
        "idle",
        "Nothing runs.",
        0.0,
        60.0,
        also=(OtherFinding(VerdictKind.LEAK, "warning", "hot"),),
    )
    assert headline_of(also).more == "Nothing runs. Also: hot."


def test_the_same_verdict_on_all_cards_is_named_once():
    assert headline_of(WELL, WELL, WELL).sentence == "3 × GPU: limited by compute."
    different = [*cards(1), Device("GPU-1", "NVIDIA Other", 1)]
    said = cards_headline({device.uuid: WELL for device in different}, different)
    assert said.sentence == "2 GPUs: limited by compute."


def test_the_worst_card_comes_first_and_the_others_below():
    said = headline_of(WELL, LITTLE, HEAT, WELL, IDLE, WELL, WELL)
    assert said.sentence == "1 of 7 GPUs needs attention: slowed by heat (GPU 2)."
    assert said.more == "Limited by compute (GPUs 0, 3, 5, 6), lightly used (GPU 1), idle (GPU 4)."
    assert (said.tone, said.advice, said.uuid) == ("warn", "Clear dust.", "GPU-2")


def test_an_error_comes_before_a_warning():
    said = headline_of(HEAT, LOST)
    assert said.sentence == "2 of 2 GPUs need attention: slowed by heat (GPU 0), lost (GPU 1)."
    assert (said.more, said.tone, said.uuid, said.advice) == ("", "bad", "GPU-1", "")


def test_only_lost_cards_are_said_to_be_lost():
    said = headline_of(WELL, LOST)
    assert (said.sentence, said.more) == ("1 of 2 GPUs is lost: GPU 1.", "Limited by compute (GPU 0).")
    assert headline_of(LOST, LITTLE, LOST).sentence == "2 of 3 GPUs are lost: GPUs 0, 2."


def test_an_underused_card_is_named_if_no_card_has_a_problem():
    said = headline_of(WELL, WELL, WELL, LITTLE)
    assert said.sentence == "1 of 4 GPUs could do more: lightly used (GPU 3)."
    assert said.more == "Limited by compute (GPUs 0 to 2)."
    assert said.advice == "Load data."


def test_the_headline_says_that_nothing_needs_attention():
    assert headline_of(WELL, IDLE).sentence == "Nothing needs attention: limited by compute (GPU 0), idle (GPU 1)."


def test_mig_instances_are_distinguished_from_cards():
    device, part = Device("GPU-0", "NVIDIA GPU", 0), Device("MIG-1", "1g.10gb", 1, mig_parent="GPU-0")
    said = cards_headline({"GPU-0": WELL, "MIG-1": HEAT}, (device, part))
    assert said.sentence == "1 of 2 GPUs and instances needs attention: slowed by heat (instance 1)."


CARD = Device("GPU-a", "NVIDIA GeForce RTX 4090", 0, facts={"memory_total_bytes": Reading(24 * GIB)})
ALL = {
    "utilization_fraction": 0.97,
    "memory_used_bytes": 18 * GIB,
    "memory_reserved_bytes": 0.25 * GIB,
    "power_watts": 312.4,
    "power_limit_watts": 450.0,
    "temperature_celsius": 64.4,
    "sm_clock_mhz": 2520.0,
    "clock_reasons": 0.0,
}


def row_of(device=CARD, **readings):
    latest = Latest()
    latest.note_inventory(Inventory("580", devices=(device,)))
    values = {name: value if isinstance(value, Reading) else Reading(value) for name, value in readings.items()}
    latest.note_sample(Sample(0.0, 0.0, {device.uuid: values}))
    return card_rows(latest)[0]


def plain(text):
    return text.replace("\u2009", " ")


def test_the_line_of_a_busy_card_has_all_readings():
    line = card_line(row_of(**ALL))
    assert plain(line.accessible_text) == "0  RTX 4090, busy, 97 %, 18.0 / 24.0 GiB, 312 / 450 W, 64 °C, 2,520 MHz"
    assert line.tone == ""
    assert plain(line.tooltip).splitlines() == [
        "Memory used: 19,327,352,832 B",
        "Reserved by the driver: 0.250 GiB",
    ]


def test_an_unknown_reading_has_its_cause_in_the_tooltip():
    line = card_line(row_of(utilization_fraction=missing(Cause.MIG), memory_used_bytes=GIB))
    assert (line.use, line.state, line.tone) == ("", "utilization unknown", "muted")
    assert line.tooltip.startswith("Utilization: not reported in MIG mode\nPower: ")
    line = card_line(row_of())
    assert (line.memory, line.state) == ("", "no readings yet")
    assert plain(used_memory_exact_text(row_of(**ALL))) == "19,327,352,832 B"
    assert used_memory_exact_text(row_of()) == "unknown"


def test_a_card_of_unknown_memory_size_says_so():
    line = card_line(row_of(Device("GPU-a", "NVIDIA A", 0), memory_used_bytes=GIB))
    assert plain(line.memory) == "1.00 / – GiB"


def test_an_implausible_reading_is_said():
    line = card_line(row_of(utilization_fraction=Reading(40.0, is_implausible=True)))
    assert (line.state, line.tone) == ("implausible reading", "warn")


@pytest.mark.parametrize(
    ("state", "readings", "tone"),
    [
        ("lost", {}, "bad"),
        ("asleep", {}, "muted"),
        ("running", {"utilization_fraction": 0.0, "clock_reasons": 4.0}, "muted"),
        ("running", {"utilization_fraction": 0.9, "clock_reasons": 4.0}, "warn"),
        ("running", {"utilization_fraction": 0.9}, ""),
    ],
)
def test_the_tone_follows_the_state_of_the_card(state, readings, tone):
    line = card_line(row_of(Device("GPU-a", "A", 0, state=state), **readings))
    assert line.tone == tone
    assert (line.tooltip == "") == (state != "running")


def test_the_name_of_an_instance_is_indented_below_its_card():
    assert (
        numbered_card_name(row_of(Device("MIG-1", "NVIDIA H100 MIG 1g.10gb", 2, mig_parent="GPU-a")))
        == "└ 2  H100 MIG 1g.10gb"
    )


def test_a_card_without_answers_from_the_driver_says_so():
    latest = Latest()
    fault = Fault(FaultKind.NO_DRIVER, 1.0)
    latest.note_inventory(Inventory("580", devices=(CARD,), faults=(fault,)))
    latest.note_sample(Sample(0.0, 0.0))
    line = card_line(card_rows(latest)[0])
    assert (line.state, line.tone) == ("no answer", "muted")
    assert "Power: the driver does not respond" in line.tooltip


def test_another_machine_is_being_connected_to_or_says_why_not():
    connecting = machine_headline({}, Inventory(machine="gpu-box"), is_released=False)
    assert connecting.sentence == "Connecting to gpu-box…"
    refused = Inventory(machine="gpu-box", faults=(Fault(FaultKind.REFUSED, 1.0),))
    headline = machine_headline({}, refused, is_released=False)
    assert headline.sentence == "The other machine accepts none of this user's SSH keys."
    assert headline.more.startswith("Passwords are not asked for: add your key there")


def test_what_was_found_before_another_machine_was_cut_off_is_not_told_as_current():
    faults = (Fault(FaultKind.WSL, 1.0), Fault(FaultKind.REMOTE_SILENT, 1.0))
    silent = machine_headline({CARD.uuid: HEAT}, Inventory("580", devices=(CARD,), faults=faults), is_released=False)
    assert (silent.sentence, silent.tone) == (
        "The other machine does not respond; its GPUs are not being read.",
        "warn",
    )
    cut = Inventory("580", devices=(CARD,), faults=(Fault(FaultKind.UNREACHABLE, 1.0),))
    assert machine_headline({CARD.uuid: HEAT}, cut, is_released=False).tone == "bad"
