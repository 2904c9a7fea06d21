"""The models besides the trained one: reference, reward and value model, and the engine that generates completions."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.inference.timeline import inference_timeline
from planner.memory.parallel.placing import EngineCard
from planner.memory.phases import AnyTerm, PhaseSnapshots, Snapshot
from planner.memory.result import PhaseName, Term, TermPart
from planner.memory.software import serving_memory
from planner.memory.terms import library_symbol, term
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture, Tensor
from planner.units import ceil_div
from planner.workload.alignment import ROLLOUT_ENGINE, Alignment, aligned_lengths
from planner.workload.defaults import default_weight_format, with_defaults
from planner.workload.formats import is_plain, product_format
from planner.workload.software.registry import DEFAULT
from planner.workload.software.vllm import VllmSettings
from planner.workload.training import Training
from planner.workload.workload import Inference

_SHARDED: Final = 3
"""ZeRO stage from which the parameters of frozen models are sharded, too."""
_SOURCE: Final = (
    "TRL 1.10 (f2cd577): grpo_trainer.py and dpo_trainer.py load the reference as the model itself, "
    "experimental/ppo/ppo_trainer.py adds a reward model and trains policy and value model by one optimizer"
)
_STATES: Final = ("weights", "master_weights", "adapters", "optimizer_states")
_VALUE_LABEL: Final = 1


class ModelBytes(NamedTuple):
    """A model besides the trained one: what it is, and its bytes at a moment."""

    name: str
    bytes: int


def other_models_term(models: Sequence[ModelBytes]) -> Term | None:
    """Return the memory of models besides the trained one, None without any."""
    held = [each for each in models if each.bytes]
    if not held:
        return None
    return term(
        "other_models",
        sum(each.bytes for each in held),
        " + ".join(f"M{place}" for place, _ in enumerate(held, 1)),
        tuple(library_symbol(f"M{place}", each.bytes, f"bytes: {each.name}") for place, each in enumerate(held, 1)),
        _SOURCE,
        certainty="measured",
        parts=tuple(TermPart(each.name, each.bytes, f"{each.bytes:,}", _SOURCE) for each in held),
    )


def frozen_models(architecture: Architecture, workload: Training) -> list[ModelBytes]:
    """Return the frozen models on a card: the reference, if a copy is kept, and a reward model.

    **Formula**: bytes of the trained model's weights in its format, for the reward model in proportion to its
    parameters; over the cards that share parameters in ZeRO-3.
    """
    alignment, parallel = workload.alignment, workload.parallel
    shards = parallel.state_shards if parallel.zero == _SHARDED else 1
    whole = weights_term(architecture, workload.weights or "fp32").bytes
    found = []
    if alignment.reference == "kept":
        found.append(ModelBytes("weights of the reference model", ceil_div(whole, shards)))
    if alignment.generates and alignment.reward == "model":
        size = whole * (alignment.reward_parameters or architecture.parameters) // architecture.parameters
        found.append(ModelBytes("weights of the reward model", ceil_div(size, shards)))
    return found


def value_network(architecture: Architecture) -> Architecture:
    """Return the value model of `architecture`: the same network with one output, as sequence classifiers have."""
    head = Tensor(name="score", shape=(_VALUE_LABEL, architecture.hidden), role="linear")
    return architecture.evolve(head=(head,), tied_head=False)


class ValueModel(NamedTuple):
    """The value model of PPO: its lasting bytes, and those at each phase of a training step."""

    lasting: int
    by_phase: dict[PhaseName, int]

    def at(self, phase: PhaseName) -> list[ModelBytes]:
        """Return the value model's bytes at `phase` of a step."""
        return [
            ModelBytes("weights and optimizer states of the value model", self.lasting),
            ModelBytes("gradients and activations of the value model", self.by_phase.get(phase, 0)),
        ]


def value_model(timeline: PhaseSnapshots) -> ValueModel:
    """Return the value model whose training step has this `timeline`.

    **Formula**: in forward pass and loss its activations besides those of the policy; in the policy's backward pass,
    which comes after its own, all its gradients; in the optimizer step all that this step holds.
    """
    step = _largest(timeline, "step")
    sizes = {each.name: 0 for each in step.terms}
    for each in step.terms:
        sizes[each.name] += each.bytes
    lasting = sum(size for name, size in sizes.items() if name in _STATES)
    activations = max(
        sum(each.bytes for each in one.terms if each.name == "activations")
        for one in timeline.snapshots
        if one.name in ("forward", "loss")
    )
    return ValueModel(
        lasting,
        {
            "forward": activations,
            "loss": activations,
            "backward": sizes.get("gradients", 0),
            "step": sizes.get("gradients", 0) + sizes.get("temporaries", 0),
        },
    )


def _largest(timeline: PhaseSnapshots, phase: PhaseName) -> Snapshot:
    return max((one for one in timeline.snapshots if one.name == phase), key=lambda one: one.total)


def value_training(workload: Training) -> Training:
    """Return the training of the value model, with the loss of one output per token: as the policy's, or in full.

    **Source**: OpenRLHF 0.11 gives adapters to actor and critic alike (`--ds.lora.rank`), as ms-swift does; TRL 1.10
    ppo_trainer.py to the policy alone, and verl 0.9 to the critic by `critic.model.lora_rank`.
    """
    plain = workload.replaced(alignment=Alignment(), loss="full-logits")
    if not workload.adapts or workload.alignment.value == "as-policy":
        return plain
    weights = default_weight_format(plain.replaced(method="full"))
    return plain.replaced(method="full", lora=None, weights=weights, trainable=())


def lasting_terms_of(snapshot: Snapshot, *left_out: str) -> list[AnyTerm]:
    """Return the terms of `snapshot` but those called `left_out`."""
    return [each for each in snapshot.terms if each.name not in left_out]


_STEP_TOKENS: Final = 4_096
"""Tokens of a step of the engine: `max_num_batched_tokens` in TRL 1.10 generation/vllm_generation.py."""
_ENGINE_SOURCE: Final = (
    "vLLM takes its memory fraction of the whole GPU, whatever the trainer holds; TRL 1.10 (f2cd577) "
    "generation/vllm_generation.py: sleep(level=2) frees weights and KV cache, wake_up(['weights']) before a sync"
)
_SIXTEEN_BITS: Final = ("bf16", "fp16")


def rollout_workload(architecture: Architecture, workload: Training, sequences: int) -> Inference:
    """Return the generation of `sequences` completions of `workload` (defaults filled in) as an inference workload.

    The trainer itself multiplies with the weights that it trains; an engine has a copy in the compute precision, or
    in the format of quantized weights.

    **Source**: TRL 1.10 (f2cd577) generation/vllm_generation.py: `max_num_seqs` is the sequences of a generation,
    `max_num_batched_tokens` 4,096.
    """
    lengths = aligned_lengths(workload.alignment, workload.sequence_length or 1)
    by_engine = workload.alignment.engine != "none"
    compute = product_format(workload.compute)
    weights = workload.weights or compute
    settings = VllmSettings(
        memory_utilization=workload.alignment.engine_memory,
        max_num_seqs=sequences,
        max_num_batched_tokens=max(_STEP_TOKENS, sequences),
    )
    asked = Inference(
        weights=compute if is_plain(weights) else weights,
        compute=compute if compute in _SIXTEEN_BITS else "fp32",
        batch=sequences,
        context_length=lengths.prompt + lengths.completion,
        prompt_length=lengths.prompt,
        kv_cache=compute if compute in _SIXTEEN_BITS else "fp32",
        attention=workload.attention,
        profile=ROLLOUT_ENGINE if by_engine else DEFAULT,
        **({"engine": settings} if by_engine else {}),
    )
    settled = with_defaults(asked, architecture, 1)
    assert isinstance(settled, Inference)
    return settled


class EngineShare(NamedTuple):
    """Memory of an inference engine on the card that trains: while it generates, is loaded with weights, and waits.

    `note` says what its cache has room for, `refusal` why it does not start.
    """

    generating: Term
    loading: Term
    waiting: Term
    note: str
    refusal: str


def engine_share(
    architecture: Architecture, workload: Training, card: EngineCard | None, *, shares_weights: bool
) -> EngineShare:
    """Return the memory of vLLM beside training on `card`, None without a chosen card.

    **Formula**: generating u · C, at least what one step and the weights need; asleep the graphs and tables alone;
    awake throughout as while generating.

    **Assumes** that weights which trainer and engine share count with the trainer.
    """
    alignment = workload.alignment
    generation = rollout_workload(
        architecture, workload, alignment.sequences(workload.micro_batch) * workload.gradient_accumulation
    )
    timeline = serving_memory(ROLLOUT_ENGINE).timeline(architecture, generation, card.engine if card else None)
    peak = timeline.peak()
    parts = {each.name: each.bytes for each in peak.terms}
    weights, cache = parts.get("weights", 0), parts.get("kv_cache", 0) + parts.get("state", 0)
    outside = peak.total - weights - cache
    held = peak.total
    note, refusal = f"vLLM holds what the {generation.batch:,} completions of a step need.", ""
    if timeline.pool and card and card.usable_bytes:
        pool = timeline.pool.capacity(card.usable_bytes)
        cache = pool.bytes
        held = max(pool.reserved_bytes, weights + outside)
        percent = f"{100 * alignment.engine_memory:.3g} % of the GPU"
        note = (
            f"vLLM takes {percent}: room for {int(pool.sequences):,} "
            f"completions at once, of {generation.batch:,} in a step."
        )
        if pool.sequences < 1:
            refusal = f"vLLM does not start with {percent}: raise the engine's memory"
            note = f"vLLM does not start with {percent}: its weights and one completion need more."
    owned = 0 if shares_weights else weights
    held -= weights - owned
    tables = sum(each.bytes for each in peak.terms if each.name == "buffers")
    generating = _engine_term(owned, held - owned, "weights, KV cache and the largest step")
    awake = alignment.engine == "same-cards"
    return EngineShare(
        generating=generating,
        loading=generating if awake else _engine_term(owned, tables, "weights, tables and CUDA graphs"),
        waiting=generating if awake else _engine_term(0, tables, "tables and CUDA graphs of the engine asleep"),
        note=note,
        refusal=refusal,
    )


def _engine_term(weights: int, other: int, meaning: str) -> Term:
    """Return the memory of an engine that holds `weights` and `other` bytes."""
    parts = [("weights of the engine", weights), (meaning if not weights else "cache, step and tables", other)]
    return term(
        "engine",
        weights + other,
        "W + E",
        (
            library_symbol("W", weights, "bytes of the engine's own weights"),
            library_symbol("E", other, f"bytes besides: {meaning}"),
        ),
        _ENGINE_SOURCE,
        certainty="measured",
        parts=tuple(TermPart(name, size, f"{size:,}", _ENGINE_SOURCE) for name, size in parts if size),
    )


def own_generation(architecture: Architecture, workload: Training) -> list[AnyTerm]:
    """Return what the trainer itself holds at the peak of generating a step's completions, without the weights."""
    sequences = workload.alignment.sequences(workload.micro_batch) * workload.gradient_accumulation
    timeline: PhaseSnapshots = inference_timeline(architecture, rollout_workload(architecture, workload, sequences))
    peak = max(timeline.snapshots, key=lambda one: one.total)
    return [each for each in peak.terms if each.name != "weights"]


def compute_bytes(workload: Training) -> int:
    """Return the bytes per element of the compute precision."""
    return ELEMENT_BYTES[product_format(workload.compute)]
