"""Published measurements of torchao's Llama script, which is gpt-fast with caches and masks of a chosen length.

**Source**: pytorch/ao at 0bc5b00, torchao/_models/llama/model.py and generate.py.
"""

from memory_rows import Excluded, Predicted, Row

from planner.dtypes import ELEMENT_BYTES
from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture, Attention

_FLOAT = 4


def gpt_fast_run(row: Row, architecture: Architecture) -> Predicted | Excluded:
    """Return the peak of generating: weights, mask, cache, table of positions, and one layer's attention."""
    if row.precision not in ELEMENT_BYTES:
        return Excluded("torchao's script keeps reserved what it quantised from")
    mixer = architecture.main.groups[0].layer.mixer
    if not isinstance(mixer, Attention):
        return Excluded("a network without attention")
    element = ELEMENT_BYTES[row.precision]
    size = -(-int(row.length) // 8) * 8
    cache = kv_cache_term(architecture, 1, size, 0, row.precision)
    cache_bytes = cache.bytes if cache else 0
    quantised = row.kv_format == "int8"
    if quantised:
        cache_bytes = cache_bytes // element * (mixer.head_dim + element) // mixer.head_dim
    mask = size if "linear causal mask" in row.technique else size**2
    positions = (architecture.max_context or size) * mixer.head_dim * element
    kept = weight_bytes(architecture, row.precision) + cache_bytes + mask + positions
    peak = max(kept + _attention_bytes(mixer, size, element, quantised=quantised), kept + mask - cache_bytes)
    return Predicted(peak, f"cache of {size} tokens in {row.kv_format}, {row.precision}, gpt-fast", has_profile=False)


def _attention_bytes(mixer: Attention, tokens: int, element: int, *, quantised: bool) -> int:
    """Return what one layer makes of the whole cache for one token.

    Keys and values are repeated for each head, copied to fp32, and the keys scaled once more; a quantised cache is
    first written out.

    **Source**: model.py `Attention.forward` (`repeat_interleave`) and `AffineQuantizedKVCache.update`; generate.py
    `decode_n_tokens` (`SDPBackend.MATH`); ATen/native/transformers/attention.cpp `_scaled_dot_product_attention_math`
    (half types become fp32, `k` times the root of the scale).
    """
    heads, own = tokens * mixer.q_dim, tokens * mixer.kv_dim
    copies = 2 * _FLOAT if element < _FLOAT else 0
    return heads * (2 * element + copies + _FLOAT) + (2 * own * element if quantised else 0)
