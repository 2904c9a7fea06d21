"""LitGPT's loss: cross entropy over 128 tokens at a time, under adapters the head, too; Fabric turns logits to fp32."""

from typing import Final, NamedTuple

from planner.memory.phases import Deferred
from planner.memory.result import Symbol, Term
from planner.memory.terms import checked, highest, library, lowest, model, workload
from planner.memory.training.losses import Losses
from planner.units import ceil_div

CHUNK: Final = 128
"""Tokens whose cross entropy is computed at once; under adapters, the positions that the head sees at once.

**Source**: litgpt/finetune/lora.py, `model(input_ids, lm_head_chunk_size=128)`; finetune/full.py leaves the head whole.
"""
_FP32: Final = 4
_SOURCE: Final = (
    "lightning/fabric HalfPrecision.convert_output and BitsandbytesPrecision.convert_output: logits become fp32; "
    "litgpt/utils.py chunked_cross_entropy; the training loop's `logits` still names those of the step before"
)
_WHOLE_BACKWARD: Final = (
    "the derivative of the loss is there for every part of the logits before the head's backward pass starts"
)


class Outputs(NamedTuple):
    """Tokens with an output, sequences that they are of, width of the vocabulary, bytes of a logit as computed.

    `whole` says that the head sees all of them at once.
    """

    tokens: int
    sequences: int
    width: int
    size: int
    whole: bool = False

    @property
    def chunks(self) -> int:
        """Return the number of parts in which the head is computed."""
        return 1 if self.whole else ceil_div(self.tokens // self.sequences, CHUNK)

    @property
    def part(self) -> int:
        """Return the tokens whose cross entropy is computed at once."""
        return min(self.tokens, CHUNK * (1 if self.whole else self.sequences))


def litgpt_losses(outputs: Outputs) -> Losses:
    """Return what is there of the logits.

    **Formula**: when they are made T · V · (4 + w + 4), the fp32 ones of the step before among them; in the loss
    T · V · (4 + 4) and two fp32 derivatives of one part, and T · V · 4 more where the last position of several whole
    sequences is cut off by a copy; at the head T · V · (4 + w); then T · V · 4.
    """
    every = outputs.tokens * outputs.width
    part, size = outputs.part, outputs.size
    copied = _FP32 if outputs.whole and outputs.sequences > 1 else 0
    # What is in fp32 already is not converted.
    converted = size if size < _FP32 else 0
    symbols = (
        workload("T", outputs.tokens, "tokens"),
        model("V", outputs.width, "width of the vocabulary"),
        library("w", converted, "bytes of a logit before it is turned to fp32"),
        library("C", part, "tokens of one part"),
        library("s", copied, "bytes of a logit that is copied without the last position"),
    )
    made = _term(every * (2 * _FP32 + converted), "T × V × (4 + w + 4)", symbols)
    loss = every * (2 * _FP32 + copied) + part * outputs.width * 2 * _FP32
    derived = _term(loss, "T × V × (8 + s) + C × V × 8", symbols)
    head = _term(every * (_FP32 + (converted or _FP32)), "T × V × (4 + w)", symbols)
    return Losses(made, derived, head, _term(every * _FP32, "T × V × 4", symbols), _WHOLE_BACKWARD)


def _term(count_bytes: int, formula: str, symbols: tuple[Symbol, ...]) -> Deferred:
    def write() -> Term:
        return checked("logits", count_bytes, formula, symbols, _SOURCE)

    return Deferred("logits", count_bytes, lowest(count_bytes), highest(count_bytes), write)
