"""The layer that encoders, encoder-decoders and vision towers share: attention, a plain MLP and their norms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from planner.models.architecture import Attention, Layer, LayerGroup, Mlp, Norm, Stack
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import (
    ACTIVATIONS,
    LAYER,
    Tensors,
    attention_tensors,
    linear,
    mlp_tensors,
    norm_tensors,
)

# The number of classes that transformers assumes where a configuration names none.
DEFAULT_LABELS: Final = 2


@dataclass(frozen=True)
class LayerNames:
    """What a family calls the parts of one layer: queries, keys, values and output; norms; up and down projection."""

    attention: tuple[str, str, str, str]
    norms: tuple[str, ...]
    mlp: tuple[str, ...]
    cross: tuple[str, str, str, str] | None = None


def full_attention(
    fields: Fields,
    hidden: int,
    *names: str,
    dropout: float = 0.0,
    fp32_softmax: bool = True,
    rotary: bool = False,
    sdpa: bool = True,
) -> Attention:
    """Return attention with as many key/value heads as heads, each an equal share of the hidden width.

    `names` are those of the number of heads.
    """
    heads = fields.integer(*names, high=MAX_LAYERS)
    if hidden % heads:
        fields.fail(names[0], f"must divide the hidden width {hidden}, got {heads}")
    return Attention(
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        rotary=rotary,
        dropout=dropout,
        fp32_softmax=fp32_softmax,
        sdpa=sdpa,
    )


def plain_mlp(fields: Fields, intermediate: int, *names: str, default: str = "gelu", dropout: float = 0.0) -> Mlp:
    """Return an MLP of two projections; `names` are those of the activation."""
    activation = fields.choice(*names, among=ACTIVATIONS, default=default)
    return Mlp(intermediate=intermediate, gated=False, activation=activation, dropout=dropout)


def tower_layer(
    names: LayerNames,
    hidden: int,
    attention: Attention,
    mlp: Mlp,
    *,
    norm: Norm = LAYER,
    bias: bool = True,
    qkv_bias: bool | None = None,
    key_bias: bool | None = None,
    out_bias: bool | None = None,
    dropout: float = 0.0,
    post_norms: bool = False,
    extra: Tensors = (),
) -> Layer:
    """Return a layer of self-attention, cross-attention where `names` has it, and an MLP.

    `bias` is on all projections but those that `qkv_bias`, `key_bias` and `out_bias` decide.
    """
    attended = [names.attention, *([names.cross] if names.cross else [])]
    projections = (
        found
        for parts in attended
        for found in attention_tensors(
            attention,
            hidden,
            prefix="",
            names=parts,
            bias=bias if qkv_bias is None else qkv_bias,
            key_bias=key_bias,
            out_bias=bias if out_bias is None else out_bias,
        )
    )
    return Layer(
        mixer=attention,
        cross_attention=attention.evolve(rotary=False) if names.cross else None,
        feed_forward=mlp,
        norm=norm,
        norm_count=len(names.norms),
        post_norms=post_norms,
        hidden_dropout=dropout,
        tensors=(
            *projections,
            *(found for name in names.norms for found in norm_tensors(name, hidden, norm)),
            *mlp_tensors(mlp, hidden, prefix="", names=names.mlp, bias=bias),
            *extra,
        ),
    )


def patches(fields: Fields, image: int | None = None, patch: int | None = None) -> int:
    """Return how many patches an image is cut into; `image` and `patch` are the family's default sizes."""
    height, width = fields.pair("image_size", default=image)
    rows, columns = fields.pair("patch_size", default=patch)
    if height < rows or width < columns:
        fields.fail("image_size", f"is {height} × {width}, smaller than a patch of {rows} × {columns}")
    return (height // rows) * (width // columns)


def vision_stack(
    hidden: int,
    groups: tuple[LayerGroup, ...],
    *,
    before: Tensors,
    after: Tensors = (),
    positions: int | None = None,
    dropout: float = 0.0,
) -> Stack:
    """Return a tower that reads images; `positions` is its number of patches and tokens, where that is fixed."""
    return Stack(
        name="vision",
        hidden=hidden,
        groups=groups,
        before=before,
        after=after,
        positions=positions,
        embedding_dropout=dropout,
    )


def labels(fields: Fields) -> int:
    """Return the number of classes of a classification head."""
    return fields.size("id2label") or fields.integer("num_labels", default=DEFAULT_LABELS)


@dataclass(frozen=True)
class Head:
    """What a network has behind its last layer for one task."""

    after: Tensors = ()
    head: Tensors = ()
    labels: int | None = None
    tied: bool = False


def classifier(count: int, width: int, *, name: str = "classifier", after: Tensors = ()) -> Head:
    """Return a linear classification head, with what stands before it."""
    return Head(after=after, head=linear(name, count, width, bias=True, role="head"), labels=count)


def task_head(fields: Fields, heads: Mapping[str, Head], default: str) -> Head:
    """Return the head that the `architectures` field names by the end of its first class, else the default one."""
    named = (fields.texts("architectures") or (default,))[0]
    found = max((task for task in heads if named.endswith(task)), key=len, default=None)
    if found is None:
        fields.note(f"the head of {named[:60]} is not known; that of {default} was taken")
        return heads[default]
    return heads[found]
