"""Readers of decoders against the networks that transformers builds from the same configuration."""

import json
from collections import Counter

import pytest
import torch
import transformers
from transformers_networks import Shapes, assert_names, tensors

from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config
from planner.models.readers.decoder import gemma4, gpt_like, llama_like, moe

# Where the class defaults leave a field open that the network needs, or make a network too large to build quickly.
COMPLETED: dict[str, dict[str, object]] = {
    "dbrx": {"attn_config": {"rope_theta": 10_000.0}},
    "deepseek_v2": {"num_experts_per_tok": 6},
    "dots1": {"n_routed_experts": 8, "num_experts_per_tok": 4, "n_shared_experts": 2, "first_k_dense_replace": 1},
    "glm4_moe": {"head_dim": 128},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128, "num_experts": 4, "moe_topk": 2},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8},
}

# Checkpoints whose tensors transformers renames while it loads them.
RENAMED = frozenset({"ernie4_5_moe", "gpt_neox", "granitemoe", "granitemoeshared", "minimax_m2", "mixtral", "phimoe"})

QUICK = (
    "bloom",
    "cohere2",
    "deepseek_v3",
    "falcon",
    "gemma3_text",
    "gpt2",
    "gpt_oss",
    "llama",
    "opt",
    "phi3",
    "qwen3_moe",
)

VARIED: tuple[tuple[str, dict[str, object]], ...] = (
    ("cohere", {"use_qk_norm": True, "num_key_value_heads": 8}),
    ("deepseek_v3", {"q_lora_rank": None, "attention_bias": True, "num_hidden_layers": 5}),
    ("ernie4_5", {"use_bias": True}),
    ("ernie4_5_moe", {"moe_layer_start_index": 3, "moe_layer_interval": 2, "moe_layer_end_index": 9, "use_bias": True}),
    (
        "falcon",
        {"new_decoder_architecture": True, "num_kv_heads": 8, "num_attention_heads": 128, "hidden_size": 8192},
    ),
    (
        "falcon",
        {
            "new_decoder_architecture": True,
            "num_kv_heads": 8,
            "num_attention_heads": 16,
            "hidden_size": 1024,
            "num_ln_in_parallel_attn": 1,
        },
    ),
    (
        "falcon",
        {
            "multi_query": False,
            "alibi": True,
            "parallel_attn": False,
            "bias": True,
            "hidden_size": 2048,
            "num_attention_heads": 32,
        },
    ),
    ("gemma4_text", {"num_kv_shared_layers": 10, "use_double_wide_mlp": True}),
    ("gemma4_text", {"attention_k_eq_v": True, "num_global_key_value_heads": 2}),
    (
        "gemma4_text",
        {
            "enable_moe_block": True,
            "num_experts": 16,
            "top_k_experts": 4,
            "moe_intermediate_size": 704,
            "hidden_size_per_layer_input": 0,
        },
    ),
    ("glm4_moe", {"use_qk_norm": True, "attention_bias": True, "num_hidden_layers": 4}),
    ("glm_moe_dsa", {"index_topk_freq": 4, "num_hidden_layers": 12}),
    ("glm_moe_dsa", {"index_topk_pattern": "FSSF", "num_hidden_layers": 4}),
    ("gpt2", {"n_inner": 1111, "tie_word_embeddings": False}),
    ("gpt_bigcode", {"multi_query": False}),
    ("gpt_neo", {"intermediate_size": 1000}),
    ("gpt_neox", {"attention_bias": False, "use_parallel_residual": False}),
    ("granitemoeshared", {"shared_intermediate_size": 512}),
    ("llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 64}),
    ("llama4_text", {"interleave_moe_layer_step": 2, "num_hidden_layers": 6}),
    ("llama4_text", {"moe_layers": [1, 3], "num_hidden_layers": 4, "use_qk_norm": False}),
    ("opt", {"word_embed_proj_dim": 512, "hidden_size": 1024, "num_attention_heads": 16}),
    ("opt", {"layer_norm_elementwise_affine": False, "enable_bias": False, "do_layer_norm_before": False}),
    ("persimmon", {"qk_layernorm": False}),
    ("phi", {"qk_layernorm": True, "tie_word_embeddings": True, "num_key_value_heads": 8}),
    ("phimoe", {"lm_head_bias": True, "attention_bias": True}),
    ("qwen2_moe", {"decoder_sparse_step": 2, "mlp_only_layers": [3]}),
    ("smollm3", {"attention_bias": True, "mlp_bias": True}),
    (
        "stablelm",
        {"use_parallel_residual": True, "qk_layernorm": True, "use_qkv_bias": True, "num_key_value_heads": 8},
    ),
    ("starcoder2", {"use_bias": False}),
)

WITHOUT_AUTO_CLASS = {"mistral4": "Mistral4ForCausalLM"}
"""Classes of types that transformers builds as a part of an image-text model only."""

EVERY = frozenset({*gemma4.READERS, *gpt_like.READERS, *llama_like.READERS, *moe.READERS, "minimax"})


@pytest.mark.parametrize("model_type", QUICK)
def test_the_tensors_are_those_of_the_network(model_type: str) -> None:
    assert_same_network(model_type)


@pytest.mark.oracle
@pytest.mark.parametrize("model_type", sorted(EVERY.difference(QUICK)))
def test_the_tensors_of_every_other_family_are_those_of_the_network(model_type: str) -> None:
    assert_same_network(model_type)


@pytest.mark.oracle
@pytest.mark.parametrize(("model_type", "changes"), VARIED, ids=str)
def test_the_tensors_follow_the_switches_of_the_configuration(model_type: str, changes: dict[str, object]) -> None:
    assert_same_network(model_type, **changes)


def assert_same_network(model_type: str, **changes: object) -> None:
    settings = {**COMPLETED.get(model_type, {}), **changes}
    config = transformers.AutoConfig.for_model(model_type, **settings)
    with torch.device("meta"):
        if model_type in WITHOUT_AUTO_CLASS:
            network = getattr(transformers, WITHOUT_AUTO_CLASS[model_type])(config)
        else:
            network = transformers.AutoModelForCausalLM.from_config(config)
    found = read_config(json.loads(config.to_json_string(use_diff=False)), model_type)
    assert found.parameters == sum(parameter.numel() for parameter in network.parameters())
    assert outside_experts(found) == built_outside_experts(network)
    if model_type not in RENAMED:
        assert_names(found, network)


def outside_experts(architecture: Architecture) -> Shapes:
    """Return the shapes of all tensors but the experts', which checkpoints and networks stack differently."""
    found: Shapes = Counter()
    for tensor, count in tensors(architecture):
        if tensor.role != "expert":
            found[tensor.shape] += tensor.copies * count
    return found


def built_outside_experts(network: torch.nn.Module) -> Shapes:
    routed = (".experts.gate_up_proj", ".experts.down_proj", ".experts.mlp.")
    return Counter(
        tuple(parameter.shape)
        for name, parameter in network.named_parameters()
        if not any(part in name for part in routed)
    )
