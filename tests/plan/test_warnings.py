"""What is easily overlooked is said where it is true, and only there."""

from types import SimpleNamespace

import pytest

from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.warnings import _warn_resident_experts, warnings_about
from planner.workload.parallel import CardCount, Parallel
from planner.workload.training import Lora
from planner.workload.workload import Inference, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


GPT2 = ModelChoice(id="openai-community/gpt2")


def said(plan, catalog):
    found = warnings_about(evaluate(plan, catalog))
    assert all(warning.source and warning.sentence.endswith(".") for warning in found)
    return {warning.name: warning.sentence for warning in found}


LARGE = ModelChoice(id="meta-llama/Llama-3.1-70B")


MIDDLE = ModelChoice(id="meta-llama/Llama-3.1-8B")


SMALL = ModelChoice(id="openai-community/gpt2")


LATENT = ModelChoice(id="deepseek-ai/DeepSeek-V3")


def card_warnings(catalog, model, workload, count, gpu="h100-sxm5-80gb"):
    found = warnings_about(evaluate(Plan(model=model, workload=workload, gpu=gpu, count=count), catalog))
    assert all(warning.source and warning.sentence.endswith(".") for warning in found)
    return {warning.name: warning.sentence for warning in found}


def deepspeed(**parallel):
    return Training(profile="deepspeed", sequence_length=512, parallel=Parallel(**parallel))


def test_an_ordinary_plan_has_no_warning(catalog):
    assert said(Plan(model=LLAMA, gpu="rtx-4090"), catalog) == {}


def test_a_large_vocabulary_makes_the_loss_the_peak(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.2-1B"), workload=Training(micro_batch=8), gpu="rtx-4090")
    memory = evaluate(plan, catalog).memory
    logits = memory.term("logits").bytes
    sentence = said(plan, catalog)["loss-peak"]
    assert memory.peak_phase == "loss"
    assert f"vocabulary of 128,256 its logits take {logits / 2**30:.1f} GiB" in sentence
    assert "loss-peak" not in said(plan.evolve(workload=Training(sequence_length=16)), catalog)


@pytest.mark.parametrize(
    ("gpu", "workload", "other"),
    [
        ("tesla-t4", Training(), "amp-fp16"),
        ("tesla-v100-sxm2-16gb", Inference(), "fp16"),
    ],
)
def test_bf16_is_emulated_before_ampere(catalog, gpu, workload, other):
    sentence = said(Plan(model=GPT2, workload=workload, gpu=gpu), catalog)["emulated-bf16"]
    assert catalog.hardware.gpu(gpu).name in sentence
    assert f"slowly; {other} runs" in sentence


@pytest.mark.parametrize(("gpu", "compute"), [("rtx-4090", "bf16"), ("tesla-t4", "fp16"), (None, "bf16")])
def test_native_or_unused_bf16_has_no_warning(catalog, gpu, compute):
    assert "emulated-bf16" not in said(Plan(model=GPT2, workload=Inference(compute=compute), gpu=gpu), catalog)


def test_all_experts_are_resident(catalog):
    sentence = said(Plan(model=ModelChoice(id="mistralai/Mixtral-8x7B-v0.1")), catalog)["resident-experts"]
    assert sentence == (
        "All 8 experts of a layer are in memory, although each token uses only 2: 46.7 B parameters determine the "
        "memory, 12.9 B the speed."
    )


@pytest.mark.parametrize(("active", "is_told"), [(90e9, True), (91e9, False)])
def test_experts_are_told_of_if_a_tenth_of_the_parameters_rests(catalog, active, is_told):
    sized = SimpleNamespace(parameters=100e9, active_parameters=active)
    mixtral = catalog.models.model("mistralai/Mixtral-8x7B-v0.1")
    assert bool(list(_warn_resident_experts(sized, mixtral))) is is_told


def test_eager_attention_warns_with_the_saving_of_sdpa(catalog):
    plan = Plan(model=LLAMA, workload=Inference(attention="eager", context_length=8192, prompt_length=8192))
    fused = plan.evolve(workload=plan.workload.evolve(attention="sdpa"))
    saved = evaluate(plan, catalog).memory.total_bytes - evaluate(fused, catalog).memory.total_bytes
    assert f"SDPA needs {saved / 2**30:.1f} GiB less" in said(plan, catalog)["eager-scores"]
    short = plan.evolve(workload=Inference(attention="eager", context_length=64))
    assert "eager-scores" not in said(short, catalog)


@pytest.mark.parametrize(
    ("workload", "gpu", "words"),
    [
        (Inference(weights="fp32", compute="fp32"), "rtx-4090", "The weights are in fp32"),
        (Inference(weights="fp32", compute="fp32"), "tesla-t4", "fp16 needs"),
        (Training(compute="tf32", micro_batch=8), None, "bf16 autocast needs"),
    ],
)
def test_fp32_warns_with_the_saving_of_16_bits(catalog, workload, gpu, words):
    assert words in said(Plan(model=GPT2, workload=workload, gpu=gpu), catalog)["fp32"]


def test_fp32_without_a_saving_has_no_warning(catalog):
    plan = Plan(model=GPT2, workload=Training(compute="fp32", sequence_length=1))
    assert "fp32" not in said(plan, catalog)


def test_fp16_parameters_cannot_be_scaled(catalog):
    assert "fp16 autocast" in said(Plan(model=GPT2, workload=Training(compute="fp16")), catalog)["unscaled-fp16"]


def test_adapters_may_keep_more_activations_than_full_training(catalog):
    plan = Plan(model=LLAMA, workload=Training(method="lora"), gpu="h100-sxm5-80gb")
    sentence = said(plan, catalog)["adapter-activations"]
    assert sentence.startswith("Adapters shrink the optimizer states, not the activations, which reach ")
    kept, full = (
        max(share.bytes for phase in memory.phases for share in phase.shares if share.name == "activations")
        for memory in (
            evaluate(plan.evolve(workload=workload), catalog).memory
            for workload in (plan.workload, Training(compute="bf16"))
        )
    )
    assert f"reach {kept / 2**30:.1f} GiB " in sentence
    assert f"({full / 2**30:.1f} GiB in full fine-tuning in bf16)." in sentence
    assert "adapter-activations" in said(plan.evolve(workload=Training(method="lora", optimizer="soap")), catalog)
    few = Training(method="lora", lora=Lora(rank=1, targets=("q_proj",)))
    assert "adapter-activations" not in said(plan.evolve(workload=few), catalog)
    assert "adapter-activations" not in said(plan.evolve(workload=Training()), catalog)


def test_cards_that_newer_pytorch_dropped_have_a_warning(catalog):
    def ends(gpu, **changes):
        found = warnings_about(evaluate(Plan(model=GPT2, gpu=gpu, **changes), catalog), catalog.software)
        return [warning.sentence for warning in found if warning.name == "software-ends"]

    assert ends("tesla-p100-pcie-16gb") == [
        "PyTorch 2.14 is the newest version known to run on a Tesla P100 PCIe 16 GB: only in the CUDA 12.6 builds; "
        "those for CUDA 12.8 and later leave these GPUs out since 2.8."
    ]
    assert ends("tesla-p100-pcie-16gb", workload=Inference(profile="llama.cpp", weights="Q4_K_M")) == []
    assert ends("rtx-4090") == []
    assert ends(None) == []


def test_zero_3_may_need_more_than_zero_2(catalog):
    sentence = card_warnings(catalog, SMALL, deepspeed(zero=3), 8)["zero-3-buffers"]
    assert sentence.startswith("ZeRO-2 needs ")
    assert "zero-3-buffers" not in card_warnings(catalog, LARGE, deepspeed(zero=3), 8)


@pytest.mark.parametrize(
    "workload", [deepspeed(zero=2), deepspeed(zero=3, offload="nvme"), Inference(parallel=Parallel(tensor=2))]
)
def test_zero_3_has_no_warning_where_unused_or_needed(catalog, workload):
    assert "zero-3-buffers" not in card_warnings(catalog, SMALL, workload, 2)


def test_zero_3_over_unequal_cards_has_no_warning(catalog):
    unequal = deepspeed(zero=3).evolve(gpus=(CardCount(id="rtx-4090"), CardCount(id="rtx-3090")))
    assert "zero-3-buffers" not in card_warnings(catalog, SMALL, unequal, 2, gpu=None)


def test_a_cache_of_few_heads_is_repeated(catalog):
    asked = Inference(profile="vllm", batch=16, context_length=32_768, parallel=Parallel(tensor=16))
    sentence = card_warnings(catalog, MIDDLE, asked, 16)["repeated-cache"]
    assert "16 GPUs share 8 key-value heads, and each GPU holds 12 % of it" in sentence
    assert "repeated-cache" not in card_warnings(catalog, MIDDLE, asked.evolve(parallel=Parallel(tensor=8)), 8)
    assert "repeated-cache" not in card_warnings(catalog, MIDDLE, asked.evolve(batch=1, context_length=64), 16)


def test_a_latent_cache_is_on_every_card(catalog):
    asked = Inference(profile="vllm", batch=64, context_length=32_768, parallel=Parallel(tensor=8))
    assert "the latent cache is on every GPU" in card_warnings(catalog, LATENT, asked, 8)["repeated-cache"]


def test_large_nccl_buffers_have_a_warning(catalog):
    one = card_warnings(catalog, SMALL, Inference(parallel=Parallel(tensor=2)), 2)["communicators"]
    assert "for 1 communicator" in one
    two = card_warnings(catalog, SMALL, Training(sequence_length=64, parallel=Parallel(tensor=2)), 4)["communicators"]
    assert "for 2 communicators" in two
    assert "communicators" not in card_warnings(catalog, LARGE, Training(parallel=Parallel(zero=3)), 8)
    assert "communicators" not in card_warnings(catalog, SMALL, Inference(), 2)


def test_uneven_stages_warn_with_the_setting_that_balances_them(catalog):
    named = Parallel(pipeline=4, pipeline_layers=(5, 9, 9, 9))
    sentence = card_warnings(catalog, MIDDLE, Training(parallel=named), 4)["uneven-stages"]
    assert "Stage 4 needs " in sentence
    assert "pipeline_layers" in sentence
    even = card_warnings(catalog, LARGE, Inference(parallel=Parallel(pipeline=4)), 4)
    assert "uneven-stages" not in even


def test_uneven_stages_on_unequal_cards_have_no_warning(catalog):
    asked = Inference(
        weights="Q8_0", parallel=Parallel(pipeline=2), gpus=(CardCount(id="rtx-4090"), CardCount(id="rtx-3060-12-gb"))
    )
    assert "uneven-stages" not in card_warnings(catalog, MIDDLE, asked, 2, gpu=None)
