"""Memory behavior of training with LitGPT 0.3 to 0.4 (2024): its own model code, with bitsandbytes 0.42.

A step has blocks with merged adapters, a head and a loss in chunks, and inputs that bitsandbytes keeps.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.memory.logits import output_width
from planner.memory.phases import DeferredTerm
from planner.memory.result import Symbol, Term
from planner.memory.software.litgpt.ledger import (
    BlockSettings,
    bitsandbytes_input_bytes,
    graph_matrix_elements,
    litgpt_norm_bytes,
    saved_by_block,
)
from planner.memory.software.litgpt.parameters import (
    AdaptedParts,
    adapted_parts,
    check_supported,
    dequantized_term,
    head_size_elements,
    largest_matrix_elements,
    litgpt_adapters,
    litgpt_weights,
)
from planner.memory.software.pytorch import TrainingMemory
from planner.memory.terms import (
    deferred_measured_term,
    library_symbol,
    measured_term,
    model_symbol,
    workload_symbol,
)
from planner.memory.training.losses import LossMemory
from planner.memory.training.optimizer_states import Trained, parameter_count
from planner.memory.training.optimizer_steps import optimizer_terms
from planner.memory.training.partial import adapters_term
from planner.memory.training.saved import BackwardPoint, SavedActivations, SavedBytes, sum_of_saved_bytes
from planner.memory.training.step import AutocastCopies, GradientCounts, TrainingSetup, cast_terms
from planner.memory.weights import parameter_counts, placed_tensors
from planner.models.architecture import Architecture, Layer, Mlp, Tensor
from planner.units import ceil_div
from planner.workload.training import Training

_LOSS_CHUNK_SIZE: Final = 128
"""Tokens per chunk of the cross entropy; with adapters, positions of each sequence per chunk of head and loss.

**Source**: litgpt/finetune/lora.py, `model(input_ids, lm_head_chunk_size=128)`; finetune/full.py leaves the head whole.
"""
_FP32: Final = 4
_SOURCE: Final = (
    "lightning/fabric HalfPrecision.convert_output and BitsandbytesPrecision.convert_output: logits become fp32; "
    "litgpt/utils.py chunked_cross_entropy; the training loop's `logits` still refers to those of the previous step"
)
_WHOLE_BACKWARD: Final = "the derivative of the loss is complete for all logits before the head's backward pass starts"


class StepOutputs(NamedTuple):
    """Logits of a training step: tokens, sequences, vocabulary width, and bytes per logit as computed.

    `whole` means that the head computes all logits at once, `softcapped` that they pass through tanh (Gemma 2).
    """

    tokens: int
    sequences: int
    width: int
    size: int
    whole: bool = False
    softcapped: bool = False

    @property
    def chunks(self) -> int:
        """Return the number of chunks in which the head computes the logits."""
        return 1 if self.whole else ceil_div(self.tokens // self.sequences, _LOSS_CHUNK_SIZE)

    @property
    def chunk_tokens(self) -> int:
        """Return the number of tokens per chunk of the cross entropy."""
        return min(self.tokens, _LOSS_CHUNK_SIZE * (1 if self.whole else self.sequences))


def litgpt_loss_memory(outputs: StepOutputs) -> LossMemory:
    """Return the memory of the logits in the forward pass, at the loss, and in the backward pass.

    **Formula**: when they are made T · V · (4 + w + 4), the fp32 ones of the step before among them; in the loss
    T · V · (4 + 4) and two fp32 derivatives of one part, and T · V · 4 more where the last position of several whole
    sequences is cut off by a copy; at the head T · V · (4 + w); then T · V · 4. Softcapped logits keep the output of
    tanh, k bytes more until the head's backward pass (litgpt/model.py `do_softcapping`).
    """
    every = outputs.tokens * outputs.width
    part, size = outputs.chunk_tokens, outputs.size
    copied = _FP32 if outputs.whole and outputs.sequences > 1 else 0
    # What is in fp32 already is not converted.
    converted = size if size < _FP32 else 0
    capped = size if outputs.softcapped else 0
    symbols = (
        workload_symbol("T", outputs.tokens, "tokens"),
        model_symbol("V", outputs.width, "logits per token: the vocabulary size"),
        library_symbol("w", converted, "bytes per logit before the cast to fp32"),
        library_symbol("C", part, "tokens per chunk"),
        library_symbol("s", copied, "bytes per logit in the copy without the last position"),
        library_symbol("k", capped, "bytes per logit that tanh keeps for its derivative"),
    )
    made = _deferred_logits(every * (2 * _FP32 + converted + capped), "T × V × (4 + w + 4 + k)", symbols)
    loss = every * (2 * _FP32 + copied + capped) + part * outputs.width * 2 * _FP32
    derived = _deferred_logits(loss, "T × V × (8 + s + k) + C × V × 8", symbols)
    head = _deferred_logits(every * (_FP32 + (converted or _FP32) + capped), "T × V × (4 + w + k)", symbols)
    return LossMemory(made, derived, head, _deferred_logits(every * _FP32, "T × V × 4", symbols), _WHOLE_BACKWARD)


def _deferred_logits(size_bytes: int, formula: str, symbols: tuple[Symbol, ...]) -> DeferredTerm:
    """Return the memory of logits, whose formula is written on demand."""

    def write_term() -> Term:
        """Return the logits term with its formula written out."""
        return measured_term("logits", size_bytes, formula, symbols, _SOURCE)

    return deferred_measured_term("logits", size_bytes, write_term)


_HELD: Final = "bitsandbytes 0.42 MatMul4Bit.forward: ctx.tensors = (A, B); the loop's `loss` names the graph"
_NOTE: Final = (
    "Modeled on LitGPT 0.3 to 0.4 with bitsandbytes 0.42; all sequences are assumed to be as long as the longest, so "
    "the logits of the previous step, which are still alive, are as many."
)
_FORMAT_NOTE: Final = "LitGPT stores adapters in the network's format."


class _LitGptStep(NamedTuple):
    """One training step in LitGPT: network, formats, and the size of the batch."""

    architecture: Architecture
    settings: BlockSettings
    parameter: int
    sequences: int
    length: int

    @property
    def tokens(self) -> int:
        """Return the number of tokens in a micro-batch."""
        return self.sequences * self.length


def litgpt_setup(architecture: Architecture, workload: Training) -> TrainingSetup:
    """Return the memory inputs of a training step of `workload` (defaults filled in) in LitGPT.

    Raises:
        SpecError: If LitGPT cannot train the network with these options.
    """
    check_supported(architecture, workload)
    parts = adapted_parts(workload.lora) if workload.lora else None
    scheme = workload.weights or "fp32"
    computed = ELEMENT_BYTES[workload.compute.removeprefix("amp-")]
    parameter = ELEMENT_BYTES[scheme] if SCHEMES[scheme].family == "plain" else computed
    settings = BlockSettings(parameter, computed, parts, SCHEMES[scheme].family != "plain")
    step = _LitGptStep(architecture, settings, parameter, workload.micro_batch, workload.sequence_length or 0)
    trained = litgpt_adapters(architecture, parts) if parts else _all_parameters(architecture)
    saved = _saved_activations(step)
    own, before = _quantized_input_terms(step)
    return TrainingSetup(
        weights=litgpt_weights(architecture, scheme, parameter),
        optimizer=optimizer_terms(trained, workload.optimizer, workload.optimizer_step, parameter),
        gradients=_live_gradients(step, trained),
        gradient_bytes=parameter,
        saved=saved,
        casts=_autocast_copies(step, parts),
        losses=litgpt_loss_memory(_step_outputs(step)),
        embedding=None,
        adapters=adapters_term(trained, workload.lora, parameter) if workload.lora else None,
        held=own,
        scratch=_dequantized_terms(step, largest_matrix_elements(architecture)),
        scratch_head=_dequantized_terms(step, head_size_elements(architecture)),
        left=before,
        notes=(
            _NOTE,
            *([_FORMAT_NOTE] if workload.lora and parameter != _adapter_bytes(workload) else []),
        ),
    )


def _adapter_bytes(workload: Training) -> int:
    """Return the bytes per adapter parameter, 0 without adapters."""
    return ELEMENT_BYTES[workload.lora.adapter_dtype] if workload.lora else 0


def _step_outputs(step: _LitGptStep) -> StepOutputs:
    """Return the sizes of the logits in one training step."""
    architecture, whole = step.architecture, step.settings.parts is None
    return StepOutputs(
        step.tokens,
        step.sequences,
        output_width(architecture),
        step.settings.computed,
        whole,
        architecture.softcapped_logits,
    )


def _all_parameters(architecture: Architecture) -> Trained:
    """Return all parameters as trained tensors, with a separate head even where the model ties it to the embedding."""
    own = tuple((tensor.evolve(copies=1), count) for tensor, count in placed_tensors(architecture))
    if not architecture.tied_head:
        return own
    head = Tensor(name="lm_head", shape=(output_width(architecture), architecture.hidden), role="head")
    return (*own, (head, 1))


def _dequantized_terms(step: _LitGptStep, elements: int) -> tuple[Term, ...]:
    return (dequantized_term(elements, step.settings.computed),) if step.settings.quantized else ()


def _live_gradients(step: _LitGptStep, trained: Trained) -> GradientCounts:
    """Return the numbers of parameters with gradients in each phase; embedding and first block get theirs last."""
    every = parameter_count(trained)
    if step.settings.parts is not None:
        head = parameter_count(tuple(item for item in trained if item[0].name.startswith("head.")))
        return GradientCounts(head, head, every, every)
    head = head_size_elements(step.architecture)
    counts = parameter_counts(step.architecture)
    first = every - counts.token_embedding - counts.smallest_layer
    return GradientCounts(head, head, max(first, head), every)


def _saved_activations(step: _LitGptStep) -> SavedActivations:
    """Return the activations that LitGPT's blocks, norms and head save in a step."""
    architecture, settings, tokens = step.architecture, step.settings, step.tokens
    layers = tuple(
        (count, saved_by_block(layer, architecture.hidden, settings, reached))
        for layer, reached, count in _block_layers(step)
    )
    behind = tokens * _bytes_after_layers(step)
    blocks = [group.layer.feed_forward for group in architecture.main.groups]
    flight = max(_gradient_bytes_in_flight(block, settings) for block in blocks if isinstance(block, Mlp))
    flight += 2 * settings.stream * architecture.hidden
    each = [(count, layer.for_batch(step.sequences, step.length)) for count, layer in layers]
    return SavedActivations(
        kept=sum_of_saved_bytes([SavedBytes(norms=behind), *(one * count for count, one in each)]),
        one_layer=max(one.total for _, one in each),
        point=BackwardPoint(tokens * flight),
        first=0,
        behind=behind,
        layers=layers,
        depth=architecture.main.layer_count,
    )


def _block_layers(step: _LitGptStep) -> Iterator[tuple[Layer, bool, int]]:
    """Yield each kind of layer with its count, and whether a gradient reaches the layer's input."""
    is_first = step.settings.parts is not None
    for group in step.architecture.main.groups:
        if is_first:
            yield group.layer, False, 1
        yield group.layer, True, group.count - (1 if is_first else 0)
        is_first = False


def _gradient_bytes_in_flight(block: Mlp, settings: BlockSettings) -> int:
    """Return the gradient bytes per token alive in the backward pass of a feed-forward block."""
    return settings.computed * block.intermediate * (3 if block.gated else 2)


def _bytes_after_layers(step: _LitGptStep) -> int:
    """Return the bytes saved per token by the last norm, and by the head if trained or adapted."""
    settings, hidden = step.settings, step.architecture.hidden
    norm = litgpt_norm_bytes(step.architecture.main.groups[0].layer.norm, hidden, settings)
    if settings.parts is None:
        return norm + settings.computed * hidden
    if not settings.adapts("head"):
        return norm
    return norm + settings.computed * (hidden + settings.rank) + (hidden if settings.parts.dropout else 0)


def _autocast_copies(step: _LitGptStep, parts: AdaptedParts | None) -> AutocastCopies:
    """Return autocast's live copies: cached for trained weights, repeated per chunk for a frozen head."""
    settings, architecture = step.settings, step.architecture
    if not settings.autocast:
        return AutocastCopies((), (), (), ())
    hidden = architecture.hidden
    inside = sum(
        count * graph_matrix_elements(layer, hidden, settings, reached) for layer, reached, count in _block_layers(step)
    )
    chunks = _step_outputs(step).chunks
    inside += parameter_count(litgpt_adapters(architecture, parts)) if parts else 0
    each = inside // architecture.main.layer_count
    every = cast_terms(inside + chunks * head_size_elements(architecture), settings.computed)
    return AutocastCopies(every, every, cast_terms(inside, settings.computed), cast_terms(each, settings.computed))


def _quantized_input_terms(step: _LitGptStep) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """Return terms of inputs kept by bitsandbytes: this step's that nothing else saves, and the previous step's.

    **Formula**: T · n, and T · a until this step's loss replaces the reference to the previous graph.
    """
    if not step.settings.quantized:
        return (), ()
    hidden = step.architecture.hidden
    found = [
        (bitsandbytes_input_bytes(layer, hidden, step.settings, reached), count)
        for layer, reached, count in _block_layers(step)
    ]
    last = step.settings.computed * hidden
    own = last + sum(inputs.unshared * count for inputs, count in found)
    every = last + sum(inputs.total * count for inputs, count in found)
    return (
        (
            _held_inputs_term(
                step, "n", own, "bytes per token of inputs of quantized layers that only bitsandbytes keeps"
            ),
        ),
        (
            _held_inputs_term(
                step, "a", every, "bytes per token of all inputs of quantized layers, kept from the previous step"
            ),
        ),
    )


def _held_inputs_term(step: _LitGptStep, symbol: str, bytes_per_token: int, meaning: str) -> Term:
    """Return the memory of kept inputs of `bytes_per_token` over all tokens."""
    tokens = workload_symbol("T", step.tokens, "tokens")
    return measured_term(
        "buffers",
        step.tokens * bytes_per_token,
        f"T × {symbol}",
        (tokens, library_symbol(symbol, bytes_per_token, meaning)),
        _HELD,
    )


class LitGpt(TrainingMemory):
    """Training with LitGPT on one card."""

    def setup(self, architecture: Architecture, workload: Training) -> TrainingSetup:
        """Return the memory inputs of a training step in LitGPT's own blocks."""
        return litgpt_setup(architecture, workload)


TRAINING: Final = LitGpt()
