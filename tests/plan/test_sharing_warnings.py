"""What is easily overlooked of several cards is said where it is true, and only there."""

import pytest

from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.warnings import warnings_about
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference, Training

LARGE = ModelChoice(id="meta-llama/Llama-3.1-70B")
MIDDLE = ModelChoice(id="meta-llama/Llama-3.1-8B")
SMALL = ModelChoice(id="openai-community/gpt2")
LATENT = ModelChoice(id="deepseek-ai/DeepSeek-V3")


def said(catalog, model, workload, count, gpu="h100-sxm5-80gb"):
    found = warnings_about(evaluate(Plan(model=model, workload=workload, gpu=gpu, count=count), catalog))
    assert all(warning.source and warning.sentence.endswith(".") for warning in found)
    return {warning.name: warning.sentence for warning in found}


def deepspeed(**parallel):
    return Training(profile="deepspeed", sequence_length=512, parallel=Parallel(**parallel))


def test_zero_3_may_need_more_than_zero_2(catalog):
    sentence = said(catalog, SMALL, deepspeed(zero=3), 8)["zero-3-buffers"]
    assert sentence.startswith("ZeRO-2 needs ")
    assert "zero-3-buffers" not in said(catalog, LARGE, deepspeed(zero=3), 8)


@pytest.mark.parametrize(
    "workload", [deepspeed(zero=2), deepspeed(zero=3, offload="nvme"), Inference(parallel=Parallel(tensor=2))]
)
def test_zero_3_is_not_spoken_of_where_it_is_not_used_or_needed(catalog, workload):
    assert "zero-3-buffers" not in said(catalog, SMALL, workload, 2)


def test_zero_3_over_unequal_cards_is_left_alone(catalog):
    unequal = deepspeed(zero=3).evolve(gpus=(CardCount(id="rtx-4090"), CardCount(id="rtx-3090")))
    assert "zero-3-buffers" not in said(catalog, SMALL, unequal, 2, gpu=None)


def test_a_cache_of_few_heads_is_repeated(catalog):
    asked = Inference(profile="vllm", batch=16, context_length=32_768, parallel=Parallel(tensor=16))
    sentence = said(catalog, MIDDLE, asked, 16)["repeated-cache"]
    assert "8 key-value heads are split across 16 cards, and each card holds 12 % of it" in sentence
    assert "repeated-cache" not in said(catalog, MIDDLE, asked.evolve(parallel=Parallel(tensor=8)), 8)
    assert "repeated-cache" not in said(catalog, MIDDLE, asked.evolve(batch=1, context_length=64), 16)


def test_a_latent_is_on_every_card(catalog):
    asked = Inference(profile="vllm", batch=64, context_length=32_768, parallel=Parallel(tensor=8))
    assert "the latent cache is on every card" in said(catalog, LATENT, asked, 8)["repeated-cache"]


def test_communicators_are_told_where_they_are_much(catalog):
    one = said(catalog, SMALL, Inference(parallel=Parallel(tensor=2)), 2)["communicators"]
    assert "for 1 communicator" in one
    two = said(catalog, SMALL, Training(sequence_length=64, parallel=Parallel(tensor=2)), 4)["communicators"]
    assert "for 2 communicators" in two
    assert "communicators" not in said(catalog, LARGE, Training(parallel=Parallel(zero=3)), 8)
    assert "communicators" not in said(catalog, SMALL, Inference(), 2)


def test_uneven_stages_are_told_with_what_moves_layers(catalog):
    named = Parallel(pipeline=4, pipeline_layers=(5, 9, 9, 9))
    sentence = said(catalog, MIDDLE, Training(parallel=named), 4)["uneven-stages"]
    assert "Stage 4 needs " in sentence
    assert "pipeline_layers" in sentence
    even = said(catalog, LARGE, Inference(parallel=Parallel(pipeline=4)), 4)
    assert "uneven-stages" not in even


def test_stages_on_unequal_cards_are_uneven_on_purpose(catalog):
    asked = Inference(
        weights="Q8_0", parallel=Parallel(pipeline=2), gpus=(CardCount(id="rtx-4090"), CardCount(id="rtx-3060-12-gb"))
    )
    assert "uneven-stages" not in said(catalog, MIDDLE, asked, 2, gpu=None)
