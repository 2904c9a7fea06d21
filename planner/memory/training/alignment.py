"""The phases of preference tuning and reinforcement learning around a training step, and the memory in each."""

from collections.abc import Hashable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from planner.memory.inference.scratch import scratch_term
from planner.memory.parallel.placing import EngineCard
from planner.memory.phases import AnyTerm, PhaseSnapshots, Snapshot
from planner.memory.precision import training_precision
from planner.memory.result import PhaseName, Term
from planner.memory.terms import format_symbol, library_symbol, measured_term, model_symbol
from planner.memory.training.alignment_models import (
    EngineShare,
    ValueModel,
    compute_bytes,
    engine_share,
    frozen_models,
    lasting_terms_of,
    other_models_term,
    own_generation,
    value_model,
    value_network,
    value_training,
)
from planner.memory.training.losses import scored_logits
from planner.models.architecture import Architecture
from planner.workload.training import Training

if TYPE_CHECKING:
    from planner.memory.software.pytorch import Trained, TrainingMemory

_SHORT_LIVED: Final = ("gradients", "activations", "logits", "temporaries")
_FP32: Final = 4
_SHARDED: Final = 3
"""ZeRO stage that shards parameters."""
_SYNC_SOURCE: Final = (
    "TRL 1.10 (f2cd577) generation/vllm_generation.py sync_weights: each parameter is gathered and loaded by itself; "
    "peft merges an adapter's fp32 product into each matrix; ZeRO-3 gathers the whole model for both"
)
_GATHER_SOURCE: Final = "TRL 1.10 (f2cd577): ds3_gather_for_generation gathers all parameters to generate"
_NOTES: Final[dict[str, str]] = {
    "chunked": "Modeled on TRL 1.16: log-probabilities in tiles, a reference in the model's own format.",
    "full-logits": "Modeled on TRL until 1.10, verl and OpenRLHF: fp32 logits of all tokens of a micro-batch.",
    "fused-linear": "Modeled on Liger's and Unsloth's GRPO: log-probabilities of one sequence at a time.",
}


def aligned_timeline(
    architecture: Architecture,
    workload: Training,
    program: "TrainingMemory",
    trained: "Trained",
    card_class: Hashable,
) -> PhaseSnapshots:
    """Return the memory of one card in `workload`, whose objective is DPO, PPO or GRPO, in order of its phases.

    `trained` returns the timeline of a training step, `program` trains, and `card_class` is the card that an engine
    shares. Everything is built from the estimates of training and inference.

    **Formula**: generate = states + other models + engine, or cache and step of the trainer's own generation; score =
    states + other models + a forward pass without gradients + logits of the scored sequences; forward, loss,
    backward, step = those of training + other models + engine; sync = states + other models + engine with its weights +
    the largest tensor that is copied.
    """
    step = trained(architecture, workload)
    alignment = workload.alignment
    value = None
    if alignment.method == "ppo":
        value = value_model(trained(value_network(architecture), value_training(workload)))
    card = card_class if isinstance(card_class, EngineCard) else None
    engine = None
    if alignment.shares_card:
        engine = engine_share(architecture, workload, card, shares_weights=program.shares_engine_weights)
    beside = partial(_beside, architecture, workload, value)
    snapshots = [
        *(one for one in step.snapshots if one.name == "load"),
        *_before_training(architecture, workload, program, step, value, engine),
        *(
            one.with_terms([*one.terms, *beside(one.name), *_waiting(engine)])
            for one in step.snapshots
            if one.name != "load"
        ),
        *_sync(architecture, workload, step, value, engine),
    ]
    notes = (_NOTES[workload.loss or "chunked"], *([engine.note] if engine else ()))
    refusal = engine.refusal if engine else ""
    return step._replace(snapshots=tuple(snapshots), notes=(*notes, *step.notes), refusal=refusal)


def _waiting(engine: EngineShare | None) -> list[AnyTerm]:
    """Return the engine as it waits while the card scores and trains, empty without one."""
    return [engine.waiting] if engine and engine.waiting.bytes else []


def _beside(
    architecture: Architecture, workload: Training, value: ValueModel | None, phase: PhaseName
) -> list[AnyTerm]:
    """Return the other models at `phase`, as a list of at most one term."""
    held = other_models_term([*frozen_models(architecture, workload), *(value.at(phase) if value else ())])
    return [held] if held else []


def _last(step: PhaseSnapshots, phase: PhaseName) -> Snapshot:
    """Return the last moment of `phase` in a training step."""
    return [one for one in step.snapshots if one.name == phase][-1]


def _before_training(
    architecture: Architecture,
    workload: Training,
    program: "TrainingMemory",
    step: PhaseSnapshots,
    value: ValueModel | None,
    engine: EngineShare | None,
) -> Iterator[Snapshot]:
    """Yield the moments before the forward pass: generation of completions, and their scores."""
    alignment = workload.alignment
    beside = _beside(architecture, workload, value, "generate")
    states = lasting_terms_of(_last(step, "step"), *_SHORT_LIVED)
    # A forward pass holds autocast's copies and gathered layers, too.
    passing = lasting_terms_of(_last(step, "forward"), "gradients", "activations", "logits")
    if alignment.generates:
        if engine:
            explanation = "vLLM generates completions beside the states of training"
            yield Snapshot("generate", [*states, *beside, engine.generating], explanation)
        elif alignment.engine == "none":
            gathered = _gathered_model(architecture, workload)
            base = lasting_terms_of(_last(step, "forward"), "gradients", "activations", "logits", "communication")
            held = [*(base if gathered else passing), *gathered, *own_generation(architecture, workload), *beside]
            yield Snapshot("generate", held, "the trainer generates all completions of a step itself")
    scoring = _scoring(architecture, workload, program)
    if alignment.generates and alignment.scoring_passes:
        by_trainer = alignment.method == "ppo" and alignment.engine == "none"
        gathered = _gathered_model(architecture, workload) if by_trainer else []
        held = [*passing, *gathered, *scoring, *beside, *_waiting(engine)]
        yield Snapshot("score", held, "log-probabilities and rewards of the completions are computed without gradients")
    elif alignment.scores_reference:
        saved = [each for each in _last(step, "forward").terms if each.name == "activations"]
        kept = _kept_logits(_last(step, "forward"), workload)
        explanation = "the reference reads the pairs, with the activations of the model's own forward pass saved"
        yield Snapshot("score", [*passing, *saved, *kept, *scoring, *beside], explanation)
    elif alignment.reference == "precomputed":
        weights = lasting_terms_of(_last(step, "step"), *_SHORT_LIVED, "optimizer_states", "master_weights")
        explanation = "the model reads all pairs before training begins, as its own reference"
        yield Snapshot("score", [*weights, *scoring], explanation)


def _kept_logits(forward: Snapshot, workload: Training) -> list[AnyTerm]:
    """Return what a forward pass keeps of its logits for the backward pass: the fp32 ones, half of what it holds."""
    if workload.loss != "full-logits":
        return []
    return [
        measured_term("logits", each.bytes // 2, "T × V × 4", (), "the fp32 logits saved by logsumexp")
        for each in forward.terms
        if each.name == "logits"
    ]


def _scoring(architecture: Architecture, workload: Training, program: "TrainingMemory") -> list[AnyTerm]:
    """Return a forward pass without gradients over one batch of scored sequences, with their logits."""
    alignment, length = workload.alignment, workload.sequence_length or 1
    batch = alignment.sequences(workload.micro_batch)
    if alignment.generates:
        batch = alignment.score_batch or batch
    precision = training_precision(workload)._replace(autocast=False)
    scratch = scratch_term(architecture, batch, length, precision, workload.attention)
    logits = scored_logits(architecture, workload, batch, precision, in_parts=program.scores_in_parts)
    return [scratch, logits]


def _gathered_model(architecture: Architecture, workload: Training) -> list[Term]:
    """Return the whole model that ZeRO-3 gathers to generate, empty where the card has it; in PPO two of them.

    **Source**: TRL 1.10 (f2cd577) ppo_trainer.py: `unwrap_model_for_generation` gathers all parameters of
    `PolicyAndValueWrapper`, and the scores are computed before they are freed.
    """
    if workload.parallel.zero != _SHARDED or workload.parallel.state_shards == 1:
        return []
    models = 2 if workload.alignment.method == "ppo" else 1
    size, count = compute_bytes(workload), architecture.parameters
    symbols = (
        library_symbol("m", models, "models that are gathered: in PPO the value model, too"),
        model_symbol("P", count, "parameters of the model"),
        format_symbol("w", size, "bytes per parameter"),
    )
    return [measured_term("communication", models * count * size, "m × P × w", symbols, _GATHER_SOURCE)]


def _sync(
    architecture: Architecture,
    workload: Training,
    step: PhaseSnapshots,
    value: ValueModel | None,
    engine: EngineShare | None,
) -> Iterator[Snapshot]:
    """Yield the moment when an engine gets the trained weights; without an engine there is none."""
    alignment = workload.alignment
    if not alignment.generates or alignment.engine == "none":
        return
    layers = (tensor for stack in architecture.stacks for group in stack.groups for tensor in group.layer.tensors)
    edges = (tensor for stack in architecture.stacks for tensor in (*stack.before, *stack.after))
    # Adapters are merged into matrices of the layers alone.
    largest = max(tensor.size for tensor in (*layers, *(() if workload.adapts else edges)))
    whole = bool(_gathered_model(architecture, workload)) and workload.adapts
    copied = architecture.parameters if whole else largest
    size = _FP32 if workload.adapts and not whole else compute_bytes(workload)
    symbols = (
        model_symbol("n", copied, "elements that are gathered, merged or cast at once"),
        format_symbol("w", size, "bytes per element"),
    )
    temporary = measured_term("temporaries", copied * size, "n × w", symbols, _SYNC_SOURCE)
    states = lasting_terms_of(_last(step, "step"), *_SHORT_LIVED)
    beside = _beside(architecture, workload, value, "sync")
    loaded = [engine.loading] if engine else []
    explanation = "the engine gets the trained weights, one tensor at a time"
    yield Snapshot("sync", [*states, *beside, *loaded, temporary], explanation)
