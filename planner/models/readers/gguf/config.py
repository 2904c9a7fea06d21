"""From the metadata of a GGUF file to the configuration that the readers of Hugging Face models take.

This, with the families and the sizes, is the one place that knows llama.cpp's names.
"""

from planner.models.readers.checkpoint.json_scan import shown
from planner.models.readers.gguf.architectures import FAMILIES, Config
from planner.models.readers.gguf.metadata import GgufHead
from planner.models.readers.gguf.sizes import dense_width, expert_width, kv_heads, shared_width, window


def config_of(head: GgufHead) -> Config:
    """Return the configuration of the network in a GGUF file.

    Raises:
        ModelFileError: If its architecture is not known here, or a value is missing or cannot be.
    """
    family = FAMILIES.get(head.architecture)
    if family is None:
        head.fail("general.architecture", f"is {shown(head.architecture)}; known are {', '.join(sorted(FAMILIES))}")
    return {"model_type": family.model_type, **_common(head, mixed=family.mixed), **family.more(head)}


def _common(head: GgufHead, *, mixed: bool) -> Config:
    """Return what nearly every architecture states; readers take of it what they know.

    The layers of `mixed` families differ in their key/value heads.
    """
    heads = head.optional("attention.head_count", low=0)
    biased = head.has("attn_q.bias", "attn_qkv.bias")
    return {
        "hidden_size": head.integer("embedding_length"),
        "num_hidden_layers": head.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": None if mixed else kv_heads(head) or heads,
        "head_dim": head.optional("attention.key_length"),
        "intermediate_size": dense_width(head),
        "max_position_embeddings": head.context,
        "vocab_size": head.vocabulary,
        "tie_word_embeddings": not head.has("output.weight"),
        "sliding_window": window(head),
        "attention_bias": biased,
        "use_qkv_bias": biased,
        "qkv_bias": biased,
        "use_bias": biased,
        "bias": biased,
        "mlp_bias": head.has("ffn_up.bias"),
        "use_qk_norm": head.has("attn_q_norm.weight"),
        "qk_layernorm": head.has("attn_q_norm.weight"),
        **_experts(head),
    }


def _experts(head: GgufHead) -> Config:
    count = head.optional("expert_count", low=0)
    if not count:
        return {}
    used = head.integer("expert_used_count")
    shared = head.optional("expert_shared_count", low=0) or 0
    return {
        "num_experts": count,
        "num_local_experts": count,
        "n_routed_experts": count,
        "moe_num_experts": count,
        "num_experts_per_tok": used,
        "moe_k": used,
        "moe_topk": used,
        "moe_intermediate_size": expert_width(head),
        "first_k_dense_replace": head.optional("leading_dense_block_count", low=0) or 0,
        "n_shared_experts": shared,
        "moe_num_shared_experts": shared,
        "shared_expert_intermediate_size": shared_width(head),
    }
