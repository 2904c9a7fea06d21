"""Memory behavior of training with Unsloth: fused layers and adapters, offloaded checkpoints, a chunked loss."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.phases import DeferredTerm
from planner.memory.result import Term
from planner.memory.software.base import triton_reasons
from planner.memory.software.pytorch import TrainingMemory
from planner.memory.terms import library_symbol, model_symbol, term
from planner.memory.training.adapters.settings import Formats, formats_of
from planner.memory.training.checkpointing import Checkpoints
from planner.memory.training.losses import FUSED, FusedKernels, LossMemory, OutputHead, deferred_logits
from planner.models.architecture import Architecture
from planner.units import GIB, ceil_div
from planner.workload.training import Training

_FP32: Final = 4
_SOURCE: Final = (
    "unsloth_zoo ce232d6 (2026-08), fused_losses/cross_entropy_loss.py: parts whose fp32 logits are 4 GiB at most, on "
    "GPUs with 8 GiB free, compiled"
)
_PART: Final = 4 * GIB
"""Maximum bytes of fp32 logits per chunk of Unsloth's loss, given at least twice as much free memory."""
_UNCOMPILED: Final = 12
"""Extra bytes per logit if the loss is not compiled: fp32 copy, log-probabilities and a gradient."""


class Unsloth(TrainingMemory):
    """Training with Unsloth on top of transformers."""

    fused = FusedKernels(norms=True, gates=True, adapters=True)
    shares_engine_weights = True
    scores_in_parts = True

    def differences_from_transformers(self, _architecture: Architecture) -> tuple[str, ...]:
        """Return notes on how Unsloth's memory use differs from transformers."""
        return (
            "Modeled on Unsloth 2026.8.19 with unsloth_zoo ce232d6: norms and gates like Liger's, adapters that save "
            "their input once, checkpoints in host memory, and the loss in chunks of 4 GiB.",
        )

    def fused_loss_memory(self, head: OutputHead, input_bytes: int, trained_head_elements: int) -> LossMemory:
        """Return the memory of Unsloth's chunked loss, computed together with the head.

        **Assumes** that its compiled chunks hold the logits and their gradient; without compilation it takes as much as
        full logits.
        """
        return _chunked_loss_memory(head, input_bytes, trained_head_elements)

    def formats(self, workload: Training) -> Formats:
        """Return the bytes per element of each kind of value; unquantized values stay in 16 bits."""
        found = formats_of(workload, kept_bytes=2)
        return found._replace(autocast=False) if found.parameter == found.computed else found

    def checkpoints(self, workload: Training) -> Checkpoints:
        """Return the activation checkpointing, offloaded to host memory if whole layers are recomputed."""
        found = super().checkpoints(workload)
        return found._replace(offloaded=found.kind == "full")

    def unsupported_reasons(self, workload: Training, gpu: Gpu) -> tuple[str, ...]:
        """Return the reasons why `gpu` cannot run `workload`, including that it cannot run Triton kernels."""
        return (*super().unsupported_reasons(workload, gpu), *triton_reasons(gpu))


TRAINING: Final = Unsloth()


def _chunked_loss_memory(head: OutputHead, input_bytes: int, trained_head_elements: int) -> LossMemory:
    """Return the memory of Unsloth's chunked loss in each phase."""
    parts = unsloth_chunk_count(head.outputs, head.width)
    tokens = ceil_div(head.outputs, parts)
    made = head.outputs * head.hidden * input_bytes
    added = trained_head_elements * head.size
    symbols = (
        *head.size_symbols,
        library_symbol("C", tokens, f"tokens per chunk of logits, of {parts:,} chunks"),
        model_symbol("h", head.hidden, "width of the head's input"),
        library_symbol("r", input_bytes, "bytes per element of the input's gradient"),
    )
    kept = deferred_logits(made, "T × h × r", symbols, _SOURCE)
    usual = tokens * head.width * 2 * head.size + made + added
    least, most = usual - tokens * head.width * head.size, usual + tokens * head.width * (_UNCOMPILED - head.size)
    formula = "C × V × 2 × w + T × h × r" + (" + V × h × w" if added else "")

    def write_term() -> Term:
        """Return the loss term with its formula written out."""
        return term("logits", usual, formula, symbols, _SOURCE, certainty="assumed", low_bytes=least, high_bytes=most)

    return LossMemory(
        forward=DeferredTerm("logits", usual, least, most, write_term),
        loss=kept,
        head=kept,
        layers=deferred_logits(0, "0", (), _SOURCE),
        explanation=FUSED,
        head_gradient=trained_head_elements,
    )


def unsloth_chunk_count(outputs: int, width: int) -> int:
    """Return the number of chunks of Unsloth's loss: 1 if all fp32 logits fit, else a multiple of 4.

    **Source**: unsloth_zoo `fused_loss_memory.cross_entropy_loss.get_chunk_size`.
    """
    whole = outputs * width * _FP32
    return 1 if whole <= _PART else 4 * ceil_div(ceil_div(whole, _PART), 4)
