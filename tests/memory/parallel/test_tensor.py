"""The share of a network that one card of a tensor- or expert-parallel group holds."""

import pytest
from reader_cases import FALCON_H1, MAMBA2
from small_models import DEEPSEEK, GPT2, MIXTRAL, bundled, llama, other

from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.parallel.tensor import parameters_by_place, tensor_share
from planner.models.architecture import Architecture, Attention, LatentAttention, Mlp, Moe, StateMixer
from planner.models.readers.config_json import read_config


def only_layer(network: Architecture):
    return network.main.groups[-1].layer


def sizes(network: Architecture) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in only_layer(network).tensors}


def test_one_card_holds_everything():
    whole = llama()
    assert tensor_share(whole, 1) is whole


def test_matrices_are_divided_and_norms_are_not():
    share = tensor_share(llama(num_key_value_heads=8), 4)
    shapes = sizes(share)
    assert shapes["self_attn.q_proj.weight"] == (1024, 4096)
    assert shapes["self_attn.k_proj.weight"] == (256, 4096)
    assert shapes["self_attn.o_proj.weight"] == (4096, 1024)
    assert shapes["mlp.gate_proj.weight"] == (2752, 4096)
    assert shapes["mlp.down_proj.weight"] == (4096, 2752)
    assert shapes["input_layernorm.weight"] == (4096,)
    assert share.head[0].shape == (8000, 4096)
    assert share.vocabulary == 8000


def test_a_card_computes_its_heads_and_its_width():
    layer = only_layer(tensor_share(llama(num_key_value_heads=8), 4))
    assert isinstance(layer.mixer, Attention)
    assert isinstance(layer.feed_forward, Mlp)
    assert (layer.mixer.heads, layer.mixer.kv_heads, layer.feed_forward.intermediate) == (8, 2, 2752)


def test_heads_of_keys_and_values_are_repeated_where_cards_are_more():
    grouped = llama(num_key_value_heads=2)
    share = tensor_share(grouped, 8)
    mixer = only_layer(share).mixer
    assert isinstance(mixer, Attention)
    assert (mixer.heads, mixer.kv_heads) == (4, 1)
    assert sizes(share)["self_attn.k_proj.weight"] == (128, 4096)
    # The cache of a card is a half, not an eighth, of the whole.
    whole, own = (kv_cache_term(network, 1, 64, 0, "bf16").bytes for network in (grouped, share))
    assert own * 2 == whole


def test_the_latent_is_on_every_card():
    deepseek = other("deepseek_v3", DEEPSEEK)
    share = tensor_share(deepseek, 8)
    whole, own = (kv_cache_term(network, 1, 64, 0, "bf16").bytes for network in (deepseek, share))
    assert own == whole
    mixer = only_layer(share).mixer
    assert isinstance(mixer, LatentAttention)
    assert (mixer.heads, mixer.kv_lora_rank) == (16, 512)
    shapes = sizes(share)
    assert shapes["self_attn.kv_a_proj_with_mqa.weight"] == sizes(deepseek)["self_attn.kv_a_proj_with_mqa.weight"]
    assert shapes["self_attn.q_b_proj.weight"] == (128 * 192 // 8, 1536)


def test_queries_keys_and_values_in_one_matrix_are_divided_by_heads():
    gpt2 = other("gpt2", GPT2)
    share = tensor_share(gpt2, 4)
    whole, own = (network.main.groups[0].layer.parameters for network in (gpt2, share))
    # Norms and the biases of outputs are whole on each card.
    replicated = 4 * 768 + 2 * 768
    assert own == (whole - replicated) // 4 + replicated


def test_one_matrix_of_grouped_heads_has_whole_heads_of_keys():
    phi3 = bundled().models.model("microsoft/Phi-3-medium-4k-instruct")
    mixer = only_layer(phi3).mixer
    assert isinstance(mixer, Attention)
    assert mixer.fused_qkv
    shares = sizes(tensor_share(phi3, 20))
    own = mixer.q_dim // 20 + 2 * mixer.head_dim
    assert shares["self_attn.qkv_proj.weight"] == (own, phi3.hidden)


def test_a_share_of_the_vocabulary_is_whole_in_its_units():
    share = tensor_share(llama(vocab_size=50_257), 4, vocabulary_multiple=128)
    assert share.vocabulary == 12_672 == -(-50_257 // 512) * 128
    assert tensor_share(llama(vocab_size=50_257), 1, vocabulary_multiple=128).vocabulary == 50_304


def test_the_vocabulary_may_stay_whole_on_each_card():
    network = llama(vocab_size=50_257)
    share = tensor_share(network, 4, vocabulary_multiple=None)
    assert share.vocabulary == 50_257
    assert share.head == network.head
    assert share.main.before == network.main.before
    assert share.main.parameters < network.main.parameters


def test_experts_are_divided_by_the_replicas_that_share_them():
    mixtral = other("mixtral", MIXTRAL)
    share = tensor_share(mixtral, 1, 4)
    block = only_layer(share).feed_forward
    assert isinstance(block, Moe)
    assert block.experts == 2
    expert = 3 * 4096 * 14_336
    assert only_layer(mixtral).parameters - only_layer(share).parameters == 6 * expert


def test_experts_are_divided_both_ways():
    deepseek = other("deepseek_v3", DEEPSEEK)
    share = tensor_share(deepseek, 2, 4)
    routed = [sum(t.parameters for t in only_layer(net).tensors if t.role == "expert") for net in (deepseek, share)]
    assert routed[1] * 8 == routed[0]
    block = only_layer(share).feed_forward
    assert isinstance(block, Moe)
    assert (block.experts, block.intermediate, block.shared_intermediate) == (4, 1024, 1024)


def test_experts_that_compute_every_token_do_so_for_those_that_are_sent_to_them():
    llama4 = bundled().models.model("meta-llama/Llama-4-Scout-17B-16E-Instruct")
    whole, own = (only_layer(network).feed_forward for network in (llama4, tensor_share(llama4, 1, 4)))
    assert isinstance(whole, Moe)
    assert isinstance(own, Moe)
    assert (whole.experts, whole.every_expert) == (16, True)
    assert (own.experts, own.every_expert, own.top_k) == (4, False, whole.top_k)


def test_states_of_a_scan_are_divided():
    mamba = read_config({"model_type": "mamba2", **MAMBA2}, "mamba2")
    share = tensor_share(mamba, 2)
    whole, own = (only_layer(network).mixer for network in (mamba, share))
    assert isinstance(whole, StateMixer)
    assert isinstance(own, StateMixer)
    assert own.inner_dim * 2 == whole.inner_dim
    assert only_layer(share).parameters < only_layer(mamba).parameters


def test_mixers_side_by_side_are_both_divided():
    both = read_config({"model_type": "falcon_h1", **FALCON_H1}, "falcon_h1")
    whole, own = (only_layer(network) for network in (both, tensor_share(both, 2)))
    assert isinstance(own.mixer, Attention)
    assert isinstance(whole.mixer, Attention)
    assert own.mixer.heads * 2 == whole.mixer.heads
    assert isinstance(own.second_mixer, StateMixer)
    assert own.second_mixer.recurrent_state_elements * 2 == whole.second_mixer.recurrent_state_elements


def test_numbers_of_each_head_are_divided():
    gpt_oss = bundled().models.model("openai/gpt-oss-20b")
    assert sizes(gpt_oss)["self_attn.sinks"] == (64,)
    assert sizes(tensor_share(gpt_oss, 8))["self_attn.sinks"] == (8,)


def test_attention_to_an_encoder_is_divided_like_attention_to_itself():
    t5 = bundled().models.model("google-t5/t5-11b")
    share = tensor_share(t5, 8)
    crossed = only_layer(share).cross_attention
    assert crossed is not None
    assert crossed.heads * 8 == only_layer(t5).cross_attention.heads
    assert only_layer(share).parameters < only_layer(t5).parameters / 7


def test_stored_bytes_are_divided_in_proportion():
    model = bundled().models.model("openai/gpt-oss-20b")
    share = tensor_share(model, 2)
    before, after = parameters_by_place(model), parameters_by_place(share)
    for part, own in zip(model.stored, share.stored, strict=True):
        assert own.bytes == pytest.approx(part.bytes * after[part.place] / before[part.place], abs=1)


def test_tokens_of_norms_are_shared_only_with_sequence_parallelism():
    assert only_layer(tensor_share(llama(), 4)).stream_shards == 1
    assert only_layer(tensor_share(llama(), 4, sequence=True)).stream_shards == 4


def test_a_network_without_tokens_has_no_vocabulary_to_share():
    vit = bundled().models.model("google/vit-base-patch16-224")
    share = tensor_share(vit, 4)
    assert share.vocabulary is None
    assert share.parameters < vit.parameters / 3


def test_numbers_of_each_state_head_are_divided():
    shapes = sizes(tensor_share(other("mamba2", MAMBA2), 2))
    assert [shapes[f"mixer.{name}"] for name in ("A_log", "D", "dt_bias")] == [(4,)] * 3
    assert shapes["norm.weight"] == (64,)
