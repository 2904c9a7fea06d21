"""What the ledger says a forward pass keeps, against what PyTorch really saves for the same network."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from live_bytes import saved_bytes

from planner.memory.precision import Precision
from planner.memory.saved import saved_activations
from planner.memory.tensors import parameter_counts
from planner.models.readers.config_json import read_config

transformers = pytest.importorskip("transformers")

BF16 = Precision(2, 2, 2, autocast=False)
FP32 = Precision(4, 4, 4, autocast=False)
AMP = Precision(4, 2, 4, autocast=True)
SEQUENCES, LENGTH = 2, 64

SIZES: dict[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "intermediate_size": 640,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


@dataclass(frozen=True)
class Family:
    """A model type with what its configuration needs beside the common sizes."""

    model_type: str
    extra: dict[str, Any]
    eager_only: bool = False
    autocast: bool = True


MULTI_HEAD = {"num_key_value_heads": 8}
PLAIN_MLP = {"num_key_value_heads": 8, "intermediate_size": 1024}
LATENT = {
    "num_key_value_heads": 8,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 128,
    "first_k_dense_replace": 1,
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
}
FAMILIES = (
    Family("llama", {}),
    Family("qwen2", {}),
    Family("mistral", {}),
    Family("qwen3", {"head_dim": 32}),
    Family("gemma", {"head_dim": 32}),
    Family("gemma2", {"head_dim": 32}, eager_only=True),
    Family("gemma3_text", {"head_dim": 32}),
    Family("olmo2", {}),
    Family("phi", MULTI_HEAD),
    Family("phi3", {}),
    Family("starcoder2", {}),
    Family("stablelm", {}),
    Family("granite", {}),
    Family("glm", {"head_dim": 32}),
    Family("cohere", {}),
    Family("gpt_neox", PLAIN_MLP),
    Family("gpt2", PLAIN_MLP),
    Family("opt", PLAIN_MLP | {"ffn_dim": 1024, "word_embed_proj_dim": 256}),
    Family("bloom", PLAIN_MLP, eager_only=True),
    Family("mixtral", {"num_local_experts": 4}),
    Family("qwen3_moe", {"head_dim": 32, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128}),
    Family("olmoe", {"num_experts": 8, "num_experts_per_tok": 2}),
    # The CPU has no fused kernel for values narrower than keys, or for one key head shared by expanding it (Falcon).
    Family("deepseek_v3", LATENT, eager_only=True, autocast=False),
    Family("falcon", PLAIN_MLP, eager_only=True),
)
QUICK = ("llama", "qwen3", "gemma3_text", "gpt2", "gpt_neox")


def measured(family: Family, precision: Precision, attention: str) -> tuple[int, int]:
    """Return the bytes that PyTorch saves for the family's network, and those the ledger says."""
    config = transformers.AutoConfig.for_model(family.model_type, **SIZES | family.extra)
    for dropout in ("attn_pdrop", "embd_pdrop", "resid_pdrop", "hidden_dropout", "attention_dropout", "dropout"):
        if hasattr(config, dropout):
            setattr(config, dropout, 0.0)
    dtype = torch.bfloat16 if precision is BF16 else torch.float32
    torch.set_default_dtype(dtype)
    try:
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    finally:
        torch.set_default_dtype(torch.float32)
    model.train()
    tokens = torch.zeros(SEQUENCES, LENGTH, dtype=torch.long)
    body = getattr(model, model.base_model_prefix)

    def forward() -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision.autocast):
            return body(tokens, use_cache=False)[0]

    architecture = read_config(config.to_dict(), family.model_type)
    assert architecture.parameters == sum(parameter.numel() for parameter in model.parameters())
    saved = saved_activations(architecture, SEQUENCES, LENGTH, precision, attention, checkpointed=False).total
    counts = parameter_counts(architecture)
    casts = 2 * counts.linear if precision.autocast else 0
    head_input = SEQUENCES * LENGTH * architecture.hidden * precision.compute_bytes
    return saved_bytes(model, forward), saved + casts - head_input


def cases() -> list[Any]:
    """Return every family, precision and attention, the quick ones first."""
    found = []
    for family in FAMILIES:
        for precision, label in ((BF16, "bf16"), (FP32, "fp32"), (AMP, "amp")):
            for attention in ("sdpa", "eager"):
                if (attention == "sdpa" and family.eager_only) or (precision is AMP and not family.autocast):
                    continue
                marks = () if family.model_type in QUICK else (pytest.mark.oracle,)
                name = f"{family.model_type}-{label}-{attention}"
                found.append(pytest.param(family, precision, attention, id=name, marks=marks))
    return found


@pytest.mark.parametrize(("family", "precision", "attention"), cases())
def test_ledger_agrees_with_saved_tensors(family: Family, precision: Precision, attention: str) -> None:
    real, predicted = measured(family, precision, attention)
    assert predicted == pytest.approx(real, rel=0.01)
