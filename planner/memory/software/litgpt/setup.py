"""A step of LitGPT: its own blocks, merged adapters, a head in parts, and bitsandbytes' inputs that outlive a step."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.memory.logits import output_width
from planner.memory.result import Term
from planner.memory.software.litgpt.ledger import BlockSettings, inputs_of, multiplied, norm_kept, saved_by_block
from planner.memory.software.litgpt.losses import Outputs, litgpt_losses
from planner.memory.software.litgpt.parts import Parts, adapters_of, check_supported, parts_of
from planner.memory.software.litgpt.weights import litgpt_weights
from planner.memory.tensors import parameter_counts, placed_tensors
from planner.memory.terms import checked, library, model, number_format
from planner.memory.terms import workload as chosen
from planner.memory.training.adapters.terms import adapters_term
from planner.memory.training.optimizer_states import Trained, parameters_in
from planner.memory.training.saved import BackwardPoint, SavedActivations, SavedBytes, sum_of
from planner.memory.training.setup import Casts, Gradients, TrainingSetup, cast_term
from planner.models.architecture import Architecture, Layer, Mlp, Tensor
from planner.workload.training import Training

_HALF: Final = 2
_DEQUANTISED: Final = (
    "bitsandbytes 0.42 MatMul4Bit: dequantize_4bit(B).to(A.dtype); lightning/fabric _Linear4bit quantises from fp16, "
    "so that bf16 takes a second copy"
)
_HELD: Final = "bitsandbytes 0.42 MatMul4Bit.forward: ctx.tensors = (A, B); the loop's `loss` names the graph"
_NOTE: Final = (
    "LitGPT 0.3 to 0.4 with bitsandbytes 0.42; all sequences are taken to be as long as the longest, so that the "
    "logits of the step before, which are still there, are as many."
)
_FORMAT_NOTE: Final = "LitGPT keeps adapters in the format of the network."


class _Step(NamedTuple):
    architecture: Architecture
    settings: BlockSettings
    parameter: int
    sequences: int
    length: int

    @property
    def tokens(self) -> int:
        return self.sequences * self.length


def litgpt_setup(architecture: Architecture, workload: Training) -> TrainingSetup:
    """Return the setup of `workload` as LitGPT runs it, its defaults filled in.

    Raises:
        SpecError: If LitGPT does not train the network so.
    """
    check_supported(architecture, workload)
    parts = parts_of(workload.lora) if workload.lora else None
    scheme = workload.weights or "fp32"
    computed = ELEMENT_BYTES[workload.compute.removeprefix("amp-")]
    parameter = ELEMENT_BYTES[scheme] if SCHEMES[scheme].family == "plain" else computed
    settings = BlockSettings(parameter, computed, parts, SCHEMES[scheme].family != "plain")
    step = _Step(architecture, settings, parameter, workload.micro_batch, workload.sequence_length or 0)
    weights = litgpt_weights(architecture, scheme, parameter)
    trained = adapters_of(architecture, parts) if parts else _every_parameter(architecture)
    saved = _saved(step)
    beside = (adapters_term(trained, workload.lora, parameter),) if workload.lora else ()
    own, before = _inputs(step)
    return TrainingSetup(
        loaded=(weights,),
        kept=(weights, *beside, *own),
        trained=trained,
        gradients=_gradients(step, trained),
        gradient_bytes=parameter,
        state_bytes=parameter,
        saved=saved,
        casts=_casts(step, parts),
        losses=litgpt_losses(_outputs(step)),
        embedding=None,
        scratch=_dequantised(step, _largest_in_a_layer(architecture)),
        scratch_head=_dequantised(step, _head(architecture)),
        left=before,
        notes=(_NOTE, *([_FORMAT_NOTE] if workload.lora and parameter != _adapter_bytes(workload) else [])),
    )


def _adapter_bytes(workload: Training) -> int:
    return ELEMENT_BYTES[workload.lora.adapter_dtype] if workload.lora else 0


def _outputs(step: _Step) -> Outputs:
    width, whole = output_width(step.architecture), step.settings.parts is None
    return Outputs(step.tokens, step.sequences, width, step.settings.computed, whole)


def _every_parameter(architecture: Architecture) -> Trained:
    own = tuple((tensor.evolve(copies=1), count) for tensor, count in placed_tensors(architecture))
    if not architecture.tied_head:
        return own
    head = Tensor(name="lm_head", shape=(output_width(architecture), architecture.hidden), role="head")
    return (*own, (head, 1))


def _head(architecture: Architecture) -> int:
    return output_width(architecture) * architecture.hidden


def _largest_in_a_layer(architecture: Architecture) -> int:
    return max(
        tensor.size for group in architecture.main.groups for tensor in group.layer.tensors if tensor.role == "linear"
    )


def _gradients(step: _Step, trained: Trained) -> Gradients:
    """Return the gradients that are there; those of the embedding and of the first block come last."""
    every = parameters_in(trained)
    if step.settings.parts is not None:
        head = parameters_in(tuple(item for item in trained if item[0].name.startswith("head.")))
        return Gradients(head, head, every, every)
    head = _head(step.architecture)
    counts = parameter_counts(step.architecture)
    first = every - counts.token_embedding - counts.smallest_layer
    return Gradients(head, head, max(first, head), every)


@lru_cache(maxsize=256)
def _saved(step: _Step) -> SavedActivations:
    architecture, settings, tokens = step.architecture, step.settings, step.tokens
    layers = tuple(
        (count, saved_by_block(layer, architecture.hidden, settings, reached))
        for layer, reached, count in _blocks(step)
    )
    behind = tokens * _behind(step)
    blocks = [group.layer.feed_forward for group in architecture.main.groups]
    flight = max(_flight(block, settings) for block in blocks if isinstance(block, Mlp))
    flight += 2 * settings.stream * architecture.hidden
    each = [(count, layer.of(step.sequences, step.length)) for count, layer in layers]
    return SavedActivations(
        kept=sum_of([SavedBytes(norms=behind), *(one * count for count, one in each)]),
        one_layer=max(one.total for _, one in each),
        point=BackwardPoint(tokens * flight),
        first=0,
        behind=behind,
        layers=layers,
        depth=architecture.main.layer_count,
    )


def _blocks(step: _Step) -> Iterator[tuple[Layer, bool, int]]:
    """Yield layers with their number, and whether a derivative reaches their input: not the first's under adapters."""
    is_first = step.settings.parts is not None
    for group in step.architecture.main.groups:
        if is_first:
            yield group.layer, False, 1
        yield group.layer, True, group.count - (1 if is_first else 0)
        is_first = False


def _flight(block: Mlp, settings: BlockSettings) -> int:
    """Return what the backward pass through a feed-forward block holds: the gradients of its branches' results."""
    return settings.computed * block.intermediate * (3 if block.gated else 2)


def _behind(step: _Step) -> int:
    """Return what the last norm keeps per token, and the head, if it is trained or adapted."""
    settings, hidden = step.settings, step.architecture.hidden
    norm = norm_kept(step.architecture.main.groups[0].layer.norm, hidden, settings)
    if settings.parts is None:
        return norm + settings.computed * hidden
    if not settings.adapts("head"):
        return norm
    return norm + settings.computed * (hidden + settings.rank) + (hidden if settings.parts.dropout else 0)


def _casts(step: _Step, parts: Parts | None) -> Casts:
    """Return autocast's copies: cached of trained weights, made anew of a frozen head for each part of the loss."""
    settings, architecture = step.settings, step.architecture
    if not settings.autocast:
        return Casts((), (), (), ())
    hidden = architecture.hidden
    inside = sum(count * multiplied(layer, hidden, settings, reached) for layer, reached, count in _blocks(step))
    chunks = _outputs(step).chunks
    inside += parameters_in(adapters_of(architecture, parts)) if parts else 0
    each = inside // architecture.main.layer_count
    every = cast_term(inside + chunks * _head(architecture), settings.computed)
    return Casts(every, every, cast_term(inside, settings.computed), cast_term(each, settings.computed))


def _dequantised(step: _Step, elements: int) -> tuple[Term, ...]:
    """Return a matrix as it is multiplied: in fp16, and once more in bf16.

    **Formula**: n · (2 + w).
    """
    if not step.settings.quantised:
        return ()
    size = step.settings.computed
    scratch = checked(
        "temporaries",
        elements * (_HALF + size),
        "n × (2 + w)",
        (
            model("n", elements, "elements of the largest matrix that is multiplied"),
            number_format("w", size, "bytes per element of what it is multiplied with"),
        ),
        _DEQUANTISED,
    )
    return (scratch,)


def _inputs(step: _Step) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """Return the inputs of quantised layers: of this step, which nothing else keeps, and all of the step before.

    **Formula**: T · n, and T · a until this step's loss takes the name of the last one's graph.
    """
    if not step.settings.quantised:
        return (), ()
    hidden = step.architecture.hidden
    found = [(inputs_of(layer, hidden, step.settings, reached), count) for layer, reached, count in _blocks(step)]
    last = step.settings.computed * hidden
    own = last + sum(alone * count for (alone, _), count in found)
    every = last + sum(both * count for (_, both), count in found)
    return (
        (_held(step, "n", own, "bytes per token of inputs that bitsandbytes keeps and nothing else does"),),
        (_held(step, "a", every, "bytes per token of all inputs, kept from the step before"),),
    )


def _held(step: _Step, symbol: str, each: int, meaning: str) -> Term:
    tokens = chosen("T", step.tokens, "tokens")
    return checked("buffers", step.tokens * each, f"T × {symbol}", (tokens, library(symbol, each, meaning)), _HELD)
