"""Small networks, and strategies that draw valid ones, for the tests of the estimator."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config
from planner.plan.catalog import Catalog, load_catalog
from planner.workload.workload import Inference, Training

LLAMA: dict[str, Any] = {
    "vocab_size": 32_000,
    "hidden_size": 4096,
    "intermediate_size": 11_008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}
MIXTRAL = LLAMA | {
    "intermediate_size": 14_336,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 32_768,
}
GPT2: dict[str, Any] = {"vocab_size": 50_257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
DEEPSEEK = LLAMA | {
    "hidden_size": 7168,
    "num_hidden_layers": 4,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 16,
    "num_experts_per_tok": 4,
    "n_shared_experts": 1,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 1,
}


def llama(**changes: Any) -> Architecture:
    """Return Llama 2 7B with `changes` of its configuration."""
    return other("llama", LLAMA, **changes)


def small_llama(**changes: Any) -> Architecture:
    """Return a llama of 2 layers of width 64 with `changes` of its configuration."""
    sizes = {
        "vocab_size": 1000,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    }
    return llama(**sizes | changes)


def other(model_type: str, sizes: dict[str, Any], **changes: Any) -> Architecture:
    """Return the network of another family with these sizes."""
    return read_config(sizes | changes | {"model_type": model_type}, "config.json")


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    """Draw a small valid network: llama, windowed mistral, mixtral, gpt2, deepseek or bert."""
    heads = draw(st.sampled_from((1, 2, 4, 8)))
    width = heads * 2 * draw(st.integers(1, 16))
    layers = draw(st.integers(1, 6))
    common = {
        "vocab_size": draw(st.integers(1, 3000)),
        "hidden_size": width,
        "intermediate_size": draw(st.integers(1, 500)),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": draw(st.sampled_from([n for n in (1, 2, 4, 8) if heads % n == 0])),
        "max_position_embeddings": 4096,
        "tie_word_embeddings": draw(st.booleans()),
    }
    family = draw(st.sampled_from(("llama", "qwen3", "mistral", "mixtral", "gpt2", "deepseek_v3", "bert")))
    return other(family, _sizes_of(family, common, draw))


def _sizes_of(family: str, common: dict[str, Any], draw: st.DrawFn) -> dict[str, Any]:
    match family:
        case "qwen3":
            return common | {"head_dim": draw(st.sampled_from((8, 32)))}
        case "mistral":
            return common | {"sliding_window": draw(st.integers(1, 200))}
        case "mixtral":
            experts = draw(st.integers(1, 8))
            return common | {"num_local_experts": experts, "num_experts_per_tok": draw(st.integers(1, experts))}
        case "gpt2":
            return {
                "vocab_size": common["vocab_size"],
                "n_positions": 4096,
                "n_embd": common["hidden_size"],
                "n_layer": common["num_hidden_layers"],
                "n_head": common["num_attention_heads"],
            }
        case "deepseek_v3":
            return DEEPSEEK | common | {"num_key_value_heads": common["num_attention_heads"]}
        case _:
            return common


@st.composite
def workloads(draw: st.DrawFn) -> Training | Inference:
    """Draw a valid workload of moderate size."""
    attention = draw(st.sampled_from(("flash", "sdpa", "eager")))
    if draw(st.booleans()):
        return Training(
            compute=draw(st.sampled_from(("fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16"))),
            optimizer=draw(st.sampled_from(("adamw", "adamw-8bit", "sgd", "sgd-momentum"))),
            micro_batch=draw(st.integers(1, 64)),
            gradient_accumulation=draw(st.sampled_from((1, 4))),
            sequence_length=draw(st.integers(1, 2048)),
            activation_checkpointing=draw(st.sampled_from(("none", "full"))),
            attention=attention,
        )
    profile = draw(st.sampled_from(("hf", "hf", "vllm", "llama.cpp")))
    engines: dict[str, tuple[tuple[str | None, ...], tuple[str, ...]]] = {
        "hf": ((None, "fp32", "bf16", "int8", "nf4", "nf4-dq", "gptq4-128"), ("bf16", "fp8", "q4_0")),
        "vllm": ((None, "bf16", "gptq4-128"), ("bf16", "fp8")),
        "llama.cpp": ((None, "bf16", "Q4_K_M"), ("bf16", "q8_0") if attention != "eager" else ("bf16",)),
    }
    weights, caches = engines[profile]
    return Inference(
        profile=profile,
        weights=draw(st.sampled_from(weights)),
        compute=draw(st.sampled_from(("fp32", "bf16", "fp16"))),
        batch=draw(st.integers(1, 64)),
        context_length=draw(st.integers(1, 4096)),
        prompt_length=draw(st.none() | st.integers(1, 4096)),
        kv_cache=draw(st.sampled_from(caches)),
        attention=attention,
        prompt_logits=draw(st.sampled_from(("last", "all"))),
    )


@cache
def bundled() -> Catalog:
    """Return the bundled catalog, read once."""
    return load_catalog()
