"""Memory of the log-probabilities that preference tuning and reinforcement learning compute instead of a loss."""

from typing import Final

from planner.memory.logits import output_logits_term, output_width
from planner.memory.phases import DeferredTerm
from planner.memory.precision import Precision
from planner.memory.result import Symbol, Term
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
    "TRL until 1.10 (f2cd577) trainer/utils.py selective_log_softmax and entropy_from_logits, of logits that "
    "accelerate's convert_outputs_to_fp32 has cast; counted in PyTorch 2.13, whose aten/src/ATen/native/ReduceOps.cpp "
    "logsumexp makes (x − max).exp() of one sequence at a time"
)
_TILE_TOKENS: Final = 4_096
_TILE_WIDTH: Final = 32_768
"""Tokens and vocabulary columns of a tile of TRL's fused head."""
_TILE_SOURCE: Final = (
    "TRL 1.16 kernels/chunked_logprob.py: tiles of 4,096 tokens, gradients added up in fp32; trainer/utils.py "
    "add_fused_lm_head selects the completions' tokens"
)
_PARTS_SOURCE: Final = (
    "Liger-Kernel 0.8.2 chunked_loss/fused_linear_ppo.py: one sequence at a time, with its gradients, compiled"
)
_UNCOMPILED: Final = 12
"""Further bytes per logit where a part is not compiled: fp32 copy, log-probabilities and a gradient."""
_TILED: Final = "log-probabilities are computed again in tiles of the logits, with fp32 gradients of the head's input"
_EXPLANATION: Final = "the derivative of the log-probabilities needs several fp32 copies of the logits"


def scored_tokens(workload: Training, sequences: int) -> int:
    """Return the tokens of `sequences` sequences whose logits the objective of `workload` needs.

    **Formula**: b · c, of the completions, where the head is fused with the log-probabilities. From full logits GRPO
    b · (c + 1), with the token before a completion, DPO and PPO b · s, of whole sequences.

    **Source**: TRL 1.16 trainer/utils.py add_fused_lm_head; TRL 1.10 (f2cd577) grpo_trainer.py `logits_to_keep + 1`,
    dpo_trainer.py and ppo_trainer.py slice the logits of whole sequences.
    """
    alignment, length = workload.alignment, workload.sequence_length or 0
    completion = aligned_lengths(alignment, length).completion
    if workload.loss != "full-logits":
        return sequences * completion
    return sequences * min(completion + 1 if alignment.method == "grpo" else length, length)


def log_probability_memory(
    head: OutputHead, workload: Training, trained_head_elements: int, input_bytes: int
) -> LossMemory:
    """Return the memory of logits and log-probabilities in a training step of `workload`.

    `input_bytes` is an element of the head's input, whose gradient is made with the log-probabilities unless all logits
    are computed first.

    **Formula**: full logits: forward T · V · 8 (fp32 logits and the copy that the entropy reads), loss T · V · 16
    (gradients by sequence, stacked, of the gathered logits, and their sum), head T · V · (w + 4). In tiles: tile · w
    and T · h · r, in the backward pass 4 bytes more for each, and 4 for each element of a trained head. One sequence at
    a time: C · V · 2w and T · h · r.

    **Assumes** fp32 logits, as autocast in TRL and OpenRLHF have them.
    """
    head = head._replace(outputs=scored_tokens(workload, workload.micro_batch))
    if workload.loss == "fused-linear":
        return _fused_memory(head, workload.micro_batch, trained_head_elements, input_bytes)
    if workload.loss == "chunked":
        return _tiled_memory(head, trained_head_elements, input_bytes)

    def logits(per_logit: int) -> DeferredTerm:
        """Return the logits of all tokens at `per_logit` bytes each."""
        return output_logits_term(head.width, head.outputs, per_logit, _SOURCE)

    copied = head.size if head.size < _FP32 else 0
    nothing = deferred_logits(0, "0", (), _SOURCE)
    return LossMemory(logits(_FORWARD), logits(_LOSS), logits(_FP32 + copied), nothing, _EXPLANATION)


def _tile_symbols(head: OutputHead, input_bytes: int) -> tuple[Symbol, ...]:
    return (
        *head.size_symbols,
        library_symbol("n", _tile_elements(head.outputs, head.width), "logits in a tile"),
        model_symbol("h", head.hidden, "width of the head's input"),
        library_symbol("r", input_bytes, "bytes per element of the head's input"),
    )


def _tile_elements(outputs: int, width: int) -> int:
    """Return the logits in a tile of TRL's fused head."""
    return min(outputs, _TILE_TOKENS) * min(width, _TILE_WIDTH)


def _tiled_memory(head: OutputHead, trained_head_elements: int, input_bytes: int) -> LossMemory:
    """Return the memory of log-probabilities in tiles, which the backward pass makes again."""
    tile = _tile_elements(head.outputs, head.width) * head.size
    inputs, gradients = head.outputs * head.hidden * input_bytes, head.outputs * head.hidden * _FP32
    symbols = _tile_symbols(head, input_bytes)
    own = trained_head_elements * _FP32
    formula = "n × w + T × h × (r + 4)" + (" + V × h × 4" if own else "")
    return LossMemory(
        deferred_logits(tile + inputs, "n × w + T × h × r", symbols, _TILE_SOURCE),
        deferred_logits(tile + inputs + gradients + own, formula, symbols, _TILE_SOURCE),
        deferred_logits(inputs + gradients, "T × h × (r + 4)", symbols, _TILE_SOURCE),
        deferred_logits(0, "0", (), _TILE_SOURCE),
        _TILED,
    )


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


def scored_logits(
    architecture: Architecture, workload: Training, sequences: int, precision: Precision, *, in_parts: bool
) -> DeferredTerm:
    """Return the memory of the logits of `sequences` sequences that are scored together without gradients.

    `in_parts` means that a program scores one sequence at a time where it fuses the head with the loss.

    **Formula**: T · V times the larger of w + 4 (fp32 logits beside those that were cast) and 4 + 4 / b (the exponents
    of one sequence); in tiles n · w + T · h · w.
    """
    width, w, tokens = output_width(architecture), precision.compute_bytes, scored_tokens(workload, sequences)
    if workload.loss == "chunked":
        head = OutputHead(tokens, width, architecture.hidden, w)
        size = _tile_elements(tokens, width) * w + tokens * architecture.hidden * w
        return deferred_logits(size, "n × w + T × h × w", _tile_symbols(head, w), _TILE_SOURCE)
    if in_parts and workload.loss == "fused-linear":
        tokens, sequences = tokens // sequences, 1
    cast, exponents = (w if w < _FP32 else 0) + _FP32, _FP32 + _FP32 / sequences
    per_logit = max(float(cast), exponents)
    symbols = (
        library_symbol("T", tokens, "tokens for which log-probabilities are computed"),
        model_symbol("V", width, "logits per token: the vocabulary"),
        library_symbol("k", round(per_logit, 3), "bytes per logit: fp32 logits, and their source or one exponent"),
    )
    return deferred_logits(int(tokens * width * per_logit), "T × V × k", symbols, _SOURCE)
