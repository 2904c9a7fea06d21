"""Passes as sums of measured kernels, with the arithmetic."""

import pytest
from known_engines import ENGINES
from small_models import bundled

from planner.performance.inference.kernels import pass_kernels
from planner.performance.inference.machine import card_speed
from planner.performance.inference.passes import HostWeights, ModelSplit
from planner.performance.inference.request import ServedModel, decoding_step_time, prompt_time
from planner.performance.inference.work import work_of
from planner.performance.kernels.attention import AttentionShape
from planner.performance.kernels.times import (
    attention_prompt_time,
    attention_token_time,
    collective_time,
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
    machine = card_speed(card(gpu), ENGINES[engine], weights, unfused=unfused)
    return pass_kernels(bundled().models.model(model), machine, card(gpu), weights, cache)


def run(tensor=1, offloaded=0.0, model=LLAMA_8B, weights="fp8"):
    gpu, architecture = card(), bundled().models.model(model)
    sharing = ModelSplit(links_of(gpu, TimeSetting()), tensor, offloaded=HostWeights(offloaded, 50e9))
    machine = card_speed(gpu, ENGINES[TABLES], weights)
    kernels = kernels_of(model=model, weights=weights)
    return ServedModel(architecture, work_of(architecture, weights), machine, sharing, "fp8", kernels=kernels)


def product(rows, columns, inner, number_format="fp8"):
    return matmul_time(card(), TABLES, number_format, rows, columns, inner, fused=True).seconds


def test_a_step_is_the_sum_of_its_kernels():
    step = decoding_step_time(run(), 64, 1_000)
    layer = product(64, 6_144, 4_096) + product(64, 4_096, 4_096)
    layer += product(64, 28_672, 4_096) + product(64, 4_096, 14_336)
    head = product(64, 128_256, 4_096, "bf16")
    assert step.weights_read + step.compute == pytest.approx(32 * layer + head)
    shape = AttentionShape(64, 1_000, 32, 8, 128, 0, 1.0)
    assert step.cache_read == pytest.approx(32 * attention_token_time(card(), TABLES, "fp8", shape).seconds)
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
    assert reading.attention == pytest.approx(32 * attention_prompt_time(card(), TABLES, "bf16/fp8", shape).seconds)
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


def test_a_split_that_no_table_has_takes_the_classes():
    wide, offloaded = run(tensor=16), run(offloaded=0.5)
    for other in (wide, offloaded):
        classes = other._replace(kernels=None)
        assert decoding_step_time(other, 8, 1_000) == decoding_step_time(classes, 8, 1_000)


@pytest.mark.parametrize(
    "other",
    [
        {"engine": "vllm"},
        {"weights": "awq4-128"},
        {"cache": "int8"},
        {"unfused": True},
        {"model": "Qwen/Qwen3-30B-A3B"},
        {"model": "deepseek-ai/DeepSeek-V3"},
        {"model": "google-bert/bert-base-uncased"},
        {"gpu": "tesla-v100-sxm2-32gb", "weights": "bf16", "cache": "fp16"},
        {"gpu": "h100-sxm5-80gb", "weights": "nvfp4"},
    ],
    ids=["engine", "format", "cache", "unfused", "experts", "latent", "encoder", "far card", "no such kernel"],
)
def test_what_was_not_measured_has_no_kernels(other):
    assert kernels_of() is not None
    assert kernels_of(**other) is None
