"""Readers of text encoders: BERT and its descendants, declared as families, and ModernBERT.

**Source**: the modelling code of transformers 5.23; tensor names are those of the published checkpoints.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from planner.models.architecture import Architecture, Layer, LayerGroup, LossInput, Norm, Stack
from planner.models.readers.blocks import (
    PLAIN_MLP,
    AttentionStyle,
    ExtraTensors,
    FlagSource,
    LayerStyle,
    MlpStyle,
    StackSizes,
    no_tensors,
    read_dropout,
    read_equal_head_sizes,
    read_flag,
    read_sizes,
)
from planner.models.readers.config_fields import ConfigFields
from planner.models.readers.registry import Reader
from planner.models.readers.tensors import (
    LAYER,
    MASKED,
    RMS,
    EncoderHeads,
    TaskHead,
    TaskHeads,
    Tensors,
    biased_linear,
    classification_head,
    conv,
    embedding,
    group_layers,
    label_count,
    linear,
    masked_head,
    norm_tensors,
    repeat_layer,
    repeat_shared_layer,
    task_head,
)

_MAX_POSITIONS: Final = 512
_RELATIVE_BUCKETS: Final = 32


def _bert_layer(
    *,
    attention: tuple[str, str, str, str] = ("self.query", "self.key", "self.value", "output.dense"),
    norms: tuple[str, str] = ("attention.output.LayerNorm", "output.LayerNorm"),
    mlp: tuple[str, str] = ("intermediate.dense", "output.dense"),
    dropout: float = 0.1,
    sdpa: bool = True,
) -> LayerStyle:
    """Return the style of a BERT layer: post-norms, and biases in all projections."""
    return LayerStyle(
        attention=AttentionStyle(
            prefix="attention.",
            names=attention,
            bias=True,
            out_bias=True,
            dropout=("attention_probs_dropout_prob", dropout),
            fp32_softmax=False,
            sdpa=sdpa,
        ),
        mlp=PLAIN_MLP._replace(prefix="", names=mlp),
        norms=norms,
        post_norms=True,
        dropout=("hidden_dropout_prob", dropout),
    )


_BERT_LAYER: Final = _bert_layer()


class EncoderFamily(NamedTuple):
    """Declaration of a family of text encoders by its differences from BERT.

    `hidden`, `attention_heads` and `layers` are the configuration's names of these dimensions. `narrow` embeddings have
    the width `embedding_size`, and so does their norm unless it is `normed_wide`. `token_types` is the default number
    of token types, None if there is no such table. `positions` is whether there is a table of positions, whose first
    rows are unused if it is `offset_by_padding`. `extra_tensors` and `layer_tensors` are additional tensors of the
    embeddings and of each layer; with `shares_layers`, one set of tensors serves all layers.
    """

    layer: LayerStyle = _BERT_LAYER
    heads: Callable[[ConfigFields, int], TaskHeads] = EncoderHeads().heads_by_task
    hidden: tuple[str, ...] = ("hidden_size",)
    attention_heads: tuple[str, ...] = ("num_attention_heads",)
    layers: tuple[str, ...] = ("num_hidden_layers",)
    narrow: bool = False
    normed_wide: bool = False
    token_types: int | None = 2
    positions: FlagSource = True
    offset_by_padding: bool = False
    rotary: bool = False
    extra_tensors: ExtraTensors = no_tensors
    layer_tensors: ExtraTensors = no_tensors
    shares_layers: bool = False

    def read(self, fields: ConfigFields) -> Architecture:
        """Return the architecture that a configuration of this family describes."""
        sizes = read_equal_head_sizes(fields, hidden=self.hidden, heads=self.attention_heads, layers=self.layers)
        layer = self.layer.build_layer(fields, sizes, rotary=self.rotary, extra=self.layer_tensors(fields, sizes))
        rows = _position_rows(fields)
        # Positions start after the padding token's index.
        unused = fields.integer("pad_token_id", default=1, low=0) + 1 if self.offset_by_padding else 0
        return _text_encoder(
            fields,
            sizes,
            task_head(fields, self.heads(fields, sizes.hidden), MASKED),
            (repeat_shared_layer if self.shares_layers else repeat_layer)(layer, sizes.layers),
            before=(*self._embedding_tables(fields, sizes, rows), *self.extra_tensors(fields, sizes)),
            max_context=max(1, rows - unused),
            dropout=read_dropout(fields, self.layer.dropout),
        )

    def _embedding_tables(self, fields: ConfigFields, sizes: StackSizes, rows: int) -> Tensors:
        width = fields.integer("embedding_size", default=sizes.hidden) if self.narrow else sizes.hidden
        absolute = read_flag(fields, self.positions)
        types = 0 if self.token_types is None else fields.integer("type_vocab_size", default=self.token_types, low=0)
        return (
            *embedding("embeddings.word_embeddings", fields.integer("vocab_size"), width),
            *(embedding("embeddings.position_embeddings", rows, width) if absolute else ()),
            *(embedding("embeddings.token_type_embeddings", types, width) if types else ()),
            *norm_tensors("embeddings.LayerNorm", sizes.hidden if self.normed_wide else width, LAYER),
        )


def _position_rows(fields: ConfigFields) -> int:
    return fields.integer("max_position_embeddings", default=_MAX_POSITIONS)


def _text_encoder(
    fields: ConfigFields,
    sizes: StackSizes,
    head: TaskHead,
    groups: tuple[LayerGroup, ...],
    *,
    before: Tensors,
    max_context: int,
    dropout: float,
    after: Tensors = (),
    loss_reads: LossInput = "logits",
) -> Architecture:
    stack = Stack(
        name="encoder",
        hidden=sizes.hidden,
        groups=groups,
        before=before,
        after=(*after, *head.after),
        embedding_dropout=dropout,
    )
    return Architecture(
        model_type=fields.model_type,
        kind="encoder",
        hidden=sizes.hidden,
        vocabulary=fields.integer("vocab_size"),
        max_context=max_context,
        stacks=(stack,),
        head=head.head,
        tied_head=head.tied,
        labels=head.labels,
        loss_reads=loss_reads,
    )


def _bert_pretraining_heads(_: ConfigFields, hidden: int, masked: TaskHead) -> TaskHeads:
    pooler, sentence = biased_linear("pooler.dense", hidden), biased_linear("cls.seq_relationship", 2, hidden)
    return {
        "ForPreTraining": TaskHead(after=(*pooler, *masked.after, *sentence), head=masked.head, tied=masked.tied),
        "ForNextSentencePrediction": TaskHead(after=pooler, head=sentence, labels=2),
    }


def _discriminator_heads(_: ConfigFields, hidden: int, __: TaskHead) -> TaskHeads:
    """Return the pre-training head of ELECTRA's discriminator; its generator is a masked language model."""
    part = "discriminator_predictions"
    found = classification_head(
        1, hidden, name=f"{part}.dense_prediction", after=biased_linear(f"{part}.dense", hidden)
    )
    return {"ForPreTraining": found}


def _albert_pretraining_heads(fields: ConfigFields, hidden: int, masked: TaskHead) -> TaskHeads:
    before, order = (
        biased_linear("pooler", hidden),
        biased_linear("sop_classifier.classifier", label_count(fields), hidden),
    )
    return {"ForPreTraining": TaskHead(after=(*before, *masked.after, *order), head=masked.head, tied=masked.tied)}


def _electra_projection(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    width = fields.integer("embedding_size", default=sizes.hidden)
    return () if width == sizes.hidden else biased_linear("embeddings_project", sizes.hidden, width)


def _albert_projection(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    """Return ALBERT's projection of the embeddings to the hidden width.

    **Assumes** one group of one inner layer, as in all published checkpoints.
    """
    for name in ("num_hidden_groups", "inner_group_num"):
        fields.integer(name, default=1, high=1)
    fields.note(
        f"all {sizes.layers} layers share one set of weights, which counts once; each layer saves its own activations"
    )
    return biased_linear("encoder.embedding_hidden_mapping_in", sizes.hidden, fields.integer("embedding_size"))


def _relative_bias_table(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    """Return MPNet's table of relative positions, which all layers share."""
    buckets = fields.integer("relative_attention_num_buckets", default=_RELATIVE_BUCKETS)
    return embedding("encoder.relative_attention_bias", buckets, sizes.heads)


def _deberta_heads(fields: ConfigFields, hidden: int) -> TaskHeads:
    """Return DeBERTa's task heads; the masked-language-model head has BERT's or DeBERTa's layout."""
    return (_DEBERTA_HEADS if fields.flag("legacy", default=True) else _NEW_DEBERTA_HEADS).heads_by_task(fields, hidden)


def _deberta_projection_tensors(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    """Return a DeBERTa layer's projections of relative positions; none if it reuses its content projections."""
    if not fields.flag("relative_attention", default=False) or fields.flag("share_att_key", default=False):
        return ()
    kinds = fields.split_texts("pos_att_type")
    key = biased_linear("attention.self.pos_key_proj", sizes.hidden) if "c2p" in kinds else ()
    return (*key, *(biased_linear("attention.self.pos_query_proj", sizes.hidden) if "p2c" in kinds else ()))


def _deberta_embedding_tables(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    """Return DeBERTa's embedding projection, table of relative positions with its norm, and convolution."""
    hidden = sizes.hidden
    width = fields.integer("embedding_size", default=hidden)
    relative = fields.flag("relative_attention", default=False)
    kernel = fields.integer("conv_kernel_size", default=0, low=0)
    normed = "layer_norm" in fields.split_texts("norm_rel_ebd")
    return (
        *(() if width == hidden else linear("embeddings.embed_proj", hidden, width)),
        *(embedding("encoder.rel_embeddings", 2 * _relative_position_rows(fields), hidden) if relative else ()),
        *(norm_tensors("encoder.LayerNorm", hidden, LAYER) if normed else ()),
        *(_convolution_tensors(fields, hidden, kernel) if kernel else ()),
    )


_DEBERTA: Final = EncoderFamily(
    layer=_bert_layer(attention=("self.query_proj", "self.key_proj", "self.value_proj", "output.dense"), sdpa=False),
    heads=_deberta_heads,
    narrow=True,
    normed_wide=True,
    token_types=0,
    positions=("position_biased_input", True),
    extra_tensors=_deberta_embedding_tables,
    layer_tensors=_deberta_projection_tensors,
)


def read_deberta(fields: ConfigFields) -> Architecture:
    """Read DeBERTa, whose scores are also gathered by distance: content to position, position to content, or both."""
    kinds = fields.split_texts("pos_att_type") if fields.flag("relative_attention", default=False) else ()
    rows = tuple(2 * _relative_position_rows(fields) for kind in kinds if kind in ("c2p", "p2c"))
    layer = _DEBERTA.layer._replace(attention=_DEBERTA.layer.attention._replace(gathered_rows=rows))
    return _DEBERTA._replace(layer=layer).read(fields)


def _relative_position_rows(fields: ConfigFields) -> int:
    buckets = fields.integer("position_buckets", default=-1, low=-1)
    if buckets > 0:
        return buckets
    stated = fields.integer("max_relative_positions", default=-1, low=-1)
    return stated if stated > 0 else _position_rows(fields)


def _convolution_tensors(fields: ConfigFields, hidden: int, kernel: int) -> Tensors:
    groups = fields.integer("conv_groups", default=1)
    return (
        *conv("encoder.conv.conv", hidden, hidden, kernel, groups=groups),
        *norm_tensors("encoder.conv.LayerNorm", hidden, LAYER),
    )


class _ModernBertLayerKind(NamedTuple):
    """Properties of a ModernBERT layer: two layers in three have a window, and the first one has no pre-norm."""

    local: bool
    first: bool


def read_modernbert(fields: ConfigFields) -> Architecture:
    """Read ModernBERT: fused projections, windows in two layers of three, and no norm before the first attention."""
    sizes = read_equal_head_sizes(fields)
    norm = Norm(kind="layer", bias=fields.flag("norm_bias", default=False))
    # Half of the window is ahead: encoders attend in both directions.
    window = fields.integer("local_attention", default=128)

    def layer(kind: _ModernBertLayerKind) -> Layer:
        norms = ("mlp_norm",) if kind.first else ("attn_norm", "mlp_norm")
        style = _MODERNBERT_LAYER._replace(norm=norm, norms=norms)
        return style.build_layer(fields, sizes, rotary=True, window=window if kind.local else None)

    return _text_encoder(
        fields,
        sizes,
        task_head(fields, _modernbert_heads(fields, sizes.hidden, norm), MASKED),
        group_layers(_modernbert_layer_kinds(fields, sizes.layers), layer),
        before=(
            *embedding("embeddings.tok_embeddings", fields.integer("vocab_size"), sizes.hidden),
            *norm_tensors("embeddings.norm", sizes.hidden, norm),
        ),
        after=norm_tensors("final_norm", sizes.hidden, norm),
        loss_reads="fp32-copy",
        max_context=_position_rows(fields),
        dropout=fields.dropout("embedding_dropout"),
    )


def _modernbert_layer_kinds(fields: ConfigFields, count: int) -> tuple[_ModernBertLayerKind, ...]:
    every = fields.integer("global_attn_every_n_layers", default=3)
    stated = fields.texts_per_layer("layer_types", layers=count)
    if stated is None:
        return tuple(_ModernBertLayerKind(bool(index % every), index == 0) for index in range(count))
    return tuple(_ModernBertLayerKind(name == "sliding_attention", index == 0) for index, name in enumerate(stated))


def _modernbert_heads(fields: ConfigFields, hidden: int, norm: Norm) -> TaskHeads:
    """Return ModernBERT's task heads, which share one projection and norm."""
    projection = linear("head.dense", hidden, hidden, bias=fields.flag("classifier_bias", default=False))
    transform = (*projection, *norm_tensors("head.norm", hidden, norm))
    biased = fields.flag("decoder_bias", default=True)
    classes = classification_head(label_count(fields), hidden, after=transform)
    return {
        "Model": TaskHead(),
        MASKED: masked_head(fields, transform, "decoder", hidden, bias="decoder.bias", biased=biased),
        "ForSequenceClassification": classes,
        "ForTokenClassification": classes,
        "ForQuestionAnswering": classes,
        "ForMultipleChoice": classification_head(1, hidden, after=transform),
    }


def read_eurobert(fields: ConfigFields) -> Architecture:
    """Read EuroBERT: Llama's layers, attending in both directions, under heads of an encoder."""
    sizes = read_sizes(fields)
    layer = _LLAMA_LAYER.build_layer(fields, sizes, rotary=True)
    return _text_encoder(
        fields,
        sizes,
        task_head(fields, _eurobert_heads(fields, sizes), MASKED),
        repeat_layer(layer, sizes.layers),
        before=embedding("embed_tokens", sizes.vocabulary, sizes.hidden),
        after=norm_tensors("norm", sizes.hidden, RMS),
        loss_reads="fp32-copy",
        max_context=sizes.max_context or _EUROBERT_CONTEXT,
        dropout=0.0,
    )


def _eurobert_heads(fields: ConfigFields, sizes: StackSizes) -> TaskHeads:
    tied = fields.flag("tie_word_embeddings", default=False)
    biased = fields.flag("mlp_bias", default=False)
    scores = linear("lm_head", sizes.vocabulary, sizes.hidden, bias=biased, role="head")
    count = label_count(fields)
    return {
        "Model": TaskHead(),
        MASKED: TaskHead(head=tuple(one for one in scores if one.role == "bias") if tied else scores, tied=tied),
        "ForSequenceClassification": classification_head(
            count, sizes.hidden, after=biased_linear("dense", sizes.hidden)
        ),
        "ForTokenClassification": classification_head(count, sizes.hidden),
    }


_EUROBERT_CONTEXT: Final = 8192
_LLAMA_LAYER: Final = LayerStyle(
    attention=AttentionStyle(bias=("attention_bias", False), out_bias=("attention_bias", False)),
    mlp=MlpStyle(bias=("mlp_bias", False)),
    norms=("input_layernorm", "post_attention_layernorm"),
    norm=RMS,
)
_MODERNBERT_LAYER: Final = LayerStyle(
    attention=AttentionStyle(
        prefix="attn.",
        names=("Wqkv", "Wo"),
        bias=("attention_bias", False),
        out_bias=("attention_bias", False),
    ),
    mlp=MlpStyle(
        names=("Wi", "Wo"),
        fused=True,
        bias=("mlp_bias", False),
        activation="gelu",
        activation_fields=("hidden_activation",),
        dropout=("mlp_dropout", 0.0),
        width=("intermediate_size",),
    ),
    norms=("attn_norm", "mlp_norm"),
)
_LM_HEAD: Final = EncoderHeads(
    transform=("lm_head.dense", "lm_head.layer_norm"),
    decoder="lm_head.decoder",
    bias="lm_head.bias",
    scores=(MASKED, "ForCausalLM"),
    pooler="classifier.dense",
    classes="classifier.out_proj",
)
_DEBERTA_HEADS: Final = EncoderHeads(narrow=True, model_pooler=None, pooler_width="pooler_hidden_size")
_NEW_DEBERTA_HEADS: Final = _DEBERTA_HEADS._replace(
    transform=("lm_predictions.lm_head.dense", "lm_predictions.lm_head.LayerNorm"),
    decoder="lm_predictions.lm_head.decoder",
    bias="lm_predictions.lm_head.bias",
    narrow=False,
)
_ROBERTA: Final = EncoderFamily(heads=_LM_HEAD.heads_by_task, offset_by_padding=True)

READERS: Final[Mapping[str, Reader]] = {
    "bert": EncoderFamily(
        heads=EncoderHeads(scores=(MASKED, "LMHeadModel"), pretraining=_bert_pretraining_heads).heads_by_task,
    ).read,
    "roberta": _ROBERTA.read,
    "xlm-roberta": _ROBERTA.read,
    "camembert": _ROBERTA.read,
    "mpnet": _ROBERTA._replace(
        layer=_bert_layer(
            attention=("attn.q", "attn.k", "attn.v", "attn.o"),
            norms=("attention.LayerNorm", "output.LayerNorm"),
            sdpa=False,
        ),
        token_types=None,
        extra_tensors=_relative_bias_table,
    ).read,
    "electra": EncoderFamily(
        heads=EncoderHeads(
            transform=("generator_predictions.dense", "generator_predictions.LayerNorm"),
            decoder="generator_lm_head",
            bias="generator_lm_head.bias",
            narrow=True,
            model_pooler=None,
            pooler="classifier.dense",
            choice_pooler=None,
            classes="classifier.out_proj",
            pretraining=_discriminator_heads,
        ).heads_by_task,
        narrow=True,
        extra_tensors=_electra_projection,
    ).read,
    "distilbert": EncoderFamily(
        layer=_BERT_LAYER._replace(
            attention=_BERT_LAYER.attention._replace(
                names=("q_lin", "k_lin", "v_lin", "out_lin"),
                dropout=("attention_dropout", 0.1),
            ),
            mlp=_BERT_LAYER.mlp._replace(
                names=("ffn.lin1", "ffn.lin2"),
                activation_fields=("activation",),
                width=("hidden_dim", "intermediate_size"),
            ),
            norms=("sa_layer_norm", "output_layer_norm"),
            dropout=("dropout", 0.1),
        ),
        heads=EncoderHeads(
            transform=("vocab_transform", "vocab_layer_norm"),
            decoder="vocab_projector",
            bias="vocab_projector.bias",
            model_pooler=None,
            pooler="pre_classifier",
            choice_pooler="pre_classifier",
        ).heads_by_task,
        hidden=("dim", "hidden_size"),
        attention_heads=("n_heads", "num_attention_heads"),
        layers=("n_layers", "num_hidden_layers"),
        token_types=None,
    ).read,
    "albert": EncoderFamily(
        layer=_bert_layer(
            attention=("query", "key", "value", "dense"),
            norms=("attention.LayerNorm", "full_layer_layer_norm"),
            mlp=("ffn", "ffn_output"),
            dropout=0.0,
        ),
        heads=EncoderHeads(
            transform=("predictions.dense", "predictions.LayerNorm"),
            decoder="predictions.decoder",
            bias="predictions.bias",
            narrow=True,
            model_pooler="pooler",
            pooler="pooler",
            choice_pooler="pooler",
            pretraining=_albert_pretraining_heads,
        ).heads_by_task,
        narrow=True,
        extra_tensors=_albert_projection,
        shares_layers=True,
    ).read,
    "deberta-v2": read_deberta,
    "nomic_bert": EncoderFamily(
        layer=LayerStyle(
            attention=AttentionStyle(dropout=("attention_probs_dropout_prob", 0.0), fp32_softmax=False),
            mlp=MlpStyle(activation_fields=("hidden_act",), width=("intermediate_size",)),
            norms=("post_attention_layernorm", "post_mlp_layernorm"),
            dropout=("hidden_dropout_prob", 0.0),
        ),
        heads=EncoderHeads(
            transform=("cls.predictions.transform.dense", "cls.predictions.transform.layer_norm"),
            model_pooler=None,
            choice_pooler=None,
            answers=None,
        ).heads_by_task,
        positions=False,
        rotary=True,
    ).read,
    "jina_embeddings_v3": EncoderFamily(
        layer=LayerStyle(
            attention=AttentionStyle(
                bias=True, out_bias=True, dropout=("attention_probs_dropout_prob", 0.1), fp32_softmax=False
            ),
            mlp=PLAIN_MLP,
            norms=("post_attention_layernorm", "post_mlp_layernorm"),
            post_norms=True,
            dropout=("hidden_dropout_prob", 0.1),
        ),
        heads=_ROBERTA.heads,
        token_types=1,
        positions=False,
        rotary=True,
    ).read,
    "modernbert": read_modernbert,
    "eurobert": read_eurobert,
}
