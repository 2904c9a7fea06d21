"""Published measurements of AutoAWQ's fused layers: a peak over loading, prompt and generation.

**Source**: casper-hansen/AutoAWQ at v0.1.6, examples/benchmark.py `run_round`, which resets no counter after loading;
at d54bf0e for Mixtral, over two cards, of which it adds the peaks.
"""

from typing import Final

from memory_rows import Excluded, Predicted, Row

from planner.dtypes import SCHEMES
from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.overhead import cublas_workspace_bytes
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture, Attention, Layer

_FORMAT: Final = "awq4-128"
_WARM_UP: Final = 2 * 4 * 4096**2
"""The benchmark's first product, of a matrix in fp32 with itself (`warmup`)."""
_HALF, _FLOAT, _COMPLEX = 2, 4, 8


def awq_run(row: Row, architecture: Architecture) -> Predicted | Excluded:
    """Return the peak of one length of AutoAWQ's benchmark; the cache holds as many tokens as are generated."""
    layer = architecture.main.groups[0].layer
    mixer = layer.mixer
    if not isinstance(mixer, Attention):
        return Excluded("a network without attention")
    batch, tokens = int(row.batch), int(row.length) // 2
    cache = kv_cache_term(_of_full_length(architecture), batch, tokens, 0, "fp16")
    kept = weight_bytes(architecture, _FORMAT) + (cache.bytes if cache else 0)
    kept += _position_bytes(architecture, mixer, tokens)
    loading = _unfused_bytes(architecture) + row.cards * _stacking_bytes(layer)
    prompt = row.cards * _attention_bytes(architecture, mixer, batch, tokens)
    how = f"{batch} × {tokens}→{2 * tokens}, AutoAWQ's fused layers"
    return Predicted(
        kept + max(loading, _WARM_UP, prompt) + row.cards * cublas_workspace_bytes(None), how, has_profile=False
    )


def _of_full_length(architecture: Architecture) -> Architecture:
    """Return `architecture` without windows: AutoAWQ's cache rolls over at its own length only."""
    groups = []
    for group in architecture.main.groups:
        mixer = group.layer.mixer
        whole = mixer.evolve(window=None) if isinstance(mixer, Attention) else mixer
        groups.append(group.evolve(layer=group.layer.evolve(mixer=whole)))
    return architecture.evolve(stacks=(architecture.main.evolve(groups=tuple(groups)),))


def _unfused_bytes(architecture: Architecture) -> int:
    """Return the projections of queries, keys and values, which stay until all layers have a fused copy of them.

    **Source**: awq/utils/fused_utils.py `fuse_qkv` (`torch.cat`); awq/models/llama.py `fuse_transformer` replaces the
    layers only after the loop. Falcon's and MPT's projections are one tensor, which is handed on.
    """
    parts = ("q_proj", "k_proj", "v_proj")
    scheme = SCHEMES[_FORMAT]
    return sum(
        scheme.tensor_bytes(tensor.shape) * count
        for tensor, count in architecture.main.tensors_with_counts()
        if any(part in tensor.name for part in parts)
    )


def _stacking_bytes(layer: Layer) -> int:
    """Return what stacking the experts' gates holds twice more: the single ones, and zeros that the stack replaces.

    **Source**: awq/models/mixtral.py `fuse_transformer`, awq/utils/fused_utils.py `fuse_linears`, which makes a whole
    `WQLinear_GEMM` before it stacks.
    """
    scheme = SCHEMES[_FORMAT]
    experts = [tensor for tensor in layer.tensors if tensor.role == "expert"]
    gates = [tensor for tensor in experts if tensor.shape[-1] == experts[0].shape[-1]] if experts else []
    return 2 * sum(scheme.tensor_bytes(tensor.shape) * tensor.copies for tensor in gates)


def _position_bytes(architecture: Architecture, mixer: Attention, tokens: int) -> int:
    """Return each layer's own table of positions: complex numbers for twice the cache's length, or a bias of ALiBi.

    **Source**: awq/modules/fused/attn.py `RoPE.precompute_freqs_cis`, `ALiBi.build_alibi_bias` (one row, in fp32).
    """
    each = 2 * tokens * mixer.head_dim // 2 * _COMPLEX if mixer.rotary else mixer.heads * tokens * _FLOAT
    return architecture.main.layer_count * each


def _attention_bytes(architecture: Architecture, mixer: Attention, batch: int, tokens: int) -> int:
    """Return what is alive while the prompt's scores are normalised: scores in fp16, in fp32, and their softmax.

    **Formula**: b · a · s² · (2 + 4 + 4) + mask 2 · s² + b · s · 2 · (2 h for the residual and its norm, the fused
    projection, queries and keys turned by their positions, and each head's keys and values).

    **Source**: awq/modules/fused/attn.py `QuantAttentionFused.forward` (`F.softmax(scores.float(), dim=-1)`).
    """
    scores = batch * mixer.heads * tokens**2 * (_HALF + _FLOAT + _FLOAT) + _HALF * tokens**2
    turned = mixer.q_dim + mixer.kv_dim
    repeated = 2 * mixer.q_dim if mixer.kv_heads != mixer.heads else 0
    width = 2 * architecture.hidden + mixer.q_dim + 2 * mixer.kv_dim + turned + mixer.kv_dim + repeated
    return scores + batch * tokens * width * _HALF
