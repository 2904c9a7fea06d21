"""Widths and windows that GGUF files state in their metadata, or leave to the shapes of their tensors."""

from typing import Final

from planner.models.readers.gguf.metadata import GgufHead

_MAX_WINDOW: Final = 10**9


def dense_width(head: GgufHead) -> int | None:
    """Return the width of a dense block by its tensors: some converters write what the family usually has."""
    tensor = head.tensor("ffn_down.weight")
    return head.optional("feed_forward_length", low=0) or None if tensor is None else tensor.shape[0]


def kv_heads(head: GgufHead) -> int | None:
    """Return the key/value heads of the layers that have some: layers of other mixers state 0."""
    found = set(head.each("attention.head_count_kv") or ()) - {0}
    if len(found) > 1:
        head.fail("attention.head_count_kv", "differs from layer to layer, which is not read for this architecture")
    return found.pop() if found else None


def window(head: GgufHead) -> int | None:
    """Return the tokens that limited layers look back, or nothing where there are none."""
    return head.optional("attention.sliding_window", low=0, high=_MAX_WINDOW) or None


def expert_width(head: GgufHead) -> int:
    """Return the width of an expert, which old files leave to their tensors."""
    stated = head.optional("expert_feed_forward_length")
    tensor = head.tensor("ffn_up_exps.weight")
    if stated is None and tensor is not None and len(tensor.shape) == 3:
        return tensor.shape[1]
    return stated or head.integer("feed_forward_length")


def shared_width(head: GgufHead) -> int:
    """Return the width of all shared experts together, 0 where there are none."""
    tensor = head.tensor("ffn_up_shexp.weight")
    stated = head.optional("expert_shared_feed_forward_length", low=0)
    return stated or (tensor.shape[-1] if tensor is not None else 0)
