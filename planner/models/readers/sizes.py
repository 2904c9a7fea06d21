"""The dimensions that nearly every configuration states, under the names that families give them."""

from dataclasses import dataclass

from planner.models.readers.fields import MAX_LAYERS, Fields

HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_sequence_length")


@dataclass(frozen=True)
class Sizes:
    """The dimensions of a stack with attention."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    max_context: int | None


def read_sizes(fields: Fields, *, kv_heads: int | None = None, head_dim: int | None = None) -> Sizes:
    """Read the dimensions; `kv_heads` and `head_dim` are the family's own defaults.

    Without a default there are as many key/value heads as heads, and a head is an equal share of the hidden width.

    Raises:
        ModelFileError: If a field is missing or out of bounds, or the heads do not divide what they must.
    """
    hidden = fields.integer(*HIDDEN)
    heads = fields.integer(*HEADS, high=MAX_LAYERS)
    found_kv_heads = fields.integer("num_key_value_heads", default=kv_heads or heads, high=MAX_LAYERS)
    if heads % found_kv_heads:
        fields.fail("num_key_value_heads", f"must divide the {heads} attention heads, got {found_kv_heads}")
    return Sizes(
        hidden=hidden,
        layers=fields.integer(*LAYERS, high=MAX_LAYERS),
        heads=heads,
        kv_heads=found_kv_heads,
        head_dim=_head_dim(fields, hidden, heads, head_dim),
        vocabulary=fields.integer("vocab_size"),
        max_context=fields.optional_integer(*CONTEXT, high=10**9),
    )


def _head_dim(fields: Fields, hidden: int, heads: int, default: int | None) -> int:
    found = fields.optional_integer("head_dim") or default
    if found is None and hidden % heads:
        fields.fail(HEADS[0], f"must divide the hidden width {hidden}, got {heads}")
    return found or hidden // heads
