"""What Unsloth does to memory: fused layers and adapters, checkpoints in RAM, and a loss in compiled parts."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.phases import Deferred
from planner.memory.result import Term
from planner.memory.software.pytorch import TrainingMemory
from planner.memory.support import triton_reasons
from planner.memory.terms import library, model, term
from planner.memory.training.adapters.settings import Formats, formats_of
from planner.memory.training.checkpointing import Checkpoints
from planner.memory.training.fused import FUSED, FusedKernels
from planner.memory.training.losses import Head, Losses, logits_later
from planner.models.architecture import Architecture
from planner.units import GIB, ceil_div
from planner.workload.training import Training

_FP32: Final = 4
_SOURCE: Final = (
    "unsloth_zoo ce232d6 (2026-08), fused_losses/cross_entropy_loss.py: parts whose fp32 logits are 4 GiB at most, on "
    "cards with 8 GiB free, compiled"
)
_PART: Final = 4 * GIB
"""Bytes of fp32 logits that Unsloth computes at once where at least twice as much is free."""
_UNCOMPILED: Final = 12
"""Bytes per logit beside the logits where the loss is not compiled: fp32 copy, log-probabilities and a gradient."""


class Unsloth(TrainingMemory):
    """Unsloth on transformers."""

    fused = FusedKernels(norms=True, gates=True, adapters=True)

    def described(self, _architecture: Architecture) -> tuple[str, ...]:
        """Say what Unsloth keeps."""
        return (
            "As Unsloth 2026.8.19 does with unsloth_zoo ce232d6: norms and gates as Liger's, adapters that keep "
            "what they read once, checkpoints in RAM, and the loss in parts of 4 GiB.",
        )

    def fused_losses(self, head: Head, input_bytes: int, gradient: int) -> Losses:
        """Return Unsloth's own fused loss.

        **Assumes** that its compiled parts hold the logits and their gradient; without compilation it is as much as
        full logits take.
        """
        return _fused(head, input_bytes, gradient)

    def formats(self, workload: Training) -> Formats:
        """Return the bytes of each kind of value: what is not quantised stays in 16 bits, and is not cast once more."""
        found = formats_of(workload, kept_bytes=2)
        return found._replace(autocast=False) if found.parameter == found.computed else found

    def checkpoints(self, workload: Training) -> Checkpoints:
        """Return the checkpoints, which wait in RAM where whole layers are computed again."""
        found = super().checkpoints(workload)
        return found._replace(offloaded=found.kind == "full")

    def unsupported_reasons(self, workload: Training, gpu: Gpu) -> tuple[str, ...]:
        """Return why `gpu` cannot run `workload`: its kernels are written in Triton."""
        return (*super().unsupported_reasons(workload, gpu), *triton_reasons(gpu))


TRAINING: Final = Unsloth()


def _fused(head: Head, input_bytes: int, gradient: int) -> Losses:
    parts = unsloth_parts(head.outputs, head.width)
    tokens = ceil_div(head.outputs, parts)
    made = head.outputs * head.hidden * input_bytes
    added = gradient * head.size
    symbols = (
        *head.sizes,
        library("C", tokens, f"tokens whose logits are there at once, in {parts:,} parts"),
        model("h", head.hidden, "width of the head's input"),
        library("r", input_bytes, "bytes of its gradient"),
    )
    kept = logits_later(made, "T × h × r", symbols, _SOURCE)
    usual = tokens * head.width * 2 * head.size + made + added
    least, most = usual - tokens * head.width * head.size, usual + tokens * head.width * (_UNCOMPILED - head.size)
    formula = "C × V × 2 × w + T × h × r" + (" + V × h × w" if added else "")

    def write() -> Term:
        return term("logits", usual, formula, symbols, _SOURCE, certainty="assumed", low_bytes=least, high_bytes=most)

    return Losses(
        forward=Deferred("logits", usual, least, most, write),
        loss=kept,
        head=kept,
        layers=logits_later(0, "0", (), _SOURCE),
        explanation=FUSED,
        head_gradient=gradient,
    )


def unsloth_parts(outputs: int, width: int) -> int:
    """Return into how many parts Unsloth divides the tokens: one if their fp32 logits fit, else a multiple of four.

    **Source**: unsloth_zoo `fused_losses.cross_entropy_loss.get_chunk_size`.
    """
    whole = outputs * width * _FP32
    return 1 if whole <= _PART else 4 * ceil_div(ceil_div(whole, _PART), 4)
