"""The output head: logits, and what the loss makes of them."""

from functools import lru_cache

from planner.memory.precision import Precision
from planner.memory.result import Term
from planner.memory.terms import library, model, term
from planner.memory.terms import workload as chosen
from planner.models.architecture import Architecture

_SOURCE = "transformers ForCausalLMLoss: logits.float(), then cross_entropy = log_softmax + nll_loss"


@lru_cache(maxsize=256)
def output_width(architecture: Architecture) -> int:
    """Return the width of the output for each token: the vocabulary, the labels, or 0 without a head."""
    if architecture.labels is not None:
        return architecture.labels
    if architecture.tied_head and architecture.vocabulary:
        return architecture.vocabulary
    return max((tensor.shape[0] for tensor in architecture.head if len(tensor.shape) > 1), default=0)


def predicts_every_token(architecture: Architecture) -> bool:
    """Return whether there is an output for each token, as in language models, not one for each sequence."""
    return architecture.labels is None


def loss_bytes_per_logit(precision: Precision) -> tuple[int, int]:
    """Return the bytes alive per logit when the loss is computed, and when its derivative is.

    **Formula**: forward w + 4 (upcast) + 4 (log-probabilities); backward w + 4 (log-probabilities) + 4 (gradient of
    the log-probabilities) + 4 (gradient of the logits). The upcast is the logits themselves where w = 4.

    **Source**: as `logits_term`; 14 and 16 bytes backward, measured with a live-bytes tracker on the CPU.
    """
    size = precision.compute_bytes
    upcast = 4 if size < 4 else 0
    return size + upcast + 4, size + 12


def logits_bytes(architecture: Architecture, outputs: int, per_logit: int) -> int:
    """Return the bytes of the logits of `outputs` tokens.

    **Formula**: T · V · k, with k bytes per logit from `loss_bytes_per_logit`.
    """
    return outputs * output_width(architecture) * per_logit


def logits_term(architecture: Architecture, outputs: int, per_logit: int, precision: Precision) -> Term:
    """Return the logits of `outputs` tokens with everything the loss holds beside them.

    **Formula**: T · V · k, with k bytes per logit from `loss_bytes_per_logit`.

    **Assumes** that the caller keeps the model's output until the backward pass is through.
    """
    width = output_width(architecture)
    return term(
        "logits",
        logits_bytes(architecture, outputs, per_logit),
        "T × V × k",
        (
            chosen("T", outputs, "tokens with an output"),
            model("V", width, "width of the output: the vocabulary, or the number of labels"),
            library(
                "k", per_logit, f"bytes per logit now: {precision.compute_bytes} of the logits, the rest of fp32 copies"
            ),
        ),
        _SOURCE,
        certainty="measured",
    )
