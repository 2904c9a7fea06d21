"""Memory-saving changes of preference tuning and reinforcement learning."""

from collections.abc import Iterator
from typing import Final

from planner.plan.advice.change import ChangeSequence, PlanChange, smaller_powers_of_two
from planner.workload.training import Training

_SLEEP: Final = (
    "TRL 1.10 (f2cd577) docs/source/reducing_memory_usage.md: vLLM's weights and cache leave the GPU meanwhile"
)
_REFERENCE: Final = "TRL 1.10 (f2cd577) grpo_config.py: with beta 0.0, the default, no reference is loaded"
_PRECOMPUTED: Final = (
    "TRL 1.10 (f2cd577) dpo_trainer.py precompute_ref_log_probs: the model is its own reference before it trains"
)
_ADAPTER: Final = "TRL 1.10 (f2cd577): with PEFT the model with its adapters off is the reference"
_FRACTION: Final = (
    "vLLM takes its fraction of the whole GPU; TRL lowered its default from 0.9 to 0.3 (huggingface/trl#2688)"
)
_SCORED: Final = "verl 0.7 log_prob_micro_batch_size_per_gpu: logits of fewer sequences are alive at once"
_TRAINER: Final = "TRL 1.10 (f2cd577) grpo_trainer.py: without use_vllm the model generates itself"

ALIGNMENT_CHANGES: Final[tuple[PlanChange, ...]] = (
    PlanChange(
        name="vLLM asleep while training",
        lever="engine",
        sentence="Let vLLM free its weights and KV cache while the model scores and trains.",
        source=_SLEEP,
        settings={"alignment": {"engine": "same-cards-asleep"}},
        applies={"alignment.method": ("ppo", "grpo"), "alignment.engine": ("same-cards",)},
        cost="time",
        slower_by_about=None,
        costs="weights are loaded again for each generation",
        keeps="the mathematical result",
    ),
    PlanChange(
        name="generation by the trainer",
        lever="engine",
        sentence="Generate with the trained model itself, without a second copy of it.",
        source=_TRAINER,
        settings={"alignment": {"engine": "none"}},
        applies={"alignment.method": ("ppo", "grpo"), "alignment.engine": ("same-cards", "same-cards-asleep")},
        cost="much-time",
        slower_by_about=None,
        costs="generation without an engine is several times slower",
    ),
    PlanChange(
        name="no reference model",
        lever="reference",
        sentence="Leave out the penalty for distance from the reference, and with it the reference.",
        source=_REFERENCE,
        settings={"alignment": {"reference": "none"}},
        applies={"alignment.method": ("grpo",), "alignment.reference": ("kept",)},
        risk="small",
    ),
    PlanChange(
        name="a reference computed before training",
        lever="reference",
        sentence="Compute the log-probabilities of the reference before training, and drop its copy.",
        source=_PRECOMPUTED,
        settings={"alignment": {"reference": "precomputed"}},
        applies={"alignment.method": ("dpo",), "alignment.reference": ("kept",)},
        keeps="the mathematical result",
    ),
    PlanChange(
        name="the model with adapters off as reference",
        lever="reference",
        sentence="Turn the adapters off for the reference instead of keeping a copy.",
        source=_ADAPTER,
        settings={"alignment": {"reference": "adapter-off"}},
        applies={"method": ("lora", "qlora"), "alignment.reference": ("kept",)},
        keeps="the mathematical result",
    ),
)


def alignment_sequences(workload: Training) -> Iterator[ChangeSequence]:
    """Yield the changes to a smaller share of an engine, and to fewer sequences that are scored together."""
    alignment = workload.alignment
    present = round(100 * alignment.engine_memory)

    def change_to_share(percent: int) -> PlanChange:
        return PlanChange(
            name=f"{percent} % of the GPU for vLLM",
            lever="engine share",
            sentence="Leave vLLM less memory, for fewer completions at once.",
            source=_FRACTION,
            settings={"alignment": {"engine_memory": percent / 100}},
            cost="time",
            slower_by_about=None,
            costs="fewer completions are generated at once",
            keeps="the mathematical result",
        )

    def change_to_scored(sequences: int) -> PlanChange:
        return PlanChange(
            name=f"log-probabilities of {sequences:,} at a time",
            lever="scored",
            sentence="Compute log-probabilities of fewer sequences at a time.",
            source=_SCORED,
            settings={"alignment": {"score_batch": sequences}},
            keeps="the mathematical result",
        )

    if alignment.shares_card:
        smaller = [percent for percent in range(present - present % 10, 0, -10) if percent < present]
        yield ChangeSequence("engine share", smaller, change_to_share)
    if alignment.generates:
        yield ChangeSequence("scored", smaller_powers_of_two(alignment.score_batch or 1, 1), change_to_scored)
