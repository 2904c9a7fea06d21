"""Published measurements of ExLlama (v1): weights without the embedding, its cache, its buffers, and one prompt.

**Source**: turboderp/exllama at master, model.py, test_benchmark_inference.py (peak after a prompt and 128 tokens).
"""

import re
from typing import Final

from memory_rows import Excluded, Predicted, Row

from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.weights import MATRIX_ROLES, weight_bytes
from planner.models.architecture import Architecture, Attention, Mlp

_HALF: Final = 2
_LONGEST_INPUT: Final = 2048
_GENERATED: Final = 128
_FUSED_ROWS: Final = 2
_ZEROS: Final = 65_536 * 4


def exllama_run(row: Row, architecture: Architecture) -> Predicted | Excluded:
    """Return the peak of ExLlama's benchmark, added over the cards that share the layers."""
    layer = architecture.main.groups[0].layer
    mixer, block = layer.mixer, layer.feed_forward
    group = re.search(r"group (\d+)", row.precision)
    if not group or not isinstance(mixer, Attention) or not isinstance(block, Mlp):
        return Excluded("GPTQ without groups")
    tokens = int(row.length)
    cache = kv_cache_term(architecture, 1, tokens, 0, "fp16")
    weights = weight_bytes(architecture, f"gptq4-{group[1]}") - _embedding_bytes(architecture)
    if "act-order no" in row.precision:
        weights -= 4 * sum(
            tensor.shape[-1] * count
            for tensor, count in architecture.main.tensors_with_counts()
            if tensor.role in MATRIX_ROLES
        )
    buffers = _buffer_bytes(architecture, block)
    prompt = tokens - _GENERATED
    working = (
        prompt
        * _HALF
        * max(
            architecture.hidden * 2 + 2 * block.intermediate,
            architecture.hidden * 2 + 2 * mixer.q_dim + 2 * mixer.kv_dim,
        )
    )
    scores = 0 if "Llama-2" in row.model else 2 * mixer.heads
    masks = _HALF * prompt**2 * (1 + scores)
    total = weights + (cache.bytes if cache else 0) + (buffers + working + masks) * row.cards
    return Predicted(total, f"prompt {prompt}, cache of {tokens}, ExLlama", has_profile=False)


def _embedding_bytes(architecture: Architecture) -> int:
    """Return the embedding, which stays on the host (`device_map.embed_tokens`)."""
    return _HALF * sum(tensor.size for tensor in architecture.main.before)


def _buffer_bytes(architecture: Architecture, block: Mlp) -> int:
    """Return one card's buffers: the longest input, fused rows, zeros, and the largest matrix unpacked."""
    largest = max(tensor.size for tensor, _ in architecture.main.tensors_with_counts() if tensor.role in MATRIX_ROLES)
    return _HALF * ((_LONGEST_INPUT + 2 * _FUSED_ROWS) * block.intermediate + largest) + _ZEROS
