"""Passes as sums of measured kernels, with the arithmetic."""

import pytest
from known_engines import ENGINES
from small_models import bundled

from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.kernels import pass_kernels, routed_kernels
from planner.performance.inference.passes import ModelSplit, OffloadedWeights, elementwise_seconds
from planner.performance.inference.request import ServedModel, decoding_step_time, prompt_time
from planner.performance.inference.work import work_of
from planner.performance.kernels.attention import AttentionShape
from planner.performance.kernels.products import ExpertShape
from planner.performance.kernels.times import (
    attention_decode_time,
    attention_prefill_time,
    collective_time,
    experts_time,
    launch_seconds,
    matmul_time,
)
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting

LLAMA_8B = "meta-llama/Llama-3.1-8B"
TABLES = "tensorrt-llm"


def card(name="b200-sxm-180gb"):
    return bundled().hardware.gpu(name)


def kernels_of(gpu="b200-sxm-180gb", engine=TABLES, weights="fp8", model=LLAMA_8B, cache="fp8", unfused=False):
    speed = gpu_speed(card(gpu), ENGINES[engine], weights, unfused=unfused)
    return pass_kernels(bundled().models.model(model), speed, card(gpu), weights, cache)


def run(tensor=1, stages=1, offloaded=0.0, model=LLAMA_8B, weights="fp8", gpu="b200-sxm-180gb"):
    device, architecture = card(gpu), bundled().models.model(model)
    split = ModelSplit(links_of(device, TimeSetting()), tensor, stages, OffloadedWeights(offloaded, 50e9))
    speed = gpu_speed(device, ENGINES[TABLES], weights)
    kernels = kernels_of(gpu, model=model, weights=weights)
    return ServedModel(architecture, work_of(architecture, weights), speed, split, "fp8", kernels=kernels)


def product(rows, columns, inner, number_format="fp8", gpu="b200-sxm-180gb"):
    return matmul_time(card(gpu), TABLES, number_format, rows, columns, inner, fused=True).seconds


def test_a_step_is_the_sum_of_its_kernels():
    step = decoding_step_time(run(), 64, 1_000)
    layer = product(64, 6_144, 4_096) + product(64, 4_096, 4_096)
    layer += product(64, 28_672, 4_096) + product(64, 4_096, 14_336)
    head = product(64, 128_256, 4_096, "bf16")
    assert step.weights_read + step.compute == pytest.approx(32 * layer + head)
    shape = AttentionShape(64, 1_000, 32, 8, 128, 0, 1.0)
    assert step.cache_read == pytest.approx(32 * attention_decode_time(card(), TABLES, "fp8", shape).seconds)
    moved = 64 * run().work.pointwise_bytes / (8e12 * 0.80 / 0.6)
    assert step.elementwise == pytest.approx(moved + 32 * 3 * launch_seconds(card(), TABLES))
    assert step.host == step.tensor_exchange == step.attention == 0  # launches are in the kernels


def test_the_card_waits_for_a_host_that_schedules_many_sequences():
    step = decoding_step_time(run(model="meta-llama/Llama-3.2-1B"), 2_048, 1)
    assert step.seconds == pytest.approx(2_048 * 25e-6)


def test_cards_share_the_kernels_of_a_pass_and_sum_their_results():
    step = decoding_step_time(run(tensor=8), 64, 1_000)
    layer = product(64, 768, 4_096) + product(64, 4_096, 512) + product(64, 3_584, 4_096) + product(64, 4_096, 1_792)
    head = product(64, 128_256 / 8, 4_096, "bf16")
    assert step.weights_read + step.compute == pytest.approx(32 * layer + head)
    summed = collective_time(card(), TABLES, "graph", "all-reduce", 8, 64 * 4_096 * 2).seconds
    assert step.tensor_exchange == pytest.approx(64 * summed)


def test_a_prompt_is_attended_to_in_whole():
    reading = prompt_time(run(), 4, 2_048)
    shape = AttentionShape(4, 2_048, 32, 8, 128, 0, 1.0)
    assert reading.attention == pytest.approx(32 * attention_prefill_time(card(), TABLES, "bf16/fp8", shape).seconds)
    assert reading.cache_read == 0


def test_a_window_bounds_the_keys_of_a_step():
    sliding = run(model="mistralai/Mistral-7B-v0.1")
    assert sliding.kernels.layers[0].attention.window == 4_096
    assert decoding_step_time(sliding, 8, 32_000).cache_read == decoding_step_time(sliding, 8, 4_096).cache_read
    assert prompt_time(sliding, 1, 8_192).attention < prompt_time(run(), 1, 8_192).attention


def test_products_without_a_gate_and_queries_that_share_a_key_are_counted():
    falcon = run(model="tiiuae/falcon-7b", weights="bf16")
    assert not falcon.kernels.layers[0].feed_forward.gated
    layer = product(1, 71 * 64 + 2 * 64, 4_544, "bf16") + product(1, 4_544, 71 * 64, "bf16")
    layer += product(1, 4 * 4_544, 4_544, "bf16") + product(1, 4_544, 4 * 4_544, "bf16")
    head = product(1, 65_024, 4_544, "bf16")
    step = decoding_step_time(falcon, 1, 100)
    assert step.weights_read + step.compute == pytest.approx(32 * layer + head)


def test_cards_with_sequences_of_their_own_share_the_experts():
    rtx, model = "rtx-pro-6000-blackwell-server", "Qwen/Qwen3-30B-A3B"
    two = run(tensor=2, model=model, weights="nvfp4", gpu=rtx)
    step = decoding_step_time(two, 128, 1_000)
    # Each card computes the attention of 64 sequences with all heads, and half of the experts for all tokens.
    layer = product(64, 5_120, 2_048, "nvfp4", rtx) + product(64, 2_048, 4_096, "nvfp4", rtx)
    layer += product(64, 128, 2_048, "bf16", rtx)
    layer += experts_time(card(rtx), TABLES, "nvfp4", ExpertShape(128, 2_048, 768, 128, 8, 2, 3, 0.5625, 0.0)).seconds
    head = product(128, 151_936 / 2, 2_048, "bf16", rtx)
    assert step.weights_read + step.compute == pytest.approx(48 * layer + head)
    shape = AttentionShape(64, 1_000, 32, 4, 128, 0, 1.0)
    assert step.cache_read == pytest.approx(48 * attention_decode_time(card(rtx), TABLES, "fp8", shape).seconds)
    gathered = collective_time(card(rtx), "nccl", "nccl", "all-gather", 2, 128 * 2_048 * 0.5625)
    scattered = collective_time(card(rtx), "nccl", "nccl", "reduce-scatter", 2, 128 * 2_048 * 2)
    assert step.tensor_exchange == pytest.approx(48 * (gathered.seconds + scattered.seconds))
    assert decoding_step_time(run(model=model, weights="nvfp4", gpu=rtx), 128, 1_000).tensor_exchange == 0


def served_by_vllm(model, tensor=1, gpu="h100-sxm5-80gb"):
    device, architecture = card(gpu), bundled().models.model(model)
    speed = gpu_speed(device, ENGINES["vllm"], "bf16")
    kernels = kernels_of(gpu, "vllm", "bf16", model, "fp16")
    split = ModelSplit(links_of(device, TimeSetting()), tensor, 1, OffloadedWeights())
    return ServedModel(architecture, work_of(architecture, "bf16"), speed, split, "fp16", kernels=kernels)


def test_stacked_memory_is_read_alike_in_a_family():
    assert kernels_of("h20-96gb", "vllm", "bf16", LLAMA_8B, "fp16") is not None
    assert kernels_of("rtx-5090", "vllm", "bf16", LLAMA_8B, "fp16") is None


def test_sums_of_kernels_are_taken_for_the_memory_on_which_they_were_shown():
    assert kernels_of("rtx-pro-6000-blackwell-server", "tensorrt-llm", "nvfp4", LLAMA_8B, "fp8") is not None
    assert kernels_of("rtx-pro-6000-blackwell-server", "vllm", "bf16", LLAMA_8B, "fp16") is None


def test_one_scheduler_for_all_cards_has_a_part_of_each_expert_on_each():
    two = served_by_vllm("Qwen/Qwen3-30B-A3B", tensor=2)
    step = decoding_step_time(two, 128, 1_000)
    h100 = card("h100-sxm5-80gb")

    def vllm_product(columns, inner):
        return matmul_time(h100, "vllm", "bf16", 128, columns, inner, fused=True).seconds

    layer = vllm_product(2_560, 2_048) + vllm_product(2_048, 2_048) + vllm_product(128, 2_048)
    layer += experts_time(h100, "vllm", "bf16", ExpertShape(128, 2_048, 384, 128, 8, 1, 3, 2, 0.0)).seconds
    assert step.weights_read + step.compute == pytest.approx(48 * layer + vllm_product(151_936 / 2, 2_048))
    summed = collective_time(h100, "vllm", "graph", "all-reduce", 2, 128 * 2_048 * 2).seconds
    assert step.tensor_exchange == pytest.approx(96 * summed)


@pytest.mark.parametrize(("model", "launches"), [(LLAMA_8B, 32 * 5), ("Qwen/Qwen3-8B", 36 * 7)])
def test_vllm_rotates_writes_and_normalizes_queries_and_keys_in_kernels_of_their_own(model, launches):
    one = served_by_vllm(model)
    step = decoding_step_time(one, 1, 1_000)
    moved = elementwise_seconds(one.work, one.speed, 1, 1)
    assert step.elementwise - moved == pytest.approx(launches * launch_seconds(card("h100-sxm5-80gb"), "vllm"))


def test_shared_experts_are_products_of_each_card():
    rtx, model = "rtx-pro-6000-blackwell-server", "meta-llama/Llama-4-Scout-17B-16E-Instruct"
    scout = run(model=model, weights="nvfp4", gpu=rtx)
    step = decoding_step_time(scout, 16, 1_000)
    layer = product(16, 7_168, 5_120, "nvfp4", rtx) + product(16, 5_120, 5_120, "nvfp4", rtx)
    layer += product(16, 16, 5_120, "bf16", rtx)
    layer += product(16, 16_384, 5_120, "nvfp4", rtx) + product(16, 5_120, 8_192, "nvfp4", rtx)
    layer += experts_time(card(rtx), TABLES, "nvfp4", ExpertShape(16, 5_120, 8_192, 16, 1, 1, 3, 0.5625, 0.0)).seconds
    head = product(16, 202_048, 5_120, "bf16", rtx)
    assert step.weights_read + step.compute == pytest.approx(48 * layer + head)


def test_a_split_that_no_table_has_takes_the_classes():
    rtx = "rtx-pro-6000-blackwell-server"
    wide, offloaded = run(tensor=16), run(offloaded=0.5)
    piped = run(stages=2, model="Qwen/Qwen3-30B-A3B", weights="nvfp4", gpu=rtx)
    for other in (wide, offloaded, piped):
        classes = other._replace(kernels=None)
        assert decoding_step_time(other, 8, 1_000) == decoding_step_time(classes, 8, 1_000)


@pytest.mark.parametrize(
    "other",
    [
        {"engine": "llama.cpp"},
        {"engine": "vllm"},
        {"weights": "awq4-128"},
        {"cache": "int8"},
        {"unfused": True},
        {"model": "Qwen/Qwen3-30B-A3B"},
        {"model": "openai/gpt-oss-120b", "gpu": "rtx-pro-6000-blackwell-server", "weights": "mxfp4"},
        {"model": "deepseek-ai/DeepSeek-V3"},
        {"model": "tiiuae/Falcon-H1-7B-Instruct"},
        {"model": "google-bert/bert-base-uncased"},
        {"gpu": "tesla-v100-sxm2-32gb", "weights": "bf16", "cache": "fp16"},
        {"gpu": "h100-sxm5-80gb", "weights": "nvfp4"},
        {"gpu": "rtx-4090"},
    ],
    ids=[
        "engine",
        "format in another engine",
        "format",
        "cache",
        "unfused",
        "experts",
        "experts' format",
        "latent",
        "a second mixer",
        "encoder",
        "far GPU",
        "no such kernel",
        "GDDR of another GPU",
    ],
)
def test_what_was_not_measured_has_no_kernels(other):
    assert kernels_of() is not None
    assert kernels_of(**other) is None


def routed(gpu, engine, weights, model):
    speed = gpu_speed(card(gpu), ENGINES[engine], weights)
    return routed_kernels(bundled().models.model(model), speed, card(gpu), weights)


def test_experts_alone_have_kernels_where_they_were_measured_in_the_engine():
    h200, minimax = "h200-sxm-141gb", "MiniMaxAI/MiniMax-M2.5"
    found = routed(h200, "vllm", "fp8-block128", minimax)
    assert (found.number_format, found.hidden, [number for number, _ in found.blocks]) == ("fp8-block", 3_072, [62])
    assert routed("h20-96gb", "vllm", "fp8-block128", minimax) is not None  # of the family
    assert routed("b200-sxm-180gb", "tensorrt-llm", "nvfp4", minimax) is None  # of other cards
    assert routed(h200, "vllm", "Q4_K_M", minimax) is None
    assert routed(h200, "vllm", "bf16", LLAMA_8B) is None
    assert routed(h200, "llama.cpp", "bf16", minimax) is None


def test_measured_experts_take_the_place_of_their_class_while_prompts_are_read():
    h200, model = card("h200-sxm-141gb"), bundled().models.model("MiniMaxAI/MiniMax-M2.5")
    speed = gpu_speed(h200, ENGINES["vllm"], "fp8-block128")
    work = work_of(model, "fp8-block128")
    plain = ServedModel(model, work, speed, ModelSplit(links_of(h200, TimeSetting()), 8), "fp16")
    measured = plain._replace(experts=routed("h200-sxm-141gb", "vllm", "fp8-block128", "MiniMaxAI/MiniMax-M2.5"))
    shape = ExpertShape(4_096, 3_072, 1_536 / 8, 256, 8, 1.0, 3, 1.0, 0.0)
    experts = 62 * experts_time(h200, "vllm", "fp8-block", shape).seconds
    dense = plain._replace(work=work._replace(experts=(), parameters=work.parameters - work.active_expert_parameters))
    prompt, without = prompt_time(measured, 1, 4_096), prompt_time(dense, 1, 4_096)
    assert prompt.compute == pytest.approx(without.compute + experts)
    assert prompt.weights_read == pytest.approx(without.weights_read)
    assert prompt.seconds > prompt_time(plain, 1, 4_096).seconds
    assert decoding_step_time(measured, 8, 1_000) == decoding_step_time(plain, 8, 1_000)


def test_the_host_launches_a_short_prompt_of_experts_for_longer_than_the_card_takes():
    h200, model = card("h200-sxm-141gb"), bundled().models.model("MiniMaxAI/MiniMax-M2.5")
    speed = gpu_speed(h200, ENGINES["vllm"], "fp8-block128")
    run = ServedModel(
        model, work_of(model, "fp8-block128"), speed, ModelSplit(links_of(h200, TimeSetting()), 8), "fp16"
    )
    assert prompt_time(run, 1, 513).seconds == pytest.approx(62 * 0.72e-3 + 25e-6)
    assert prompt_time(run, 1, 512).seconds < 62 * 0.72e-3
