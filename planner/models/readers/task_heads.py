"""Task heads: the tensors after the last layer of an encoder, by task.

Tasks are named by the suffixes of transformers' class names. Without an `architectures` field, a text encoder has the
masked-language-model head of its pre-training, which checkpoints and published sizes include.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from planner.models.readers.config_fields import ConfigFields
from planner.models.readers.tensors import LAYER, Tensors, linear, norm_tensors, tensor

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
