"""The verdict: an uncertain need against the usable memory of real cards."""

import pytest
from real_cards import usable
from small_models import bundled, llama, small_llama

from planner.memory.chance import ByteInterval
from planner.memory.estimate import estimate_memory
from planner.memory.fit import at_least_cards, judge_bytes
from planner.memory.terms import term
from planner.units import GIB
from planner.workload.workload import Inference


def gpu(name):
    return bundled().hardware.gpu(name)


def certain(size: int) -> ByteInterval:
    return ByteInterval(size, size, size)


@pytest.mark.parametrize(
    ("low", "total", "high", "verdict", "free", "likely"),
    [
        (70, 80, 90, "fits", 20, True),
        (70, 80, 91, "tight", 20, True),  # more, at worst, than the least that the card may give
        (90, 100, 200, "tight", 0, True),
        (90, 101, 200, "does-not-fit", -1, False),  # it may fit, but less likely than not
    ],
)
def test_the_verdict_is_an_interval_against_an_interval(low, total, high, verdict, free, likely):
    fit = judge_bytes(ByteInterval(low, total, high), usable(90, 100, 110), 0, ())
    assert (fit.verdict, fit.free_bytes, fit.capacity_bytes, fit.likely) == (verdict, free, 100, likely)


def test_what_other_processes_hold_is_not_there():
    assert judge_bytes(certain(80), usable(90, 100), 15, ()).verdict == "tight"
    assert judge_bytes(certain(80), usable(90, 100), 21, ()).verdict == "does-not-fit"


def test_no_verdict_without_a_capacity_or_on_a_card_that_cannot():
    unknown = judge_bytes(certain(80), None, 0, ())
    assert (unknown.verdict, unknown.fit_probability, unknown.likely) == (None, None, False)
    fit = judge_bytes(certain(80), usable(100), 0, ("no kernels",))
    assert (fit.verdict, fit.fit_probability, fit.likely) == (None, None, False)
    assert (fit.free_bytes, fit.unsupported) == (20, ("no kernels",))


def test_what_a_desktop_takes_is_said_to_be_unknown_where_there_may_be_one():
    def told(name: str, **taken: int) -> bool:
        card = gpu(name)
        result = estimate_memory(small_llama(), Inference(**taken), card, bundled().hardware.usable_memory(card))
        return any("no desktop" in note for note in result.notes)

    assert told("rtx-4090")
    assert not told("rtx-4090", other_processes_bytes=GIB)
    assert not told("h100-sxm5-80gb")
    assert not told("apple-m1")


def test_how_many_cards_could_hold_it():
    weights, logits = (term(name, size, "", (), "s") for name, size in (("weights", 90), ("logits", 20)))
    assert at_least_cards((weights, logits), 110, 110) == 1
    assert at_least_cards((weights, logits), 110, 50) == 3  # 30 of each card for 90 of weights
    assert at_least_cards((weights, logits), 110, 20) is None  # what cannot be shared out is more than that


def test_a_card_of_two_devices_is_judged_by_one():
    # A Tesla K80 is sold with 24 GB: two devices of 12. Llama 2 7B in bf16 (12.6 GiB) fits neither.
    card = gpu("tesla-k80")
    assert (card.device_count, card.memory_bytes) == (2, 24 * GIB)
    result = estimate_memory(llama(), Inference(), card, bundled().hardware.usable_memory(card))
    assert result.capacity_bytes < 12 * GIB
    assert result.verdict == "does-not-fit"
    assert result.per_gpu[0].verdict == "does-not-fit"


def test_the_label_on_the_box_is_not_the_capacity():
    card = gpu("rtx-4090")
    available = bundled().hardware.usable_memory(card)
    assert available.bytes < 24 * GIB
    result = estimate_memory(llama(), Inference(), card, available)
    assert result.capacity_bytes == available.bytes
    assert result.free_bytes == available.bytes - result.total_bytes
    assert result.capacity_source == available.source


def test_a_card_whose_memory_is_not_known_gets_no_verdict():
    result = estimate_memory(small_llama(), Inference(), gpu("rtx-4090"), None)
    assert (result.verdict, result.capacity_bytes, result.free_bytes, result.at_least_cards) == (None, None, None, None)
    assert result.per_gpu[0].gpu == "rtx-4090"


def test_without_a_card_there_is_no_verdict():
    result = estimate_memory(small_llama(), Inference())
    assert (result.verdict, result.per_gpu, result.unsupported) == (None, (), ())
