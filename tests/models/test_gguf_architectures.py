"""The metadata that llama.cpp's converter writes for a configuration reads as the configuration itself does."""

from typing import NamedTuple

import pytest
from made_files import array, gguf_bytes, tiny_gguf

from planner.errors import ModelFileError
from planner.models.readers.config_json import read_config
from planner.models.readers.gguf_families import FAMILIES
from planner.models.readers.gguf_file import GgufFile, GgufTensor, Omitted
from planner.models.readers.gguf_model import architecture_of_gguf
from planner.models.readers.model_file import read_model_file

BASE = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 128,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "sliding_window": None,
}
KEYS = {
    "embedding_length": 64,
    "block_count": 4,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "feed_forward_length": 96,
    "context_length": 512,
}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
EXPERT_KEYS = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 32}
LATENT = {
    "q_lora_rank": 24,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "num_key_value_heads": 4,
}
LATENT_KEYS = EXPERT_KEYS | {
    "attention.q_lora_rank": 24,
    "attention.kv_lora_rank": 32,
    "rope.dimension_count": 8,
    "expert_shared_count": 2,
    "leading_dense_block_count": 1,
}
DELTA = {
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 24,
    "linear_conv_kernel_dim": 4,
}
DELTA_KEYS = {
    "attention.key_length": 32,
    "ssm.group_count": 2,
    "ssm.state_size": 16,
    "ssm.time_step_rank": 4,
    "ssm.inner_size": 96,
    "ssm.conv_kernel": 4,
}


NONE: dict[str, object] = {}


class Case(NamedTuple):
    """A configuration, and the metadata and tensors that tell the same beyond the common ones."""

    architecture: str
    model_type: str
    config: dict[str, object] = NONE
    keys: dict[str, object] = NONE
    tensors: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


BIASED = ("blk.0.attn_q.bias", "blk.0.ffn_up.bias", "blk.0.attn_output.bias")
CASES = (
    Case("arcee", "arcee"),
    Case("baichuan", "llama"),
    Case("bitnet", "bitnet"),
    Case("bloom", "bloom", {"intermediate_size": None, "max_position_embeddings": 512}, {"feed_forward_length": 256}),
    Case("chatglm", "glm", {"head_dim": 16}, {"attention.key_length": 16}, ("blk.0.attn_qkv.bias",)),
    Case("cohere2", "cohere2", {"sliding_window": 64}, {"attention.sliding_window": 64}),
    Case("command-r", "cohere"),
    Case("command-r", "cohere", {"use_qk_norm": True}, {}, ("blk.0.attn_q_norm.weight",)),
    Case(
        "dbrx",
        "dbrx",
        {
            "attn_config": {"kv_n_heads": 2},
            "ffn_config": {"moe_num_experts": 4, "moe_top_k": 2, "ffn_hidden_size": 96},
        },
        {"expert_count": 4, "expert_used_count": 2},
    ),
    Case(
        "deepseek2",
        "deepseek_v2",
        EXPERTS | LATENT | {"q_lora_rank": None},
        LATENT_KEYS | {"attention.q_lora_rank": 0, "attention.key_length": 24, "attention.value_length": 16},
    ),
    Case(
        "deepseek2",
        "deepseek_v3",
        EXPERTS | LATENT,
        LATENT_KEYS
        | {
            "attention.key_length": 40,
            "attention.value_length": 32,
            "attention.key_length_mla": 24,
            "attention.value_length_mla": 16,
            "attention.head_count_kv": 1,
            "expert_gating_func": 2,
        },
    ),
    Case(
        "dots1",
        "dots1",
        EXPERTS | {"n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1},
        EXPERT_KEYS | {"expert_shared_count": 1, "leading_dense_block_count": 1},
    ),
    Case("ernie4_5", "ernie4_5", {"head_dim": 16}, {"attention.key_length": 16}),
    Case(
        "ernie4_5-moe",
        "ernie4_5_moe",
        {
            "moe_num_experts": 4,
            "moe_k": 2,
            "moe_intermediate_size": 32,
            "moe_num_shared_experts": 1,
            "moe_layer_start_index": 1,
            "moe_layer_interval": 2,
        },
        EXPERT_KEYS | {"expert_shared_count": 1, "leading_dense_block_count": 1, "interleave_moe_layer_step": 2},
    ),
    Case("exaone4", "exaone4", {"sliding_window": 64}, {"attention.sliding_window": 64}),
    Case("falcon", "falcon", {"multi_query": True}, {"attention.head_count_kv": 1}),
    Case("falcon", "falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}, {}, ("blk.0.attn_norm_2.weight",)),
    Case("gemma", "gemma", {"head_dim": 32}, {"attention.key_length": 32}),
    Case(
        "gemma2",
        "gemma2",
        {"head_dim": 32, "sliding_window": 64},
        {"attention.key_length": 32, "attention.sliding_window": 64},
    ),
    Case(
        "gemma3",
        "gemma3_text",
        {"head_dim": 32, "sliding_window": 64},
        {"attention.key_length": 32, "attention.sliding_window": 64},
    ),
    Case("glm4", "glm4", {"head_dim": 16}, {"attention.key_length": 16}, ("blk.0.attn_q.bias",)),
    Case(
        "glm4moe",
        "glm4_moe",
        EXPERTS
        | {
            "head_dim": 16,
            "n_routed_experts": 4,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "use_qk_norm": True,
            "attention_bias": True,
        },
        EXPERT_KEYS
        | {
            "attention.key_length": 16,
            "expert_shared_count": 1,
            "leading_dense_block_count": 1,
            "block_count": 5,
            "nextn_predict_layers": 1,
        },
        ("blk.0.attn_q.bias", "blk.0.attn_q_norm.weight"),
    ),
    Case(
        "gpt-oss",
        "gpt_oss",
        {
            "head_dim": 16,
            "intermediate_size": 32,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": 128,
        },
        EXPERT_KEYS | {"attention.key_length": 16, "attention.sliding_window": 128},
        ("blk.0.attn_q.bias",),
        ("feed_forward_length",),
    ),
    Case("gpt2", "gpt2", {"num_key_value_heads": None}, {}, BIASED, ("attention.head_count_kv",)),
    Case("gptj", "gptj", {"num_key_value_heads": None}, {}, (), ("attention.head_count_kv",)),
    Case(
        "gptneox",
        "gpt_neox",
        {"num_key_value_heads": None, "use_parallel_residual": False},
        {"use_parallel_residual": False},
        BIASED,
        ("attention.head_count_kv",),
    ),
    Case("granite", "granite"),
    Case(
        "granitemoe",
        "granitemoe",
        {"intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2},
        {"expert_count": 4, "expert_used_count": 2, "feed_forward_length": 32},
    ),
    Case(
        "granitemoe",
        "granitemoeshared",
        {"intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 48},
        {
            "expert_count": 4,
            "expert_used_count": 2,
            "feed_forward_length": 32,
            "expert_shared_feed_forward_length": 48,
        },
    ),
    Case("hunyuan-dense", "hunyuan_v1_dense", {"head_dim": 16}, {"attention.key_length": 16}),
    Case(
        "hunyuan-moe",
        "hunyuan_v1_moe",
        {"num_experts": 4, "moe_topk": 2},
        {"expert_count": 4, "expert_used_count": 2, "expert_shared_feed_forward_length": 96},
    ),
    Case("internlm2", "llama"),
    Case(
        "lfm2",
        "lfm2",
        {
            "layer_types": ["conv", "conv", "full_attention", "conv"],
            "conv_L_cache": 3,
            "block_auto_adjust_ff_dim": False,
            "tie_word_embeddings": False,
        },
        {"attention.head_count_kv": [0, 0, 2, 0], "shortconv.l_cache": 3},
    ),
    Case("llama", "llama"),
    Case("llama", "llama", {"attention_bias": True, "mlp_bias": True}, {}, BIASED),
    Case("llama", "llama", {"tie_word_embeddings": True}, {}, (), ("output.weight",)),
    Case("llama", "llama", {"head_dim": 32}, {"attention.key_length": 32}),
    Case(
        "llama",
        "mixtral",
        {"num_local_experts": 4, "num_experts_per_tok": 2},
        {"expert_count": 4, "expert_used_count": 2},
    ),
    Case(
        "llama4",
        "llama4_text",
        {
            "intermediate_size": 32,
            "intermediate_size_mlp": 96,
            "num_local_experts": 4,
            "num_experts_per_tok": 1,
            "interleave_moe_layer_step": 2,
            "head_dim": 16,
        },
        EXPERT_KEYS | {"expert_used_count": 1, "interleave_moe_layer_step": 2, "attention.key_length": 16},
    ),
    Case(
        "mamba",
        "mamba",
        {"state_size": 8, "conv_kernel": 4, "expand": 2, "time_step_rank": 4},
        {
            "ssm.inner_size": 128,
            "ssm.state_size": 8,
            "ssm.conv_kernel": 4,
            "ssm.time_step_rank": 4,
            "attention.head_count": 0,
        },
        (),
        ("attention.head_count_kv",),
    ),
    Case(
        "mamba2",
        "mamba2",
        {"state_size": 8, "conv_kernel": 4, "num_heads": 8, "head_dim": 16, "n_groups": 2},
        {
            "ssm.inner_size": 128,
            "ssm.state_size": 8,
            "ssm.conv_kernel": 4,
            "ssm.time_step_rank": 8,
            "ssm.group_count": 2,
        },
    ),
    Case("minicpm", "llama"),
    Case(
        "minimax-m2",
        "minimax_m2",
        {"intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 32},
        EXPERT_KEYS | {"attention.key_length": 32},
    ),
    Case("mistral3", "ministral3", {"head_dim": 32}, {"attention.key_length": 32}),
    Case("mpt", "mpt", {"num_key_value_heads": None}, {}, (), ("attention.head_count_kv",)),
    Case("nemotron", "nemotron"),
    Case("olmo", "olmo"),
    Case("olmo2", "olmo2"),
    Case("olmo2", "olmo3", {"sliding_window": 64}, {"attention.sliding_window": 64}),
    Case(
        "olmoe",
        "olmoe",
        {"num_experts": 4, "num_experts_per_tok": 2},
        {"expert_count": 4, "expert_used_count": 2},
    ),
    Case("phi2", "phi", {}, {}, BIASED),
    Case("phi3", "phi3", {}, {"attention.sliding_window": 64}),
    Case(
        "phimoe",
        "phimoe",
        {"num_local_experts": 4, "num_experts_per_tok": 2},
        {"expert_count": 4, "expert_used_count": 2, "attention.sliding_window": 64},
    ),
    Case("qwen2", "qwen2", {}, {}, ("blk.0.attn_q.bias",)),
    Case("qwen2vl", "qwen2"),
    Case(
        "qwen2moe",
        "qwen2_moe",
        EXPERTS | {"num_experts": 4, "shared_expert_intermediate_size": 48},
        EXPERT_KEYS | {"expert_shared_feed_forward_length": 48},
        ("blk.0.attn_q.bias",),
    ),
    Case("qwen3", "qwen3", {"head_dim": 32}, {"attention.key_length": 32}),
    Case("qwen3vl", "qwen3", {"head_dim": 32}, {"attention.key_length": 32}),
    Case(
        "qwen3moe",
        "qwen3_moe",
        EXPERTS | {"num_experts": 4, "head_dim": 32},
        EXPERT_KEYS | {"attention.key_length": 32},
    ),
    Case(
        "qwen3vlmoe",
        "qwen3_moe",
        EXPERTS | {"num_experts": 4, "head_dim": 32},
        EXPERT_KEYS | {"attention.key_length": 32},
    ),
    Case("qwen35", "qwen3_5_text", DELTA, DELTA_KEYS),
    Case(
        "qwen35moe",
        "qwen3_5_moe_text",
        EXPERTS | DELTA | {"num_experts": 4, "shared_expert_intermediate_size": 32},
        EXPERT_KEYS | DELTA_KEYS | {"expert_shared_feed_forward_length": 32},
    ),
    Case(
        "qwen3next",
        "qwen3_next",
        EXPERTS | DELTA | {"num_experts": 4, "shared_expert_intermediate_size": 32, "full_attention_interval": 2},
        EXPERT_KEYS | DELTA_KEYS | {"expert_shared_feed_forward_length": 32, "full_attention_interval": 2},
    ),
    Case("seed_oss", "seed_oss", {"head_dim": 16, "attention_bias": False}, {"attention.key_length": 16}),
    Case("smollm3", "smollm3"),
    Case("stablelm", "stablelm", {"use_parallel_residual": True}),
    Case(
        "stablelm",
        "stablelm",
        {"use_qkv_bias": True, "qk_layernorm": True},
        {"use_parallel_residual": False},
        ("blk.0.attn_q.bias", "blk.0.attn_q_norm.weight", "blk.0.ffn_norm.weight"),
    ),
    Case("starcoder", "gpt_bigcode", {"multi_query": True}, {"attention.head_count_kv": 1}, BIASED),
    Case("starcoder2", "starcoder2", {}, {}, BIASED),
    Case("xverse", "llama"),
)


def head(
    architecture: str, keys: dict[str, object], tensors: tuple[str, ...], without: tuple[str, ...] = ()
) -> GgufFile:
    """The head of a file of these keys: lists as they are read, a token embedding and an output among its tensors."""
    stated = {name: value for name, value in (KEYS | keys).items() if name not in without}
    metadata = {"general.architecture": architecture} | {
        f"{architecture}.{name}": value for name, value in stated.items()
    }
    found = {name: tuple(value) if isinstance(value, list) else value for name, value in metadata.items()}
    names = {"output.weight": (64, 128)} | dict.fromkeys(tensors, (64,))
    kept = {"token_embd.weight": (64, 128)} | {name: shape for name, shape in names.items() if name not in without}
    return GgufFile(found, tuple(GgufTensor(name, "F32", shape, 1, 4) for name, shape in kept.items()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.architecture}-{case.model_type}")
def test_metadata_reads_like_the_configuration(case):
    found = architecture_of_gguf(head(case.architecture, case.keys, case.tensors, case.without), "x.gguf")
    expected = read_config(BASE | {"model_type": case.model_type} | case.config, "config.json")
    assert found.model_type == case.model_type
    assert found.stacks == expected.stacks
    assert found.head == expected.head
    assert (found.parameters, found.tied_head, found.max_context) == (
        expected.parameters,
        expected.tied_head,
        expected.max_context,
    )


def test_every_architecture_has_a_case():
    assert {case.architecture for case in CASES} == set(FAMILIES)


def test_widths_come_from_tensors_where_old_files_do_not_state_them():
    file = head("qwen2moe", {"expert_count": 4, "expert_used_count": 2}, ("blk.0.attn_q.bias",))
    wide = (
        GgufTensor("blk.0.ffn_up_exps.weight", "F32", (64, 40, 4), 1, 4),
        GgufTensor("blk.0.ffn_up_shexp.weight", "F32", (64, 56), 1, 4),
        GgufTensor("blk.0.ffn_down.weight", "F32", (88, 64), 1, 4),
    )
    found = architecture_of_gguf(file._replace(tensors=file.tensors + wide), "x.gguf")
    block = found.main.groups[0].layer.feed_forward
    assert (block.intermediate, block.shared_intermediate) == (40, 56)
    phi = head("phi2", {}, ())
    assert (
        architecture_of_gguf(phi._replace(tensors=phi.tensors + wide[2:]), "x")
        .main.groups[0]
        .layer.feed_forward.intermediate
        == 88
    )


def test_layers_that_predict_further_tokens_are_not_counted():
    keys = {"block_count": 5, "nextn_predict_layers": 1}
    file = head("llama", keys, ("blk.3.attn_norm.weight", "blk.4.nextn.eh_proj.weight", "rope_freqs.weight"))
    found = architecture_of_gguf(file, "x.gguf")
    assert found.main.layer_count == 4
    assert found.stored_bytes == 4 * 4
    assert found.reader_notes[0] == "1 tensors of layers that predict further tokens, 4 bytes, are not counted"
    assert found.reader_notes[1].startswith("the file holds 3 parameters where 'llama' of these sizes has ")


@pytest.mark.parametrize(
    ("kind", "number", "quantization", "stored_as"),
    [
        ("Q4_K", 15, "Q4_K_M", "Q4_K_M"),
        ("F16", 1, "F16", "F16"),
        ("IQ2_XXS", 19, None, "stored"),
        ("Q4_K", 12345, None, "stored"),
        ("Q4_K", "Q4", None, "stored"),
        ("BF16", None, None, "stored"),
    ],
)
def test_the_mixture_is_named_where_it_has_a_name(kind, number, quantization, stored_as):
    file = head("llama", {}, ())
    tensors = (*file.tensors, GgufTensor("blk.0.attn_q.weight", kind, (64, 64), 1, 7))
    metadata = {**file.metadata, "general.file_type": number} if number is not None else file.metadata
    found = architecture_of_gguf(GgufFile(metadata, tensors), "x.gguf")
    assert (found.quantization, found.stored_as) == (quantization, stored_as)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({}, "'general.architecture' is missing or no text"),
        ({"general.architecture": 3}, "'general.architecture' is missing"),
        ({"general.architecture": "frobnicator"}, "'general.architecture' is 'frobnicator'; known are arcee, "),
        ({"general.architecture": "clip"}, "is a projector of images or sound"),
        ({"general.architecture": "llama", "general.type": "adapter"}, "is an adapter, which needs the model"),
        ({"general.architecture": "llama", "general.type": "imatrix"}, "is an importance matrix"),
        ({"general.architecture": "llama", "general.type": "mmproj"}, "is a projector"),
        ({"general.architecture": "llama"}, "'llama.embedding_length' is missing"),
        ({"llama.block_count": 0}, "'llama.block_count' must hold whole numbers from 1"),
        ({"llama.block_count": 10**9}, "'llama.block_count' must hold whole numbers from 1 to 100,000"),
        ({"llama.block_count": 1.5}, "'llama.block_count' must hold whole numbers"),
        ({"llama.block_count": "two"}, "'llama.block_count' must hold whole numbers"),
        ({"llama.block_count": ()}, "'llama.block_count' must hold whole numbers"),
        ({"llama.block_count": Omitted(5)}, "'llama.block_count' must hold whole numbers"),
        ({"llama.attention.head_count": (4, 8)}, "'llama.attention.head_count' differs from layer to layer"),
        ({"llama.attention.head_count_kv": (2, 4)}, "'llama.attention.head_count_kv' differs from layer to layer"),
        ({"llama.attention.head_count": 3}, "num_key_value_heads must divide the 3"),
        ({"llama.embedding_length": 10**8}, "'llama.embedding_length' must hold whole numbers"),
        ({"llama.nextn_predict_layers": 4}, "'llama.nextn_predict_layers' must hold"),
    ],
    ids=range(19),
)
def test_metadata_that_cannot_be_is_refused(metadata, reason):
    good = head("llama", {}, ())
    whole = {**good.metadata, **metadata} if any(key.startswith("llama.") for key in metadata) else metadata
    with pytest.raises(ModelFileError) as caught:
        architecture_of_gguf(GgufFile(whole, good.tensors), "x.gguf")
    assert reason in caught.value.message
    assert caught.value.message.startswith("x.gguf: ")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("architecture", "keys", "reason"),
    [
        ("mamba", {"ssm.inner_size": 100}, "must be a multiple of embedding_length, 64"),
        ("deepseek2", {"rope.dimension_count": 8, "attention.key_length": 8}, "must be more than rope.dimension_count"),
    ],
)
def test_sizes_that_contradict_each_other_are_refused(architecture, keys, reason):
    with pytest.raises(ModelFileError, match=reason):
        architecture_of_gguf(head(architecture, keys, ()), "x.gguf")


def test_the_vocabulary_comes_from_the_embedding_else_from_the_tokens():
    file = head("llama", {"vocab_size": 99}, ())
    rest = tuple(tensor for tensor in file.tensors if tensor.name != "token_embd.weight")
    assert architecture_of_gguf(file, "x").vocabulary == 128
    assert architecture_of_gguf(GgufFile(file.metadata, rest), "x").vocabulary == 99
    tokens = {**file.metadata, "tokenizer.ggml.tokens": Omitted(77)}
    assert architecture_of_gguf(GgufFile(tokens, rest), "x").vocabulary == 77


def test_a_vocabulary_alone_is_no_model(tmp_path):
    file = tmp_path / "ggml-vocab.gguf"
    file.write_bytes(gguf_bytes(tiny_gguf()[0], {}))
    with pytest.raises(ModelFileError, match="holds a vocabulary without a network"):
        read_model_file(file)


def test_lists_for_each_layer_may_all_say_the_same(tmp_path):
    metadata, tensors = tiny_gguf()
    file = tmp_path / "x.gguf"
    file.write_bytes(gguf_bytes(metadata | {"llama.attention.head_count_kv": array(4, 2, b"\2\0\0\0" * 2)}, tensors))
    assert read_model_file(file).main.groups[0].layer.mixer.kv_heads == 2
