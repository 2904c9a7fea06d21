"""Selective checkpoints: PyTorch's by operators, and Megatron's of the core of attention."""

from typing import Any

import pytest
from small_models import GPT2, MIXTRAL, llama, other, small_llama

from planner.errors import SpecError
from planner.memory.estimate import fullest_timeline
from planner.memory.software import training_memory
from planner.memory.training.saved import SavedActivations
from planner.models.architecture import Architecture
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

T = 2048
H, Q, KV, WIDE, A, L = 4096, 4096, 4096, 11008, 32, 32


def saved(architecture: Architecture, **how: Any) -> SavedActivations:
    asked = {"compute": "bf16", "sequence_length": T, "activation_checkpointing": "selective"} | how
    workload = with_defaults(Training.model_validate(asked), architecture, 1)
    assert isinstance(workload, Training)
    return training_memory(workload.profile).setup(architecture, workload).saved


def test_of_llama_every_second_product_and_attention_are_kept() -> None:
    # The first, third, fifth and seventh product: queries, values, gate and down; attention's output and sums.
    assert saved(llama()).kept.checkpoints == L * T * (2 * H + 2 * (Q + KV + WIDE + H) + 2 * Q + 4 * A)


def test_products_with_a_bias_are_all_kept() -> None:
    network = other("gpt2", GPT2, n_layer=2, n_embd=64, n_head=2)
    # In one operator with their bias, they are none of those of which every second is left.
    assert saved(network, sequence_length=32).kept.checkpoints == 2 * 32 * 2 * (
        64 + 3 * 64 + 64 + 256 + 64 + 64 + 2 * 2
    )


def test_adapters_add_two_products_each() -> None:
    plain = saved(small_llama(), method="lora", sequence_length=32, compute="amp-bf16")
    narrow = saved(small_llama(), method="lora", sequence_length=32, compute="amp-bf16", lora={"rank": 8})
    # Of 21 products the odd ones are kept; six of the adapters' first products are among those in seven layers.
    assert (plain.kept.checkpoints - narrow.kept.checkpoints) % (32 * 2 * 8) == 0
    assert plain.kept.checkpoints > narrow.kept.checkpoints


def test_the_own_kernel_of_flash_attention_is_computed_again() -> None:
    assert saved(llama()).kept.checkpoints - saved(llama(), attention="flash").kept.checkpoints == L * T * (
        2 * Q + 4 * A
    )


def test_eager_attention_keeps_both_batched_products() -> None:
    more = saved(llama(), attention="eager").kept.checkpoints - saved(llama(), attention="flash").kept.checkpoints
    assert more == L * T * (2 * Q + 2 * A * T)


def test_megatron_computes_the_core_of_attention_again() -> None:
    whole, core = (
        saved(llama(), profile="megatron", trainable=("*",), activation_checkpointing=kind)
        for kind in ("none", "selective")
    )
    assert whole.total - core.total == L * T * 4 * A
    assert core.kept.checkpoints == 0
    assert core.recomputed == T * 4 * A


def test_megatron_saves_the_scores_of_eager_attention() -> None:
    whole, core = (
        saved(llama(), profile="megatron", trainable=("*",), attention="eager", activation_checkpointing=kind)
        for kind in ("none", "selective")
    )
    assert whole.kept.scores > core.kept.scores == 0


@pytest.mark.parametrize("network", [llama(), other("mixtral", MIXTRAL, num_hidden_layers=2)])
def test_it_needs_less_than_none_and_more_than_full(network: Architecture) -> None:
    kept = {
        kind: max(
            snapshot.total
            for snapshot in fullest_timeline(
                network,
                with_defaults(
                    Training(micro_batch=4, compute="bf16", sequence_length=512, activation_checkpointing=kind),
                    network,
                    1,
                ),
            ).snapshots
            if snapshot.name == "forward"
        )
        for kind in ("none", "selective", "full")
    }
    assert kept["none"] > kept["selective"] > kept["full"]


def test_state_space_layers_are_refused() -> None:
    network = other("mamba", {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100, "state_size": 16})
    with pytest.raises(SpecError, match="state-space"):
        saved(network, sequence_length=32)


def test_what_is_called_so_elsewhere_is_refused() -> None:
    with pytest.raises(SpecError, match="every k-th"):
        Training(activation_checkpointing="selective", profile="torchtune")
    with pytest.raises(ValueError, match="DoRA"):
        Training.model_validate({"activation_checkpointing": "selective", "method": "lora", "lora": {"dora": True}})


@pytest.mark.parametrize(("profile", "word"), [("hf", "torchtitan"), ("megatron", "Megatron")])
def test_the_source_says_which_of_both_it_is(profile: str, word: str) -> None:
    asked = Training.model_validate({"profile": profile, "activation_checkpointing": "selective"})
    workload = with_defaults(asked, llama(), 1)
    forward = next(one for one in fullest_timeline(llama(), workload).snapshots if one.name == "forward")
    written = forward.written()
    assert word in next(term.source for term in written if term.name == "activations")


SIZES = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
ROUTED = SIZES | {"intermediate_size": 160, "num_key_value_heads": 4, "num_experts_per_tok": 2}


def test_of_a_shared_key_in_bf16_the_scores_are_kept_in_fp32() -> None:
    network = other("falcon", SIZES, multi_query=True, new_decoder_architecture=False, parallel_attn=True, bias=False)
    # Queries, keys and values in one product, then what widens; attention's output and scores by matrix products.
    assert saved(network, sequence_length=32).kept.checkpoints == 32 * (2 * 64 + 2 * (96 + 256) + 4 * 64 + 4 * 4 * 32)


def test_bloom_keeps_no_scores() -> None:
    network = other("bloom", SIZES | {"n_layer": 1, "n_head": 4})
    assert saved(network, sequence_length=32).kept.checkpoints == 32 * 2 * (64 + 192 + 64 + 256 + 64 + 64)


def test_a_weighted_shared_expert_is_multiplied_before_the_router() -> None:
    sizes = ROUTED | {"num_experts": 4, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 48}
    network = other("qwen2_moe", sizes)
    # Biased queries, keys and values; of output, gate, up, down, router and its weight the first, third and fifth.
    products = 3 * 64 + 64 + 48 + 4
    assert saved(network, sequence_length=32).kept.checkpoints == 32 * (2 * (64 + products + 64) + 4 * 4 + 2 * (4 + 8))


def test_experts_that_compute_every_token_keep_both_products() -> None:
    network = other("llama4_text", ROUTED | {"num_local_experts": 4, "head_dim": 16, "intermediate_size_mlp": 160})
    kept = saved(network, sequence_length=8).kept.checkpoints
    assert kept > 8 * 2 * 4 * (2 * 160 + 64)


def test_eight_bit_products_are_in_no_list() -> None:
    how = {"method": "lora", "compute": "amp-bf16", "sequence_length": 32}
    assert saved(small_llama(), weights="int8", **how).kept.checkpoints < saved(small_llama(), **how).kept.checkpoints
