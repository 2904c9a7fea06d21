"""Published measurements of LitGPT's generation, on one card and over several.

**Source**: Lightning-AI/litgpt litgpt/generate/base.py, sequentially.py, tp.py.
"""

import re
from typing import Final

from memory_rows import Excluded, Predicted, Row

from planner.dtypes import SCHEMES
from planner.memory.logits import output_width
from planner.memory.overhead import cublas_workspace_bytes
from planner.memory.software.litgpt.setup import litgpt_weights
from planner.models.architecture import Architecture, Attention
from planner.units import ceil_div

_FORMATS: Final = {"bf16": "bf16", "nf4 (bnb)": "nf4", "fp4 (bnb)": "nf4", "nf4 double-quant (bnb)": "nf4-dq"}
_HALF: Final = 2
_GENERATED: Final = 50
"""The script's default of `max_new_tokens`."""


def litgpt_run(row: Row, architecture: Architecture) -> Predicted | Excluded:
    """Return the peak of generating after a prompt of a few tokens.

    A 4-bit matrix that reads several tokens is unpacked to fp16, in which Fabric quantised it, and copied to bf16.

    **Source**: bitsandbytes MatMul4Bit (`dequantize_4bit(B, …).to(A.dtype)`), lightning/fabric
    plugins/precision/bitsandbytes.py `_Linear4bit.quantize`.
    """
    scheme = _FORMATS.get(row.precision)
    if scheme is None:
        return Excluded(f"weight format {row.precision!r}")
    found = re.search(r"gen=(\d+)", row.other)
    tokens = int(found[1]) if found else _GENERATED
    kept = litgpt_weights(architecture, scheme, _HALF).bytes + _cache_bytes(architecture, tokens)
    undivided = _undivided_bytes(architecture, scheme)
    total = undivided + ceil_div(kept - undivided, row.cards) + cublas_workspace_bytes(None)
    if scheme != "bf16":
        total += 2 * _HALF * _largest_matrix_elements(architecture)
    return Predicted(total, f"{scheme}, {row.cards} card{'' if row.cards == 1 else 's'}, LitGPT", has_profile=False)


def _undivided_bytes(architecture: Architecture, scheme: str) -> int:
    """Return the embedding and the head, of which the first card holds the whole, and so does each in `tp.py`."""
    shape = (output_width(architecture), architecture.hidden)
    head = SCHEMES[scheme].tensor_bytes(shape)
    return head + _HALF * shape[0] * shape[1]


def _cache_bytes(architecture: Architecture, tokens: int) -> int:
    """Return the cache of LitGPT until 2025, which held the keys and values of groups once for each of their heads.

    **Source**: Lightning-AI/litgpt at 51d5328, lit_gpt/model.py `build_kv_cache` (`heads = 1 if … else n_head`).
    """
    mixer = architecture.main.groups[0].layer.mixer
    if not isinstance(mixer, Attention):
        return 0
    heads = 1 if mixer.kv_heads == 1 else mixer.heads
    return architecture.main.layer_count * tokens * 2 * heads * mixer.head_dim * _HALF


def _largest_matrix_elements(architecture: Architecture) -> int:
    inside = (tensor.size for tensor, _ in architecture.main.tensors_with_counts() if tensor.role == "linear")
    return max(output_width(architecture) * architecture.hidden, *inside)
