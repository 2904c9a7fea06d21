"""What text encoders have behind their last layer, by task.

The names of tasks are how the class names of transformers end. Without an `architectures` field the head is that of
pre-training, masked language modelling: the checkpoints of these families, and their published sizes, include it.
"""

from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Norm
from planner.models.readers.fields import Fields
from planner.models.readers.parts import LAYER, Tensors, linear, norm_tensors, tensor
from planner.models.readers.towers import Head, classifier, labels

MASKED: Final = "ForMaskedLM"

Heads = Mapping[str, Head]


def dense(name: str, width: int, into: int | None = None) -> Tensors:
    """Return a projection with a bias, by default from its own width."""
    return linear(name, width, width if into is None else into, bias=True)


def masked_head(
    fields: Fields, transform: Tensors, projection: str, width: int, *, bias: str, biased: bool = True
) -> Head:
    """Return a head that scores the vocabulary: the embedding again, or a projection of its own, and a bias."""
    rows = fields.integer("vocab_size")
    tied = fields.flag("tie_word_embeddings", default=True)
    own = () if tied else linear(projection, rows, width, role="head")
    return Head(after=transform, head=(*own, *(tensor(bias, rows, role="bias") if biased else ())), tied=tied)


def transform_tensors(projection: str, norm: str, width: int, hidden: int) -> Tensors:
    """Return the projection and the norm that stand before the scores of the vocabulary."""
    return (*dense(projection, width, hidden), *norm_tensors(norm, width, LAYER))


def bert_heads(fields: Fields, hidden: int) -> Heads:
    """Return the heads of BERT."""
    pooler = dense("pooler.dense", hidden)
    part = "cls.predictions"
    transform = transform_tensors(f"{part}.transform.dense", f"{part}.transform.LayerNorm", hidden, hidden)
    masked = masked_head(fields, transform, f"{part}.decoder", hidden, bias=f"{part}.bias")
    sentence = linear("cls.seq_relationship", 2, hidden, bias=True)
    return {
        **_plain_heads(fields, hidden),
        "Model": Head(after=pooler),
        MASKED: masked,
        "LMHeadModel": masked,
        "ForPreTraining": Head(after=(*pooler, *transform, *sentence), head=masked.head, tied=masked.tied),
        "ForNextSentencePrediction": Head(after=pooler, head=sentence, labels=2),
        "ForSequenceClassification": classifier(labels(fields), hidden, after=pooler),
        "ForMultipleChoice": classifier(1, hidden, after=pooler),
    }


def roberta_heads(fields: Fields, hidden: int) -> Heads:
    """Return the heads of RoBERTa and MPNet."""
    pooler = dense("pooler.dense", hidden)
    transform = transform_tensors("lm_head.dense", "lm_head.layer_norm", hidden, hidden)
    masked = masked_head(fields, transform, "lm_head.decoder", hidden, bias="lm_head.bias")
    before = dense("classifier.dense", hidden)
    return {
        **_plain_heads(fields, hidden),
        "Model": Head(after=pooler),
        MASKED: masked,
        "ForCausalLM": masked,
        "ForSequenceClassification": classifier(labels(fields), hidden, name="classifier.out_proj", after=before),
        "ForMultipleChoice": classifier(1, hidden, after=pooler),
    }


def electra_heads(fields: Fields, hidden: int) -> Heads:
    """Return the heads of ELECTRA: its pre-trained encoder is the discriminator, its generator a masked LM."""
    width = fields.integer("embedding_size", default=hidden)
    generator = transform_tensors("generator_predictions.dense", "generator_predictions.LayerNorm", width, hidden)
    part = "discriminator_predictions"
    before = dense("classifier.dense", hidden)
    return {
        **_plain_heads(fields, hidden),
        "Model": Head(),
        MASKED: masked_head(fields, generator, "generator_lm_head", width, bias="generator_lm_head.bias"),
        "ForPreTraining": classifier(1, hidden, name=f"{part}.dense_prediction", after=dense(f"{part}.dense", hidden)),
        "ForSequenceClassification": classifier(labels(fields), hidden, name="classifier.out_proj", after=before),
    }


def distilbert_heads(fields: Fields, hidden: int) -> Heads:
    """Return the heads of DistilBERT."""
    transform = transform_tensors("vocab_transform", "vocab_layer_norm", hidden, hidden)
    before = dense("pre_classifier", hidden)
    return {
        **_plain_heads(fields, hidden),
        "Model": Head(),
        MASKED: masked_head(fields, transform, "vocab_projector", hidden, bias="vocab_projector.bias"),
        "ForSequenceClassification": classifier(labels(fields), hidden, after=before),
        "ForMultipleChoice": classifier(1, hidden, after=before),
    }


def albert_heads(fields: Fields, hidden: int) -> Heads:
    """Return the heads of ALBERT."""
    width = fields.integer("embedding_size")
    pooler = dense("pooler", hidden)
    transform = transform_tensors("predictions.dense", "predictions.LayerNorm", width, hidden)
    masked = masked_head(fields, transform, "predictions.decoder", width, bias="predictions.bias")
    order = dense("sop_classifier.classifier", labels(fields), hidden)
    return {
        **_plain_heads(fields, hidden),
        "Model": Head(after=pooler),
        MASKED: masked,
        "ForPreTraining": Head(after=(*pooler, *transform, *order), head=masked.head, tied=masked.tied),
        "ForSequenceClassification": classifier(labels(fields), hidden, after=pooler),
        "ForMultipleChoice": classifier(1, hidden, after=pooler),
    }


def deberta_heads(fields: Fields, hidden: int) -> Heads:
    """Return the heads of DeBERTa-v2 and v3, whose masked head comes in the layout of BERT and in its own."""
    legacy = fields.flag("legacy", default=True)
    width = fields.integer("embedding_size", default=hidden) if legacy else hidden
    part = "cls.predictions" if legacy else "lm_predictions.lm_head"
    inner = f"{part}.transform" if legacy else part
    transform = transform_tensors(f"{inner}.dense", f"{inner}.LayerNorm", width, hidden)
    pooled = fields.integer("pooler_hidden_size", default=hidden)
    return {
        **_plain_heads(fields, hidden),
        "Model": Head(),
        MASKED: masked_head(fields, transform, f"{part}.decoder", width, bias=f"{part}.bias"),
        "ForSequenceClassification": classifier(labels(fields), pooled, after=dense("pooler.dense", pooled)),
        "ForMultipleChoice": classifier(1, pooled, after=dense("pooler.dense", pooled)),
    }


def nomic_heads(fields: Fields, hidden: int) -> Heads:
    """Return the heads of Nomic BERT."""
    part = "cls.predictions"
    transform = transform_tensors(f"{part}.transform.dense", f"{part}.transform.layer_norm", hidden, hidden)
    return {
        "Model": Head(),
        MASKED: masked_head(fields, transform, f"{part}.decoder", hidden, bias=f"{part}.bias"),
        "ForSequenceClassification": classifier(labels(fields), hidden, after=dense("pooler.dense", hidden)),
        "ForTokenClassification": classifier(labels(fields), hidden),
    }


def modernbert_heads(fields: Fields, hidden: int, norm: Norm) -> Heads:
    """Return the heads of ModernBERT, which all pass through one projection and norm."""
    projection = linear("head.dense", hidden, hidden, bias=fields.flag("classifier_bias", default=False))
    transform = (*projection, *norm_tensors("head.norm", hidden, norm))
    biased = fields.flag("decoder_bias", default=True)
    classes = classifier(labels(fields), hidden, after=transform)
    return {
        "Model": Head(),
        MASKED: masked_head(fields, transform, "decoder", hidden, bias="decoder.bias", biased=biased),
        "ForSequenceClassification": classes,
        "ForTokenClassification": classes,
        "ForQuestionAnswering": classes,
        "ForMultipleChoice": classifier(1, hidden, after=transform),
    }


def _plain_heads(fields: Fields, hidden: int) -> dict[str, Head]:
    return {
        "ForTokenClassification": classifier(labels(fields), hidden),
        "ForQuestionAnswering": classifier(labels(fields), hidden, name="qa_outputs"),
    }
