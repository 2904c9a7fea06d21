"""What a pass reads and computes, with the arithmetic."""

import pytest
from small_models import bundled, other

from planner.dtypes import AS_STORED
from planner.models.layers import StoredTensors
from planner.performance.inference.work import AttentionPairs, DeltaNets, ExpertGroup, work_of


def model(name):
    return bundled().models.model(name)


LLAMA_8B = "meta-llama/Llama-3.1-8B"
LAYER = 4096 * 4096 * 2 + 2 * 4096 * 1024 + 3 * 4096 * 14336


def test_a_token_passes_through_every_product_but_the_table():
    work = work_of(model(LLAMA_8B), "bf16")
    assert work.parameters == 32 * LAYER
    assert work.head_parameters == 128_256 * 4096
    norms = (2 * 32 + 1) * 4096
    assert work.read_bytes(1) == 2 * (32 * LAYER + 128_256 * 4096 + norms)
    assert work.read_bytes(1000) == work.read_bytes(1)


def test_a_tied_table_is_read_as_the_head():
    tied = work_of(model("Qwen/Qwen3-0.6B"), "bf16")
    assert tied.head_parameters == 151_936 * 1024
    assert tied.read_bytes(1) == pytest.approx(2 * model("Qwen/Qwen3-0.6B").parameters)


def test_schemes_are_read_as_stored_and_what_they_leave_alone_in_16_bits():
    plain, packed = work_of(model(LLAMA_8B), "bf16"), work_of(model(LLAMA_8B), "awq4-128")
    outside = 2 * (128_256 * 4096 + (2 * 32 + 1) * 4096)
    assert packed.read_bytes(1) == 32 * LAYER * (4 + 20 / 128) / 8 + outside
    assert packed.dequantised_bytes == 2 * 32 * LAYER
    assert plain.dequantised_bytes == 0


def test_gguf_files_are_read_by_their_share():
    work, whole = work_of(model(LLAMA_8B), "Q4_K_M"), model(LLAMA_8B)
    table = 128_256 * 4096 / whole.parameters
    assert work.read_bytes(1) == pytest.approx(4.92e9 * (1 - table), rel=0.01)


def test_formats_without_a_name_are_read_by_their_share():
    stored = (StoredTensors(format="I8", place="layers", elements=8_030_261_248, bytes=8_030_261_248),)
    mixed = model(LLAMA_8B).evolve(stored=stored, stored_dtype="bf16")
    assert mixed.stored_as == AS_STORED
    work = work_of(mixed, AS_STORED)
    assert work.read_bytes(1) == pytest.approx(8_030_261_248 - 128_256 * 4096, rel=1e-6)
    assert work.dequantised_bytes == 0


def test_experts_are_read_as_tokens_visit_them():
    work = work_of(model("mistralai/Mixtral-8x7B-v0.1"), "bf16")
    (experts,) = work.experts
    assert experts.bytes == 2 * 32 * 8 * 3 * 4096 * 14336
    assert work.parameters == 32 * (4096 * 4096 * 2 + 2 * 4096 * 1024 + 8 * 4096 + 2 * 3 * 4096 * 14336)
    assert experts.active_share(1) == pytest.approx(2 / 8)
    assert experts.active_share(4) == pytest.approx(1 - 0.75**4)
    assert work.read_bytes(1) == pytest.approx(work.fixed_bytes + experts.bytes / 4)


def test_models_that_compute_every_expert_do_so_only_in_their_own_code():
    scout = model("meta-llama/Llama-4-Scout-17B-16E-Instruct")
    chosen, own = work_of(scout, "bf16"), work_of(scout, "bf16", every_expert=True)
    assert {kind.visits for kind in chosen.experts} == {1}
    assert {kind.visits for kind in own.experts} == {16}
    assert own.parameters > 5 * chosen.parameters


def test_windows_bound_what_a_prompt_attends_to():
    pairs = AttentionPairs(flops=4.0, scores=1.0, window=100)
    assert pairs.prompt_pairs(60) == 1800
    assert pairs.prompt_pairs(1000) == 100 * 1000 - 100**2 / 2
    assert AttentionPairs(4.0, 1.0, None).prompt_pairs(1000) == 500_000


def test_attention_of_a_prompt():
    work = work_of(model(LLAMA_8B), "bf16")
    assert work.attention_flops(1000) == 32 * 4 * 32 * 128 * 500_000
    assert work.scores(1000) == 32 * 32 * 500_000
    latent = work_of(model("deepseek-ai/DeepSeek-V3"), "fp8")
    assert latent.attention_flops(2) == 61 * 2 * 128 * (128 + 64 + 128) * 2


def test_what_stands_between_products():
    work = work_of(model(LLAMA_8B), "bf16")
    assert work.pointwise_bytes == 32 * 2 * (10 * 4096 + 2 * (4096 + 2 * 1024) + 3 * 14336)


def test_layers_with_a_state_attend_to_nothing():
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 100, "state_size": 8}
    work = work_of(other("mamba", sizes), "bf16")
    assert work.pairs == ()
    assert work.pointwise_bytes == 2 * 2 * 10 * 32
    assert work.queries_per_key == 1


def test_delta_nets_are_read_with_their_heads_and_what_surrounds_them():
    work = work_of(model("Qwen/Qwen3-Next-80B-A3B-Instruct"), "bf16")
    assert work.delta_nets == (DeltaNets(layers=36, heads=32, width=128),)
    assert work.delta_net_layers == 36
    keys, values = 16 * 128, 32 * 128
    delta = 2 * (2 * keys + values) + 2 * 2 * keys + 3 * values
    attention = 2 * (16 * 256 + 2 * 2 * 256)
    experts = 3 * (10 * 512 + 512) + 4 * 10 * 2_048
    assert work.pointwise_bytes == 2 * (48 * (10 * 2_048 + experts) + 36 * delta + 12 * attention)
    assert work_of(model(LLAMA_8B), "bf16").delta_nets == ()


def test_no_expert_is_left_where_all_are_visited():
    assert ExpertGroup(1.0, 1, 4, 4).active_share(1) == 1
