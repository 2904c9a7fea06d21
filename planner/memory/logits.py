"""Memory of the output head's logits, and of the copies that the loss function makes."""

from functools import partial
from typing import Final

from planner.memory.phases import DeferredTerm
from planner.memory.precision import Precision
from planner.memory.result import Term
from planner.memory.terms import library_symbol, model_symbol, term, workload_symbol
from planner.models.architecture import Architecture

_FLOAT: Final = 4
_SOURCE = "cross_entropy = log_softmax + nll_loss, of an fp32 copy in transformers' ForCausalLMLoss"


def output_width(architecture: Architecture) -> int:
    """Return the number of logits per token: vocabulary size, number of labels, or 0 without an output head."""
    if architecture.labels is not None:
        return architecture.labels
    if architecture.tied_head and architecture.vocabulary:
        return architecture.vocabulary
    return max((tensor.shape[0] for tensor in architecture.head if len(tensor.shape) > 1), default=0)


def predicts_every_token(architecture: Architecture) -> bool:
    """Return whether the head computes logits for every token, as in language models, not one set per sequence."""
    return architecture.labels is None


def loss_bytes_per_logit(architecture: Architecture, precision: Precision) -> tuple[int, int]:
    """Return the bytes per logit held in the loss's forward pass, and in its backward pass.

    **Formula**: with an fp32 copy of the logits, forward w + 4 (upcast) + 4 (log-probabilities), backward w + 4
    (log-probabilities) + 4 (their gradient) + 4 (gradient of the logits); the upcast is the logits themselves where
    w = 4. From the logits as they are 2w and 4w, under autocast w + w + 4 (the copy for nll_loss) and 4
    more. From logits to which an fp32 bias is added under autocast as with w = 4. Softcapped logits w more.

    **Source**: transformers `loss_utils.ForCausalLMLoss`; models that call `CrossEntropyLoss` themselves read the
    logits without a copy. `cross_entropy_loss` of aten/src/ATen/native/LossNLL.cpp asks log_softmax for the input's own
    type; autocast's list of fp32 operators holds nll_loss.
    """
    size = precision.compute_bytes
    capped = size if architecture.softcapped_logits else 0
    if architecture.loss_reads == "fp32-copy" or size == 4:
        upcast = 4 if size < 4 else 0
        return size + upcast + 4 + capped, size + 12 + capped
    if not precision.autocast:
        return 2 * size, 4 * size
    in_fp32 = architecture.loss_reads == "biased-logits" and precision.parameter_bytes == 4
    return (8, 16) if in_fp32 else (2 * size + 4, 2 * size + 8)


def logits_term(architecture: Architecture, outputs: int, per_logit: int, precision: Precision) -> Term:
    """Return the memory of the logits of `outputs` tokens, including all copies that the loss holds.

    **Formula**: T · V · k, with k bytes per logit from `loss_bytes_per_logit`.

    **Assumes** that the caller keeps the model's output until the backward pass is done.
    """
    width = output_width(architecture)
    return term(
        "logits",
        outputs * width * per_logit,
        "T × V × k",
        (
            workload_symbol("T", outputs, "tokens for which logits are computed"),
            model_symbol("V", width, "logits per token: the vocabulary, or the number of labels"),
            library_symbol(
                "k",
                per_logit,
                f"bytes per logit at this point: {precision.compute_bytes} for the logits, the rest for fp32 copies",
            ),
        ),
        _SOURCE,
        certainty="measured",
    )


def bytes_with_fp32_copy(element_bytes: int) -> int:
    """Return the bytes per logit of which a loop of generation makes a copy in fp32, if it is not in fp32 itself."""
    return element_bytes + (_FLOAT if element_bytes < _FLOAT else 0)


def output_logits_term(width: int, outputs: int, per_logit: int, source: str) -> DeferredTerm:
    """Return the memory of `width` logits for each of `outputs` tokens, of `per_logit` bytes with their copies."""
    needed = outputs * width * per_logit
    write = partial(_write_output_logits, needed, outputs, width, per_logit, source)
    return DeferredTerm("logits", needed, needed, needed, write)


def _write_output_logits(needed: int, outputs: int, width: int, per_logit: int, source: str) -> Term:
    return term(
        "logits",
        needed,
        "T × V × k",
        (
            workload_symbol("T", outputs, "tokens for which logits are computed"),
            model_symbol("V", width, "logits per token: the vocabulary, or the number of labels"),
            library_symbol("k", per_logit, "bytes per logit, the fp32 copy included"),
        ),
        source,
    )
