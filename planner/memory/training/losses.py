"""Memory of the output head, and of the loss or the log-probabilities computed from it, by how they are computed."""

from functools import partial
from typing import Final, NamedTuple

from planner.memory.logits import (
    logits_term,
    loss_bytes_per_logit,
    output_logits_term,
    output_width,
    predicts_every_token,
)
from planner.memory.phases import DeferredTerm
from planner.memory.precision import Precision
from planner.memory.result import Symbol, Term
from planner.memory.terms import (
    deferred_measured_term,
    library_symbol,
    measured_term,
    model_symbol,
    term,
    workload_symbol,
)
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.alignment import aligned_lengths
from planner.workload.training import Training

_FP32: Final = 4
_FULL: Final = "the derivative of the loss needs several fp32 copies of the logits"
_NO_HEAD: Final = "the network has no output head: a head and loss added by the user are not counted"
_CHUNKED: Final = "the derivative of the loss needs fp32 copies of one chunk of the logits at a time"
_CHUNKED_SOURCE: Final = (
    "torchtune 0.7 (bd2a0fc), LinearCrossEntropyLoss: each part of the logits is made by a product of its own, cast to "
    "fp32, and kept as log-probabilities"
)


class LossMemory(NamedTuple):
    """Memory of the logits in the forward pass, at the loss, in the head's backward pass, and afterwards.

    `head_gradient` is the number of head parameters whose gradient is computed with the loss.
    """

    forward: DeferredTerm
    loss: DeferredTerm
    head: DeferredTerm
    layers: DeferredTerm
    explanation: str = _FULL
    head_gradient: int = 0


class OutputHead(NamedTuple):
    """Sizes of an output head: tokens with logits, logits per token, input width, bytes per logit."""

    outputs: int
    width: int
    hidden: int
    size: int

    @property
    def parameters(self) -> int:
        """Return the number of elements in the head's matrix."""
        return self.width * self.hidden

    @property
    def size_symbols(self) -> tuple[Symbol, ...]:
        """Return the formula symbols for the number of logits and the bytes per logit."""
        return (
            workload_symbol("T", self.outputs, "tokens for which logits are computed"),
            model_symbol("V", self.width, "logits per token: the vocabulary, or the number of labels"),
            library_symbol("w", self.size, "bytes per logit"),
        )


def output_head(architecture: Architecture, workload: Training, precision: Precision) -> OutputHead:
    """Return the sizes of the output head in a training step, with logits per token or per sequence."""
    tokens = workload.sequence_length or 0 if predicts_every_token(architecture) else 1
    return OutputHead(
        workload.micro_batch * tokens, output_width(architecture), architecture.hidden, precision.compute_bytes
    )


def full_loss_memory(architecture: Architecture, head: OutputHead, precision: Precision) -> LossMemory:
    """Return the memory of a loss that is computed from all logits at once.

    **Formula**: T · V · k, with k bytes per logit from `loss_bytes_per_logit`.
    """
    if not head.width:
        return WITHOUT_HEAD
    per_forward, per_backward = loss_bytes_per_logit(architecture, precision)

    def deferred_term(per_logit: int) -> DeferredTerm:
        """Return the logits term at `per_logit` bytes per logit, whose formula is written on demand."""
        size_bytes = head.outputs * head.width * per_logit
        write = partial(logits_term, architecture, head.outputs, per_logit, precision)
        return DeferredTerm("logits", size_bytes, size_bytes, size_bytes, write)

    # A bias in fp32 makes fp32 logits, which are the model's output.
    output = _FP32 if precision.autocast and architecture.loss_reads == "biased-logits" else head.size
    return LossMemory(
        deferred_term(per_forward),
        deferred_term(per_backward),
        deferred_term(output + head.size),
        deferred_term(output),
    )


def deferred_logits(size_bytes: int, formula: str, symbols: tuple[Symbol, ...], source: str) -> DeferredTerm:
    """Return a term of `size_bytes` of logits, whose formula is written on demand."""
    write = partial(measured_term, "logits", size_bytes, formula, symbols, source)
    return deferred_measured_term("logits", size_bytes, write)


_NO_LOGITS: Final = deferred_logits(0, "0", (), "a network without an output head")
WITHOUT_HEAD: Final = LossMemory(_NO_LOGITS, _NO_LOGITS, _NO_LOGITS, _NO_LOGITS, _NO_HEAD)


def chunked_loss_memory(head: OutputHead, chunks: int, gradient_bytes: int) -> LossMemory:
    """Return the memory of torchtune's loss, computed in `chunks` chunks that each save their log-probabilities.

    **Formula**: in c parts T · V · (4 + (w + 4) / c) when the loss is computed, then T · V · (4 + 8 / c), or a part
    later with gradients of the head, of `gradient_bytes` an element.
    """
    part = ceil_div(head.outputs, chunks) * head.width
    every = head.outputs * head.width
    symbols = (*head.size_symbols, workload_symbol("c", chunks, "parts"))
    copied = head.size if head.size < _FP32 else 0
    gradient = head.width * head.hidden * gradient_bytes
    derived = (every * _FP32 + part * 2 * _FP32, "T × V × (4 + 8 / c)")
    if chunks > 1:
        # The second chunk besides the head's gradient of the first, or both gradients and their sum.
        second = ((every + part) * _FP32 + gradient, "T × V × (4 + 4 / c) + V × h × r")
        summed = (max(every - 2 * part, 0) * _FP32 + 3 * gradient, "T × V × 4 × (c − 2) / c + 3 × V × h × r")
        derived = max(derived, second, summed)
    beside = (
        model_symbol("h", head.hidden, "width of the head's input"),
        library_symbol("r", gradient_bytes, "bytes per gradient element"),
    )
    return LossMemory(
        forward=deferred_logits(
            every * _FP32 + part * (_FP32 + copied), "T × V × (4 + (w + 4) / c)", symbols, _CHUNKED_SOURCE
        ),
        loss=deferred_logits(*derived, (*symbols, *beside), _CHUNKED_SOURCE),
        head=deferred_logits(part * 2 * head.size, "T × V × 2 × w / c", symbols, _CHUNKED_SOURCE),
        layers=deferred_logits(0, "0", (), _CHUNKED_SOURCE),
        explanation=_CHUNKED,
    )


FUSED: Final = "the gradients computed by the fused loss are kept until the backward pass"
"""Explanation of the loss phase for a loss that computes its gradients in the forward pass."""
_FUSED_SOURCE: Final = (
    "Liger-Kernel 0.8.2, fused_linear_cross_entropy_forward: parts of next_power_of_2(⌈T / ⌈V / h⌉⌉) tokens, gradients "
    "made with the loss; that of the head added from an fp32 copy of each part's"
)


class FusedKernels(NamedTuple):
    """Operations of a layer that a library fuses: norms, gates with their activation, and adapters."""

    norms: bool = False
    gates: bool = False
    adapters: bool = False


def fused_linear_loss_memory(head: OutputHead, input_bytes: int, trained_head_elements: int) -> LossMemory:
    """Return the memory of Liger's loss, fused with a head of which `trained_head_elements` elements are trained.

    **Formula**: the logits of C tokens and the gradient of the head's input, and of the head itself with it, where it
    is trained V · h · (w + 4) more for that of one part and its fp32 copy.
    """
    tokens = fused_chunk_tokens(head.outputs, head.width, head.hidden)
    made = head.outputs * head.hidden * input_bytes
    logits = tokens * head.width * head.size
    symbols = (
        *head.size_symbols,
        library_symbol("C", tokens, "tokens per chunk of logits"),
        model_symbol("h", head.hidden, "width of the head's input"),
        library_symbol("r", input_bytes, "bytes per element of the input's gradient"),
    )
    kept = deferred_logits(made, "T × h × r", symbols, _FUSED_SOURCE)
    added = trained_head_elements * (head.size + (_FP32 if head.size < _FP32 else 0))
    formula = "C × V × w + T × h × r" + (" + V × h × (w + 4)" if added else "")
    return LossMemory(
        forward=deferred_logits(logits + made + added, formula, symbols, _FUSED_SOURCE),
        loss=kept,
        head=kept,
        layers=deferred_logits(0, "0", (), _FUSED_SOURCE),
        explanation=FUSED,
        head_gradient=trained_head_elements,
    )


def fused_chunk_tokens(outputs: int, width: int, hidden: int) -> int:
    """Return the number of tokens per chunk of Liger's loss: a power of two, near T · h / V."""
    parts = max(ceil_div(width, max(hidden, 1)), 1)
    each = max(ceil_div(outputs, parts), 1)
    return min(1 << (each - 1).bit_length(), outputs)


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
