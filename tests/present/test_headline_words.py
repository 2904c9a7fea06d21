"""The answer of the Monitor tab, over one card and over several."""

import pytest

from planner.monitor.diagnosis.verdict import OtherFinding, Verdict, VerdictKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.present.monitor.headline import Headline, headline, monitor_answer

HEAT = Verdict(
    VerdictKind.THERMAL, "warning", "slowed by heat", "It is too hot.", 0.0, 60.0, advice=("Clear dust.", "Cool.")
)
LITTLE = Verdict(VerdictKind.UNDER_USED, "note", "lightly used", "It could do more.", 0.0, 60.0, advice=("Load data.",))
WELL = Verdict(
    VerdictKind.COMPUTE_BOUND, "good", "limited by compute", "It always works.", 0.0, 60.0, advice=("bf16.",)
)
IDLE = Verdict(VerdictKind.IDLE, "note", "idle", "Nothing is running on the card.", 0.0, 60.0)
LOST = Verdict(VerdictKind.LOST, "error", "lost", "It does not answer.", 0.0, 60.0, advice=("Reboot.",))


def cards(count: int) -> list[Device]:
    return [Device(f"GPU-{number}", "NVIDIA Card", number) for number in range(count)]


def said_of(*verdicts: Verdict) -> Headline:
    found = cards(len(verdicts))
    return headline({device.uuid: verdict for device, verdict in zip(found, verdicts, strict=True)}, found)


def test_where_no_card_is_read_it_says_so_and_why_as_far_as_that_is_known():
    sentences = {
        monitor_answer({}, Inventory("580", devices=tuple(cards(1))), is_released=True).sentence,
        monitor_answer({}, Inventory("580"), is_released=False).sentence,
        monitor_answer({}, Inventory(), is_released=False).sentence,
    }
    assert sentences == {
        "Disconnected from the driver; the cards are not being read.",
        "No NVIDIA card can be read here.",
        "Looking for cards…",
    }
    machine = Inventory("580", devices=tuple(cards(1)))
    assert monitor_answer({"GPU-0": IDLE}, machine, is_released=False) == said_of(IDLE)


def test_nothing_is_said_before_there_is_a_verdict():
    assert headline({}, cards(2)) == Headline("")


@pytest.mark.parametrize(
    ("verdict", "tone", "advice"), [(HEAT, "warn", "Clear dust."), (WELL, "ok", ""), (IDLE, "muted", "")]
)
def test_of_one_card_all_is_said_and_what_to_try_where_something_is_to_be_done(verdict, tone, advice):
    said = said_of(verdict)
    assert said.sentence == f"{verdict.title[0].upper()}{verdict.title[1:]}."
    assert (said.more, said.tone, said.advice, said.uuid) == (verdict.sentence, tone, advice, "GPU-0")


def test_what_else_is_wrong_with_the_one_card_is_said():
    also = Verdict(
        VerdictKind.IDLE,
        "note",
        "idle",
        "Nothing runs.",
        0.0,
        60.0,
        also=(OtherFinding(VerdictKind.LEAK, "warning", "hot"),),
    )
    assert said_of(also).more == "Nothing runs. Also: hot."


def test_what_is_true_of_all_cards_is_said_once():
    assert said_of(WELL, WELL).sentence == "Limited by compute (both cards)."
    assert said_of(WELL, WELL, WELL).sentence == "Limited by compute (all 3 cards)."


def test_the_worst_comes_first_and_the_others_below():
    said = said_of(WELL, LITTLE, HEAT, WELL, IDLE, WELL, WELL)
    assert said.sentence == "1 of 7 cards needs attention: slowed by heat (card 2)."
    assert said.more == "Limited by compute (cards 0, 3, 5, 6), lightly used (card 1), idle (card 4)."
    assert (said.tone, said.advice, said.uuid) == ("warn", "Clear dust.", "GPU-2")


def test_an_error_comes_before_a_warning():
    said = said_of(HEAT, LOST)
    assert said.sentence == "2 of 2 cards need attention: slowed by heat (card 0), lost (card 1)."
    assert (said.more, said.tone, said.uuid, said.advice) == ("", "bad", "GPU-1", "")


def test_a_card_that_could_do_more_is_told_where_nothing_is_wrong():
    said = said_of(WELL, WELL, WELL, LITTLE)
    assert said.sentence == "1 of 4 cards could do more: lightly used (card 3)."
    assert said.more == "Limited by compute (cards 0 to 2)."
    assert said.advice == "Load data."


def test_where_nothing_is_wrong_that_is_said():
    assert said_of(WELL, IDLE).sentence == "Nothing needs attention: limited by compute (card 0), idle (card 1)."


def test_instances_are_told_from_cards():
    device, part = Device("GPU-0", "NVIDIA Card", 0), Device("MIG-1", "1g.10gb", 1, mig_parent="GPU-0")
    said = headline({"GPU-0": WELL, "MIG-1": HEAT}, (device, part))
    assert said.sentence == "1 of 2 cards and instances needs attention: slowed by heat (instance 1)."
