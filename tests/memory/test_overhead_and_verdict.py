"""Context, workspace and slack; and the verdict on real cards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import bundled, llama, small_llama

from planner.hardware.usable import UsableMemory
from planner.memory.chance import ByteInterval, Margin, probability_of_fit
from planner.memory.estimate import estimate_memory, fits_on
from planner.memory.fit import at_least_cards, device_shares, judge_bytes
from planner.memory.overhead import cublas_workspace_bytes, fixed_overhead, framework_overhead, overhead_term
from planner.memory.software import memory_of
from planner.memory.support import pytorch_reasons
from planner.memory.terms import term
from planner.units import GIB, KIB, MIB
from planner.workload.workload import Inference, Training

SMALL, LARGE = 8 * MIB + 128 * KIB, 32 * MIB  # 2 × 4096 + 8 × 16 KiB = 8.125 MiB; and from sm_90 on


def gpu(name):
    return bundled().hardware.gpu(name)


def usable(low, bytes_=None, high=None) -> UsableMemory:
    return UsableMemory(
        bytes=bytes_ or low,
        low_bytes=low,
        high_bytes=high or bytes_ or low,
        certainty="measured",
        source="s",
        explanation="e",
    )


def certain(size: int) -> ByteInterval:
    return ByteInterval(size, size, size)


@pytest.mark.parametrize(
    ("name", "workspace"),
    [
        ("rtx-4090", SMALL),
        ("a100-sxm4-80gb", SMALL),
        ("h100-sxm5-80gb", LARGE),
        ("b100", LARGE),
        ("instinct-mi300x", LARGE),
        ("tesla-k80", SMALL),
        ("apple-m1", SMALL),
    ],
)
def test_the_workspace_of_the_matrix_library(name, workspace):
    assert cublas_workspace_bytes(gpu(name)) == workspace


def test_the_workspace_is_small_where_nothing_is_known():
    assert cublas_workspace_bytes(None) == SMALL
    assert cublas_workspace_bytes(gpu("rtx-4090").evolve(compute_capability=None)) == SMALL


def test_training_has_two_threads_that_launch_products():
    for workload, threads in ((Training(), 2), (Inference(), 1)):
        parts = estimate_memory(small_llama(), workload).term("framework_overhead").parts
        assert next(part for part in parts if part.name == "cuBLAS workspace").bytes == threads * SMALL


def test_the_context_of_measured_families_is_theirs():
    assert framework_overhead(fixed_overhead(gpu("rtx-4090")), 0, 0).context == 426 * MIB
    assert framework_overhead(fixed_overhead(None), 0, 0).context == 426 * MIB
    turing = next(g for g in bundled().hardware.gpus if g.architecture == "Turing")
    assert framework_overhead(fixed_overhead(turing), 0, 0).context == 141 * MIB


def test_slack_is_a_twentieth_of_what_comes_and_goes_or_a_hole_at_worst():
    overhead = framework_overhead(fixed_overhead(None), 100 * MIB, 50 * MIB)
    assert overhead.slack == 5 * MIB
    assert overhead.total == 426 * MIB + SMALL + 5 * MIB
    assert (overhead.low, overhead.high) == (141 * MIB + SMALL, 749 * MIB + SMALL + 50 * MIB)
    assert framework_overhead(fixed_overhead(None), 0, 80 * GIB).high == 749 * MIB + SMALL + GIB


@given(
    st.integers(0, 2**40), st.integers(0, 2**40), st.sampled_from([None, "rtx-4090", "tesla-k80"]), st.integers(1, 2)
)
def test_the_overhead_lies_within_its_bounds(dynamic, largest, name, threads):
    overhead = framework_overhead(fixed_overhead(gpu(name) if name else None), dynamic, largest, threads)
    written = overhead_term(overhead, dynamic)
    assert overhead.low <= overhead.total <= overhead.high
    assert sum(part.bytes for part in written.parts) == written.bytes == overhead.total


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


def test_the_probability_is_that_of_the_margin():
    fit = judge_bytes(ByteInterval(70, 80, 100), usable(90, 100), 10, ())
    assert fit.fit_probability == probability_of_fit(Margin(90 - 10 - 100, 100 - 10 - 80, 100 - 10 - 70), 100)
    share = device_shares(fit._replace(gpu_id="rtx-4090"), 2)[0]
    assert (share.fit_probability, share.verdict) == (fit.fit_probability, "tight")


def test_what_a_desktop_takes_is_said_to_be_unknown_where_there_may_be_one():
    def told(name: str, **taken: int) -> bool:
        card = gpu(name)
        result = estimate_memory(small_llama(), Inference(**taken), card, bundled().hardware.usable_memory(card))
        return any("WDDM" in note for note in result.notes)

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


@pytest.mark.parametrize(
    ("name", "workload", "words"),
    [
        ("tpu-v5e", Inference(), "XLA"),
        ("trainium3", Inference(), "Neuron"),
        ("apple-m1", Inference(weights="nf4"), "bitsandbytes"),
        ("apple-m1", Training(optimizer="adamw-8bit"), "bitsandbytes"),
        ("tesla-k80", Inference(weights="nf4"), "bitsandbytes"),
        ("gtx-1080", Inference(weights="int8"), "bitsandbytes"),
        ("quadro-rtx-4000", Inference(attention="flash"), "FlashAttention"),
        ("apple-m1", Inference(attention="flash"), "FlashAttention"),
        ("radeon-rx-6900-xt", Inference(attention="flash"), "FlashAttention"),
        ("apple-m1", Training(method="qlora"), "bitsandbytes"),
        ("apple-m1", Training(optimizer="paged-lion-8bit"), "bitsandbytes"),
        ("gtx-1080", Training(method="lora", weights="int8"), "bitsandbytes"),
        ("rtx-4090", Training(attention="flash", compute="fp32"), "fp16 and bf16 only"),
        ("gtx-1080", Training(profile="liger"), "Triton"),
        ("apple-m1", Training(profile="unsloth"), "Triton"),
        ("rtx-3090", Inference(weights="fp8-block128"), "8.9"),
        ("tesla-v100-sxm2-16gb", Inference(weights="mxfp4"), "7.5"),
    ],
)
def test_what_a_card_cannot_run_gets_a_reason_and_no_verdict(name, workload, words):
    reasons = memory_of(llama(), workload).unsupported_reasons(workload, gpu(name))
    assert any(words in reason for reason in reasons)
    available = bundled().hardware.usable_memory(gpu(name))
    result = estimate_memory(small_llama(), workload, gpu(name), available)
    assert result.verdict is None
    assert result.unsupported == reasons


def test_gaudi_is_told_apart_from_other_cards_of_its_maker():
    gaudi = [card for card in bundled().hardware.gpus if card.architecture == "Gaudi"]
    assert gaudi
    assert all("Gaudi" in pytorch_reasons(Inference(), card)[0] for card in gaudi)
    assert not pytorch_reasons(Inference(weights="nf4"), gpu("max-1100"))


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        ("gtx-1080", Inference(weights="nf4")),
        ("rtx-4090", Inference(weights="int8", attention="flash")),
        ("instinct-mi325x", Training(optimizer="adamw-8bit", attention="flash")),
        ("apple-m1", Inference(weights="Q4_K_M")),
        ("tesla-v100-sxm2-16gb", Training(profile="liger", compute="amp-bf16")),
        ("instinct-mi325x", Training(profile="unsloth", method="qlora")),
        ("rtx-4090", Inference(weights="fp8-block128")),
        ("apple-m1", Training(optimizer="adafactor-transformers")),
    ],
)
def test_what_it_can_run_has_none(name, workload):
    assert not memory_of(llama(), workload).unsupported_reasons(workload, gpu(name))


def test_a_whole_catalog_is_judged_as_each_card_is():
    hardware = bundled().hardware
    cards = [(card, hardware.usable_memory(card)) for card in hardware.gpus[::7]]
    workload = Inference(context_length=2000)
    for fit, (card, available) in zip(fits_on(llama(), workload, cards), cards, strict=True):
        result = estimate_memory(llama(), workload, card, available)
        assert fit.gpu_id == card.id
        assert (fit.verdict, fit.total_bytes, fit.free_bytes) == (result.verdict, result.total_bytes, result.free_bytes)
        assert fit.unsupported == result.unsupported
