"""Memory of served LoRA adapters, by hand, and a published number of parameters beside it."""

import pytest
from small_models import llama, other

from planner.memory.estimate import estimate_memory
from planner.memory.inference.added_weights import served_adapters_term
from planner.memory.parallel.tensor import tensor_share
from planner.workload.software.vllm import reserved_rank
from planner.workload.workload import Inference

PROJECTIONS = 4 * (4096 + 4096) + 3 * (4096 + 11_008)
"""Inputs and outputs of a layer of Llama 2 7B: queries, keys, values, output, gate, up and down."""


def slots(profile="vllm", architecture=None, rank=16, element=2, embeds=False, parallel=None, **adapters):
    workload = Inference(profile=profile, adapters=adapters, parallel=parallel or {})
    return served_adapters_term(architecture or llama(), workload, rank, element, "a source", embeds=embeds)


def test_a_slot_holds_both_matrices_of_each_layer():
    assert slots(slots=3).bytes == 3 * 16 * 2 * 32 * PROJECTIONS
    assert slots(slots=0) is None


def test_adapters_of_queries_and_values_have_the_published_parameters():
    """PEFT, print_trainable_parameters for Llama 2 7B, rank 8, q_proj and v_proj: 4,194,304 of 6,742,609,920."""
    assert slots(rank=8, element=1, slots=1, targets=("q_proj", "v_proj")).bytes == 4_194_304


def test_vllm_also_prepares_embedding_and_head_and_rounds_up_the_rank():
    vocabulary = 2 * (32_000 + 4096)
    assert slots(slots=1, embeds=True).bytes == 16 * 2 * (32 * PROJECTIONS + vocabulary)
    assert slots(slots=1, embeds=True, targets=("lm_head",)).bytes == 16 * 2 * (32_000 + 4096)
    assert [reserved_rank(rank) for rank in (1, 5, 16, 17, 300, 600)] == [1, 8, 16, 32, 320, 600]
    found = estimate_memory(llama(), Inference(profile="vllm", adapters={"slots": 2, "rank": 12}))
    assert found.term("adapters").bytes == 2 * 16 * 2 * (32 * PROJECTIONS + vocabulary)


def test_two_cards_divide_outputs_of_some_matrices_and_inputs_of_others():
    half = tensor_share(llama(), 2)
    across = 3 * (4096 + 2048) + 2 * (4096 + 5504)  # queries, keys, values, gate and up
    along = (2048 + 4096) + (5504 + 4096)  # output and down
    term = slots(architecture=half, embeds=True, parallel={"tensor": 2}, slots=1)
    assert term.bytes == 16 * 2 * (32 * (across + along) + 2 * (32_000 + 4096))


def test_each_expert_has_an_adapter_and_a_fused_projection_two_inputs():
    sizes = {
        "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 4, "num_key_value_heads": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
    }  # fmt: skip
    found = slots(architecture=other("mixtral", sizes), rank=1, element=1, slots=1).bytes
    assert found == 4 * (64 + 64) + 4 * 3 * (64 + 32)


@pytest.mark.parametrize(("profile", "element"), [("sglang", 2), ("llama.cpp", 4)])
def test_other_engines_reserve_the_rank_itself(profile, element):
    weights = {"weights": "Q8_0"} if profile == "llama.cpp" else {}
    found = estimate_memory(llama(), Inference(profile=profile, adapters={"slots": 2, "rank": 12}, **weights))
    assert found.term("adapters").bytes == 2 * 12 * element * 32 * PROJECTIONS
