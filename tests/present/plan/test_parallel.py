"""Parallelism of a workload as a phrase, and its cards as table rows."""

import pytest

from planner.memory.estimate import estimate_memory
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.format import THIN
from planner.present.plan.parallel import (
    batch_note,
    cards_phrase,
    chosen_sharing_phrase,
    chosen_sharing_sentences,
    device_rows,
    parallelism_phrase,
    parallelism_summary,
)
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference, Training


@pytest.mark.parametrize(
    ("workload", "note"),
    [
        (Inference(batch=50, parallel=Parallel(data=2)), "50 per replica, 100 in all"),
        (Inference(batch=50), ""),
        (Inference(batch=50, parallel=Parallel(data=1)), ""),
        (Training(parallel=Parallel(data=2)), ""),
    ],
)
def test_a_batch_counts_for_each_replica(workload, note):
    assert batch_note(workload) == note


@pytest.mark.parametrize(
    ("workload", "phrase", "summary"),
    [
        (Inference(), "", "independent replicas"),
        (Training(), "", "DDP on 8 GPUs"),
        (Training(parallel=Parallel(zero=3)), "FSDP", "FSDP on 8 GPUs"),
        (Training(parallel=Parallel(zero=2)), "ZeRO-2", "ZeRO-2 on 8 GPUs"),
        (Training(profile="deepspeed", parallel=Parallel(zero=3)), "ZeRO-3", "ZeRO-3 on 8 GPUs"),
        (
            Training(profile="megatron", parallel=Parallel(zero=1, tensor=2, sequence=True)),
            "distributed optimizer, tensor parallel 2, sequence parallel",
            "distributed optimizer, tensor parallel 2, sequence parallel on 8 GPUs",
        ),
        (
            Inference(parallel=Parallel(pipeline=2, expert=2)),
            "2 pipeline stages, expert parallel 2",
            "2 pipeline stages, expert parallel 2 on 8 GPUs",
        ),
        (
            Training(parallel=Parallel(zero=3, offload="parameters")),
            "FSDP, parameters and optimizer in RAM",
            "FSDP, parameters and optimizer in RAM on 8 GPUs",
        ),
    ],
)
def test_parallelism_is_a_phrase(workload, phrase, summary):
    assert parallelism_phrase(workload) == phrase
    assert parallelism_summary(workload, 8) == summary


def test_one_card_shares_nothing():
    assert parallelism_summary(Inference(), 1) == "1 GPU"


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (Inference(parallel=Parallel(data=4)), "replicas"),
        (Training(parallel=Parallel(data=4)), "replicas"),
        (Inference(parallel=Parallel(pipeline=4, data=1)), "a layer split over 4 GPUs"),
        (Inference(parallel=Parallel(tensor=2, data=4)), "tensor parallelism over 2 GPUs, 4 replicas"),
        (Inference(parallel=Parallel(tensor=2, pipeline=4)), "tensor parallelism over 2 GPUs, 4 pipeline stages"),
        (Training(parallel=Parallel(zero=3, data=4)), "FSDP over 4 GPUs"),
        (Training(profile="deepspeed", parallel=Parallel(zero=3, data=8)), "ZeRO-3 over 8 GPUs"),
        (
            Training(profile="megatron", parallel=Parallel(zero=1, tensor=2, data=4)),
            "tensor parallelism over 2 GPUs, distributed optimizer over 4 GPUs",
        ),
        (Training(profile="megatron", parallel=Parallel(zero=1, tensor=4, data=1)), "tensor parallelism over 4 GPUs"),
    ],
)
def test_what_was_chosen_is_named_with_its_cards(workload, words):
    assert chosen_sharing_phrase(workload) == words


@pytest.mark.parametrize(
    ("gpu", "count", "workload", "first", "last"),
    [
        (None, 1, Inference(), "", ""),
        (
            None,
            4,
            Inference(profile="vllm"),
            "Shown is one of 4 replicas; where",
            "assumed to be shared over the 4 GPUs.",
        ),
        ("rtx-3090", 1, Inference(), "", ""),
        ("rtx-3090", 2, Inference(parallel=Parallel(tensor=2)), "", ""),
        ("h100-sxm5-80gb", 2, Inference(), "Each GPU holds the whole model, because", "one is enough."),
        (
            "rtx-3090",
            2,
            Inference(),
            "Assumed: a layer split over 2 GPUs, because a full copy needs ",
            " 23.6 GiB. Check that Hugging Face is configured for it.",
        ),
        (
            "rtx-3090",
            2,
            Inference(profile="vllm"),
            "Assumed: tensor parallelism over 2 GPUs, because a full copy needs ",
            " 23.6 GiB. Check that vLLM is configured for it.",
        ),
        (
            "h100-sxm5-80gb",
            8,
            Training(optimizer="soap"),
            "The GPUs are replicas: Hugging Face cannot",
            "better.",
        ),
    ],
)
def test_the_choice_is_told_with_its_reason_and_what_replicas_need(catalog, gpu, count, workload, first, last):
    plan = Plan(model=ModelChoice(id="Qwen/Qwen2.5-14B"), workload=workload, gpu=gpu, count=count)
    told = chosen_sharing_sentences(evaluate(plan, catalog)).replace(THIN, " ")
    assert told.startswith(first)
    assert told.endswith(last)
    assert bool(told) == bool(first)


def test_sequence_parallelism_needs_several_cards():
    assert parallelism_phrase(Training(parallel=Parallel(sequence=True))) == ""


def test_cards_are_counted_by_kind(catalog):
    unequal = Inference(gpus=(CardCount(id="rtx-4090"), CardCount(id="rtx-3090", count=2)))
    assert cards_phrase(unequal, 3, None, catalog.hardware) == "1 × GeForce RTX 4090 + 2 × GeForce RTX 3090"
    assert cards_phrase(Inference(), 8, "H100", catalog.hardware) == "8 × H100"
    assert cards_phrase(Inference(), 8, None, catalog.hardware) == ""


def test_pipeline_stages_have_rows_and_equal_cards_have_none(catalog):
    model = catalog.models.model("meta-llama/Llama-3.1-8B")
    gpu = catalog.hardware.gpu("rtx-4090")
    usable = catalog.hardware.usable_memory(gpu)
    alike = estimate_memory(model, Training(parallel=Parallel(zero=3)), gpu, usable, count=8)
    assert device_rows(alike, catalog.hardware) == ()
    rows = device_rows(
        estimate_memory(model, Inference(parallel=Parallel(pipeline=2)), gpu, usable, count=2), catalog.hardware
    )
    assert [row.card for row in rows] == ["1 × GeForce RTX 4090"] * 2
    assert [row.layers for row in rows] == ["16", "16"]
    assert sorted(row.scarcity for row in rows) == ["", "least free memory"]
    assert all(0 < row.used_fraction < 1 for row in rows)


def test_unknown_memory_is_shown_as_unknown(catalog):
    model = catalog.models.model("meta-llama/Llama-3.1-8B")
    unknown = estimate_memory(model, Inference(parallel=Parallel(pipeline=2)), count=2)
    rows = device_rows(unknown, catalog.hardware)
    assert [(row.card, row.usable, row.free, row.verdict) for row in rows] == [
        ("1 × GPU", "unknown", "unknown", "")
    ] * 2
    assert rows[0].used_fraction is None


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (Training(), "DDP on 8 GPUs"),
        (Training(parallel=Parallel(zero=3)), "FSDP on 8 GPUs"),
        (Training(parallel=Parallel(tensor=2, pipeline=4)), "tensor parallel 2, 4 pipeline stages on 8 GPUs"),
        (Inference(), "independent replicas"),
        (Inference(parallel=Parallel(tensor=8)), "tensor parallel 8 on 8 GPUs"),
    ],
)
def test_the_summary_states_the_parallelism_and_the_number_of_cards(workload, words):
    assert parallelism_summary(workload, 8) == words


def test_nothing_is_said_of_sharing_a_pipeline(catalog):
    model = ModelChoice(id="stabilityai/stable-diffusion-xl-base-1.0")
    plan = Plan(model=model, workload=Training(), gpu="rtx-4090", count=2)
    assert evaluate(plan, catalog).sharing is not None
    assert chosen_sharing_sentences(evaluate(plan, catalog)) == ""
