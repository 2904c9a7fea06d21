"""Factories of tensors with their checkpoint names, of groups of identical layers, and of task heads.

Task heads are the tensors after the last layer of an encoder. Tasks are named by the suffixes of transformers' class
names. Without an `architectures` field, a text encoder has the masked-language-model head of its pre-training, which
checkpoints and published sizes include.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from planner.models.architecture import (
    Activation,
    Attention,
    LatentAttention,
    Layer,
    LayerGroup,
    Mlp,
    Moe,
    Norm,
    Role,
    Tensor,
)
from planner.models.readers.config_fields import ConfigFields

LayerKind = TypeVar("LayerKind")
Tensors = tuple[Tensor, ...]

# Hugging Face's RMSNorm runs step by step; torch's LayerNorm is one kernel.
RMS: Final = Norm(kind="rms", native=False)
LAYER: Final = Norm(kind="layer", bias=True)
BARE_LAYER: Final = Norm(kind="layer")
# This one casts back to the residual stream's format only after multiplying by the weight.
FP32_RMS: Final = Norm(kind="rms", native=False, fp32_product=True)

ACTIVATIONS: Final[dict[str, Activation]] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_new": "gelu-new",
    "gelu_bloom": "gelu-bloom",
    "gelu_fast": "gelu-fast",
    "quick_gelu": "quick-gelu",
    "relu": "relu",
    "relu2": "relu2",
}


def linear(
    name: str, out_features: int, in_features: int, *, bias: bool = False, role: Role = "linear", copies: int = 1
) -> Tensors:
    """Return the weight and the optional bias of a projection from width `in_features` to width `out_features`."""
    weight = Tensor(name=f"{name}.weight", shape=(out_features, in_features), role=role, copies=copies)
    bias_role: Role = "expert" if role == "expert" else "bias"
    return (
        (weight, Tensor(name=f"{name}.bias", shape=(out_features,), role=bias_role, copies=copies))
        if bias
        else (weight,)
    )


def projection_tensors(
    prefix: str, names: Iterable[str], out_features: int, in_features: int, *, bias: bool = False
) -> Tensors:
    """Return the tensors of several projections of the same size."""
    return tuple(found for name in names for found in linear(f"{prefix}{name}", out_features, in_features, bias=bias))


def embedding(name: str, rows: int, width: int) -> Tensors:
    """Return the tensor of an embedding table."""
    return (Tensor(name=f"{name}.weight", shape=(rows, width), role="embedding"),)


def tensor(name: str, *shape: int, role: Role = "other") -> Tensors:
    """Return a tensor that is not a module's weight, such as a class token, a gate or a position table."""
    return (Tensor(name=name, shape=shape, role=role),)


def conv(name: str, out_channels: int, in_channels: int, *kernel: int, bias: bool = True, groups: int = 1) -> Tensors:
    """Return the weight and the optional bias of a convolution."""
    weight = Tensor(name=f"{name}.weight", shape=(out_channels, in_channels // groups, *kernel), role="conv")
    return (weight, Tensor(name=f"{name}.bias", shape=(out_channels,), role="bias")) if bias else (weight,)


def norm_tensors(name: str, width: int, norm: Norm) -> Tensors:
    """Return the weight and the optional bias of a norm."""
    weight = Tensor(name=f"{name}.weight", shape=(width,), role="norm")
    return (weight, Tensor(name=f"{name}.bias", shape=(width,), role="norm")) if norm.bias else (weight,)


def attention_tensors(
    mixer: Attention,
    hidden: int,
    *,
    prefix: str = "self_attn.",
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj"),
    bias: bool = False,
    key_bias: bool | None = None,
    out_bias: bool = False,
) -> Tensors:
    """Return the tensors of separate query, key (whose bias differs in Whisper), value and output projections."""
    query, key, value, out = (f"{prefix}{name}" for name in names)
    return (
        *linear(query, mixer.q_dim, hidden, bias=bias),
        *linear(key, mixer.kv_dim, hidden, bias=bias if key_bias is None else key_bias),
        *linear(value, mixer.kv_dim, hidden, bias=bias),
        *linear(out, hidden, mixer.q_dim, bias=out_bias),
    )


def fused_attention_tensors(
    mixer: Attention,
    hidden: int,
    *,
    prefix: str = "self_attn.",
    names: tuple[str, str] = ("qkv_proj", "o_proj"),
    bias: bool = False,
    out_bias: bool = False,
) -> Tensors:
    """Return the tensors of a fused query, key and value projection, and of the output projection."""
    return (
        *linear(f"{prefix}{names[0]}", mixer.q_dim + 2 * mixer.kv_dim, hidden, bias=bias),
        *linear(f"{prefix}{names[1]}", hidden, mixer.q_dim, bias=out_bias),
    )


def qk_norm_tensors(
    mixer: Attention, norm: Norm = RMS, *, prefix: str = "self_attn.", names: tuple[str, str] = ("q_norm", "k_norm")
) -> Tensors:
    """Return the tensors of query and key norms: per head, over all heads, or none."""
    if mixer.qk_norm == "none":
        return ()
    per_head = mixer.qk_norm == "head"
    query = norm_tensors(f"{prefix}{names[0]}", mixer.head_dim if per_head else mixer.q_dim, norm)
    return query + norm_tensors(f"{prefix}{names[1]}", mixer.head_dim if per_head else mixer.kv_dim, norm)


def latent_tensors(mixer: LatentAttention, hidden: int, *, prefix: str = "self_attn.", bias: bool = False) -> Tensors:
    """Return the tensors of multi-head latent attention, named as in DeepSeek's checkpoints.

    **Source**: DeepSeek-V2 (arXiv:2405.04434) §2.1; `bias` is on the down projections and the output.
    """
    rank = mixer.kv_lora_rank
    queries = mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
    return (
        *_latent_query_tensors(mixer, hidden, queries, prefix, bias),
        *linear(f"{prefix}kv_a_proj_with_mqa", mixer.latent_dim, hidden, bias=bias),
        *norm_tensors(f"{prefix}kv_a_layernorm", rank, RMS),
        *linear(f"{prefix}kv_b_proj", mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim), rank),
        *linear(f"{prefix}o_proj", hidden, mixer.heads * mixer.v_head_dim, bias=bias),
    )


def _latent_query_tensors(mixer: LatentAttention, hidden: int, queries: int, prefix: str, bias: bool) -> Tensors:
    """Return the tensors of latent attention's query projection: low-rank with a norm, or direct."""
    rank = mixer.q_lora_rank
    if rank is None:
        return linear(f"{prefix}q_proj", queries, hidden)
    return (
        *linear(f"{prefix}q_a_proj", rank, hidden, bias=bias),
        *norm_tensors(f"{prefix}q_a_layernorm", rank, RMS),
        *linear(f"{prefix}q_b_proj", queries, rank),
    )


def mlp_tensors(
    mlp: Mlp,
    hidden: int,
    *,
    prefix: str = "mlp.",
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj"),
    bias: bool = False,
) -> Tensors:
    """Return the tensors of a dense feed-forward block's projections.

    `names` are those of gate, up and down; of up and down in a plain block or one with a fused gate and up.
    """
    inner = [f"{prefix}{name}" for name in names[:-1]]
    width = 2 * mlp.intermediate if mlp.fused_gate_up else mlp.intermediate
    ups = (tensor for name in inner for tensor in linear(name, width, hidden, bias=bias))
    return (*ups, *linear(f"{prefix}{names[-1]}", hidden, mlp.intermediate, bias=bias))


def expert_tensors(
    moe: Moe,
    hidden: int,
    *,
    prefix: str = "mlp.experts.{expert}.",
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj"),
    bias: bool = False,
) -> Tensors:
    """Return the tensors of all routed experts' projections, each as one tensor with a number of copies."""
    ups = (
        tensor
        for name in names[:-1]
        for tensor in linear(f"{prefix}{name}", moe.intermediate, hidden, bias=bias, role="expert", copies=moe.experts)
    )
    down = linear(f"{prefix}{names[-1]}", hidden, moe.intermediate, bias=bias, role="expert", copies=moe.experts)
    return (*ups, *down)


def router_tensors(name: str, experts: int, hidden: int, *, bias: bool = False) -> Tensors:
    """Return the tensors of an expert router's projection."""
    return linear(name, experts, hidden, bias=bias, role="router")


def group_layers(kinds: Iterable[LayerKind], make: Callable[[LayerKind], Layer]) -> tuple[LayerGroup, ...]:
    """Return the layers of a stack in groups by kind; `kinds` has one entry per layer, `make` builds a layer."""
    made: dict[LayerKind, Layer] = {}
    places: dict[Layer, list[int]] = {}
    for place, kind in enumerate(kinds):
        if kind not in made:
            made[kind] = make(kind)
        places.setdefault(made[kind], []).append(place)
    return tuple(LayerGroup(layer=layer, count=len(at), places=tuple(at)) for layer, at in places.items())


def repeat_layer(layer: Layer, count: int) -> tuple[LayerGroup, ...]:
    """Return `count` identical layers as a single layer group."""
    return (LayerGroup(layer=layer, count=count, places=tuple(range(count))),)


def repeat_shared_layer(layer: Layer, count: int) -> tuple[LayerGroup, ...]:
    """Return groups of `count` layers that share one set of tensors, which only the first layer lists."""
    first = LayerGroup(layer=layer, count=1, places=(0,))
    if count == 1:
        return (first,)
    return first, LayerGroup(layer=layer.evolve(tensors=()), count=count - 1, places=tuple(range(1, count)))


MASKED: Final = "ForMaskedLM"
# The number of classes that transformers assumes where a configuration names none.
_DEFAULT_LABELS: Final = 2


class TaskHead(NamedTuple):
    """A task head: the tensors after the last layer, and the number of classes."""

    after: Tensors = ()
    head: Tensors = ()
    labels: int | None = None
    tied: bool = False


TaskHeads = Mapping[str, TaskHead]


def label_count(fields: ConfigFields) -> int:
    """Return the number of classes of a classification head."""
    return fields.length("id2label") or fields.integer("num_labels", default=_DEFAULT_LABELS)


def classification_head(class_count: int, width: int, *, name: str = "classifier", after: Tensors = ()) -> TaskHead:
    """Return a linear classification head with the tensors before it."""
    return TaskHead(after=after, head=linear(name, class_count, width, bias=True, role="head"), labels=class_count)


def task_head(fields: ConfigFields, heads: TaskHeads, default: str) -> TaskHead:
    """Return the head in `heads` for the first class name in `architectures`, else the head `default`."""
    named = (fields.texts("architectures") or (default,))[0]
    found = max((task for task in heads if named.endswith(task)), key=len, default=None)
    if found is None:
        fields.note(f"the head of {named[:60]} is unknown; the head of {default} is used")
        return heads[default]
    return heads[found]


def biased_linear(name: str, width: int, in_features: int | None = None) -> Tensors:
    """Return the tensors of a projection with bias, square by default."""
    return linear(name, width, width if in_features is None else in_features, bias=True)


def masked_head(
    fields: ConfigFields, transform: Tensors, projection: str, width: int, *, bias: str, biased: bool = True
) -> TaskHead:
    """Return a masked-language-model head: the tied embedding or a separate projection, and a bias."""
    rows = fields.integer("vocab_size")
    tied = fields.flag("tie_word_embeddings", default=True)
    output_bias = () if tied else linear(projection, rows, width, role="head")
    return TaskHead(
        after=transform, head=(*output_bias, *(tensor(bias, rows, role="bias") if biased else ())), tied=tied
    )


class EncoderHeads(NamedTuple):
    """Declaration of a text encoder family's task heads; the defaults are BERT's.

    `transform` names the projection and the norm before the vocabulary scores, which have the width of the embedding if
    `narrow`. `model_pooler` is the pooler of the base model, `pooler` that of sequence classification and
    `choice_pooler` that of multiple choice; the field `pooler_width` has the width of the latter two. `pretraining`
    returns the heads of other pre-training tasks, given the masked-language-model head.
    """

    transform: tuple[str, str] = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm")
    decoder: str = "cls.predictions.decoder"
    bias: str = "cls.predictions.bias"
    narrow: bool = False
    scores: tuple[str, ...] = (MASKED,)
    model_pooler: str | None = "pooler.dense"
    pooler_width: str | None = None
    pooler: str = "pooler.dense"
    choice_pooler: str | None = "pooler.dense"
    classes: str = "classifier"
    answers: str | None = "qa_outputs"
    pretraining: Callable[[ConfigFields, int, TaskHead], TaskHeads] | None = None

    def heads_by_task(self, fields: ConfigFields, hidden: int) -> TaskHeads:
        """Return all task heads of this encoder family, by task."""
        width = fields.integer("embedding_size", default=hidden) if self.narrow else hidden
        pooled = fields.integer(self.pooler_width, default=hidden) if self.pooler_width else hidden
        projection, norm = self.transform
        transform = (*biased_linear(projection, width, hidden), *norm_tensors(norm, width, LAYER))
        masked = masked_head(fields, transform, self.decoder, width, bias=self.bias)
        count = label_count(fields)
        found = {
            "Model": TaskHead(after=biased_linear(self.model_pooler, hidden) if self.model_pooler else ()),
            **dict.fromkeys(self.scores, masked),
            "ForSequenceClassification": classification_head(
                count, pooled, name=self.classes, after=biased_linear(self.pooler, pooled)
            ),
            "ForTokenClassification": classification_head(count, hidden),
        }
        if self.answers is not None:
            found["ForQuestionAnswering"] = classification_head(count, hidden, name=self.answers)
        if self.choice_pooler is not None:
            found["ForMultipleChoice"] = classification_head(1, pooled, after=biased_linear(self.choice_pooler, pooled))
        return found if self.pretraining is None else {**found, **self.pretraining(fields, hidden, masked)}
