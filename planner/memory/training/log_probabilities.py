"""Memory of the log-probabilities that preference tuning and reinforcement learning compute instead of a loss."""

from typing import Final

from planner.memory.logits import output_logits_term, output_width
from planner.memory.phases import DeferredTerm
from planner.memory.precision import Precision
from planner.memory.result import Term
from planner.memory.terms import library_symbol, model_symbol, term
from planner.memory.training.fused import FUSED
from planner.memory.training.losses import LossMemory, OutputHead, deferred_logits
from planner.models.architecture import Architecture
from planner.workload.alignment import aligned_lengths
from planner.workload.training import Training

_FP32: Final = 4
_FORWARD: Final = 2 * _FP32
_LOSS: Final = 4 * _FP32
_SOURCE: Final = (
    "TRL 1.10 (f2cd577) trainer/utils.py selective_log_softmax and entropy_from_logits, of logits that accelerate's "
    "convert_outputs_to_fp32 has cast; counted in PyTorch 2.13, whose aten/src/ATen/native/ReduceOps.cpp logsumexp "
    "makes (x − max).exp() of one sequence at a time"
)
_PARTS_SOURCE: Final = (
    "Liger-Kernel 0.8.2 chunked_loss/fused_linear_ppo.py: one sequence at a time, with its gradients, compiled"
)
_UNCOMPILED: Final = 12
"""Further bytes per logit where a part is not compiled: fp32 copy, log-probabilities and a gradient."""
_EXPLANATION: Final = "the derivative of the log-probabilities needs several fp32 copies of the logits"


def log_probability_head(head: OutputHead, workload: Training) -> OutputHead:
    """Return the sizes of the output head for the tokens whose logits the objective of `workload` needs.

    **Formula**: GRPO b · (c + 1), of the completion and the token before it; DPO and PPO b · s, of all tokens, where a
    pair of DPO is two sequences.

    **Source**: TRL 1.10 (f2cd577): `logits_to_keep + 1` in grpo_trainer.py; dpo_trainer.py and ppo_trainer.py slice the
    logits of whole sequences.
    """
    alignment, length = workload.alignment, workload.sequence_length or 0
    kept = aligned_lengths(alignment, length).completion + 1 if alignment.method == "grpo" else length
    return head._replace(outputs=workload.micro_batch * min(kept, length))


def log_probability_memory(
    head: OutputHead, sequences: int, trained_head_elements: int, input_bytes: int
) -> LossMemory:
    """Return the memory of logits and log-probabilities of `sequences` sequences in a training step.

    With `input_bytes` above 0 they are computed with the head, a sequence at a time.

    **Formula**: forward T · V · 8 (fp32 logits and the copy that the entropy reads), loss T · V · 16 (gradients by
    sequence, stacked, of the gathered logits, and their sum), head T · V · (w + 4). One sequence at a time: C · V · 2w
    and the gradient of the head's input.

    **Assumes** fp32 logits, as autocast in TRL and OpenRLHF have them.
    """
    if input_bytes:
        return _fused_memory(head, sequences, trained_head_elements, input_bytes)

    def logits(per_logit: int) -> DeferredTerm:
        return output_logits_term(head.width, head.outputs, per_logit, _SOURCE)

    copied = head.size if head.size < _FP32 else 0
    nothing = deferred_logits(0, "0", (), _SOURCE)
    return LossMemory(logits(_FORWARD), logits(_LOSS), logits(_FP32 + copied), nothing, _EXPLANATION)


def _fused_memory(head: OutputHead, sequences: int, trained_head_elements: int, input_bytes: int) -> LossMemory:
    """Return the memory of log-probabilities that are computed with the head, a sequence at a time."""
    tokens = -(-head.outputs // max(sequences, 1))
    made, added = head.outputs * head.hidden * input_bytes, trained_head_elements * head.size
    part = tokens * head.width
    usual = 2 * part * head.size + made + added
    symbols = (
        *head.size_symbols,
        library_symbol("C", tokens, "tokens of one sequence with logits"),
        model_symbol("h", head.hidden, "width of the head's input"),
        library_symbol("r", input_bytes, "bytes per element of the input's gradient"),
    )
    formula = "C × V × 2 × w + T × h × r" + (" + V × h × w" if added else "")
    least, most = usual - part * head.size, usual + part * (_UNCOMPILED - head.size)

    def write() -> Term:
        return term(
            "logits", usual, formula, symbols, _PARTS_SOURCE, certainty="assumed", low_bytes=least, high_bytes=most
        )

    kept = deferred_logits(made, "T × h × r", symbols, _PARTS_SOURCE)
    forward = DeferredTerm("logits", usual, least, most, write)
    nothing = deferred_logits(0, "0", (), _PARTS_SOURCE)
    return LossMemory(forward, kept, kept, nothing, FUSED, trained_head_elements)


def scored_logits(architecture: Architecture, tokens: int, sequences: int, precision: Precision) -> DeferredTerm:
    """Return the memory of the logits of `sequences` sequences, of `tokens` together, scored without gradients.

    **Formula**: T · V times the larger of w + 4 (fp32 logits beside those that were cast) and 4 + 4 / b (the exponents
    of one sequence).
    """
    width, w = output_width(architecture), precision.compute_bytes
    cast, exponents = (w if w < _FP32 else 0) + _FP32, _FP32 + _FP32 / sequences
    per_logit = max(float(cast), exponents)
    size = int(tokens * width * per_logit)
    symbols = (
        library_symbol("T", tokens, "tokens for which log-probabilities are computed"),
        model_symbol("V", width, "logits per token: the vocabulary"),
        library_symbol("k", round(per_logit, 3), "bytes per logit: fp32 logits, and their source or one exponent"),
    )
    return deferred_logits(size, "T × V × k", symbols, _SOURCE)
