"""Preference tuning and reinforcement learning of a language model: DPO, PPO and GRPO, beside what trains it."""

from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from planner.base import Spec
from planner.workload.presentation import FieldContext, Presentation, doubling, generates_text

AlignmentMethod = Literal["none", "dpo", "ppo", "grpo"]
Reference = Literal["kept", "adapter-off", "precomputed", "none"]
Reward = Literal["function", "model"]
ValueTraining = Literal["as-policy", "full"]
RolloutEngine = Literal["none", "same-cards", "same-cards-asleep", "other-cards"]

ALIGNMENT_TITLES: Final[dict[AlignmentMethod, str]] = {
    "none": "Next token (supervised)",
    "dpo": "DPO (preferences)",
    "ppo": "PPO (rewards, value model)",
    "grpo": "GRPO (rewards in groups)",
}
DEFAULT_COMPLETION: Final = 512
"""Tokens of a completion: TRL's default `max_completion_length`."""
ROLLOUT_ENGINE: Final = "vllm"
"""The engine that generates completions besides the trainer itself."""
ON_TRAINING_CARDS: Final = ("same-cards", "same-cards-asleep")
"""Places of that engine on the cards that train."""
_REFERENCE_BRIEFS: Final[dict[Reference, str]] = {
    "kept": "reference kept",
    "adapter-off": "reference by adapters off",
    "precomputed": "reference computed first",
    "none": "no reference",
}
_ENGINE_BRIEFS: Final[dict[RolloutEngine, str]] = {
    "none": "",
    "same-cards": "vLLM beside it",
    "same-cards-asleep": "vLLM asleep beside it",
    "other-cards": "vLLM on other GPUs",
}
_PAIR: Final = 2
"""Sequences in a pair of preferences: the chosen and the rejected one."""


def _aligns(context: FieldContext) -> bool:
    return bool(context.workload.alignment.method != "none")


def _generates(context: FieldContext) -> bool:
    return bool(context.workload.alignment.generates)


def _shares_card(context: FieldContext) -> bool:
    return bool(context.workload.alignment.shares_card)


def _has_reward_model(context: FieldContext) -> bool:
    return _generates(context) and bool(context.workload.alignment.reward == "model")


class Alignment(Spec):
    """Preference tuning or reinforcement learning of the trained model, and the other models and engine that it needs.

    `with_defaults` fills in fields that are `None`. The prompt has the tokens of the sequence that the completion
    leaves.
    """

    method: Annotated[
        AlignmentMethod,
        Field(title="Objective", description="objective: none (next token), dpo, ppo or grpo"),
        Presentation(
            "--align",
            "alignment",
            explanation="DPO compares two given answers; PPO and GRPO generate answers and score them.",
            choices=ALIGNMENT_TITLES,
            brief=lambda method: "Next token" if method == "none" else method.upper(),
            leads=True,
            shown_when=generates_text,
        ),
    ] = "none"
    completion_length: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000_000,
            title="Completion length",
            description="tokens of the sequence that are generated or compared; the rest is the prompt",
        ),
        Presentation(
            "--completion",
            "alignment",
            default="512, or half of the sequence",
            explanation="Log-probabilities need the logits of these tokens.",
            unit="tokens",
            stops=doubling(128, 32_768),
            brief="completions of {}",
            shown_when=_aligns,
        ),
    ] = None
    group: Annotated[
        int,
        Field(ge=1, le=100_000, title="Group size", description="GRPO: completions of each prompt"),
        Presentation(
            "--group",
            "alignment",
            explanation="Each optimizer step trains whole groups: micro-batch × accumulation steps × replicas.",
            stops=doubling(2, 64),
            brief="groups of {}",
            shown_when=lambda context: context.workload.alignment.method == "grpo",
        ),
    ] = 8
    reference: Annotated[
        Reference | None,
        Field(
            title="Reference model",
            description="reference model: kept, adapter-off, precomputed (DPO) or none",
        ),
        Presentation(
            "--reference",
            "alignment",
            default="none for GRPO; else the model without adapters, or a copy that is kept",
            explanation="A copy that is kept takes as much as the weights; with its adapters off, the model is the "
            "reference itself.",
            choices={
                "kept": "Kept on the GPU",
                "adapter-off": "The model with adapters off",
                "precomputed": "Computed before training",
                "none": "None",
            },
            brief=lambda reference: _REFERENCE_BRIEFS[reference],
            shown_when=_aligns,
        ),
    ] = None
    reward: Annotated[
        Reward,
        Field(title="Reward", description="reward of a completion: function, or model"),
        Presentation(
            "--reward",
            "alignment",
            choices={"function": "A function", "model": "A reward model"},
            brief=lambda reward: "reward model" if reward == "model" else "",
            shown_when=_generates,
        ),
    ] = "function"
    reward_parameters: Annotated[
        int | None,
        Field(
            ge=1, le=10**13, title="Reward model's parameters", description="number of parameters of the reward model"
        ),
        Presentation(
            group="alignment",
            default="as many as the trained model",
            placeholder="as the trained model",
            shown_when=_has_reward_model,
        ),
    ] = None
    value: Annotated[
        ValueTraining,
        Field(title="Value model", description="PPO: value model trained as the policy, or in full"),
        Presentation(
            group="alignment",
            explanation="OpenRLHF and ms-swift give the value model adapters, too; TRL until 1.10 and verl train it in "
            "full unless told otherwise.",
            choices={"as-policy": "Trained as the policy", "full": "Trained in full"},
            shown_when=lambda context: context.workload.alignment.method == "ppo" and context.workload.adapts,
        ),
    ] = "as-policy"
    engine: Annotated[
        RolloutEngine,
        Field(
            title="Generation",
            description="what generates: the trainer (none), or vLLM on same-cards, same-cards-asleep or other-cards",
        ),
        Presentation(
            "--rollout",
            "alignment",
            explanation="vLLM on the same GPUs reserves its share throughout, or frees most of it while it sleeps.",
            choices={
                "none": "The trainer itself",
                "same-cards": "vLLM on the same GPUs",
                "same-cards-asleep": "vLLM on the same GPUs, asleep while training",
                "other-cards": "vLLM on other GPUs",
            },
            brief=lambda engine: _ENGINE_BRIEFS[engine],
            shown_when=_generates,
        ),
    ] = "none"
    engine_memory: Annotated[
        float,
        Field(
            gt=0, le=1, title="Engine's memory", description="fraction of GPU memory that vLLM takes beside training"
        ),
        Presentation(
            "--engine-memory",
            "alignment",
            metavar="SHARE",
            explanation="TRL's default is 0.3 since version 0.18; 0.9 leaves no room for training.",
            stops=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
            brief="with {} of the GPU",
            shown_when=_shares_card,
        ),
    ] = 0.3
    engine_cards: Annotated[
        int,
        Field(ge=1, le=100_000, title="Engine's GPUs", description="number of further GPUs that generate completions"),
        Presentation(
            group="alignment",
            explanation="They are paid for as well.",
            stops=doubling(1, 64),
            shown_when=lambda context: _generates(context) and context.workload.alignment.engine == "other-cards",
        ),
    ] = 1
    score_batch: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            title="Scoring batch size",
            description="sequences whose log-probabilities are computed together without gradients",
        ),
        Presentation(
            group="alignment",
            default="the micro-batch size",
            explanation="Logits of all of them are alive at once.",
            placeholder="the micro-batch size",
            stops=doubling(1, 256),
            brief="{} scored at once",
            shown_when=lambda context: _generates(context) and bool(context.workload.alignment.scoring_passes),
        ),
    ] = None

    @property
    def generates(self) -> bool:
        """Return whether completions are generated during training, as in PPO and GRPO."""
        return self.method in ("ppo", "grpo")

    @property
    def unused(self) -> frozenset[str]:
        """The fields that have no effect beside the others."""
        if self.method == "none":
            return frozenset(Alignment.model_fields)
        used = {
            "group": self.method == "grpo",
            "reward": self.generates,
            "reward_parameters": self.generates and self.reward == "model",
            "value": self.method == "ppo",
            "engine": self.generates,
            "engine_memory": self.shares_card,
            "engine_cards": self.generates and self.engine == "other-cards",
            "score_batch": self.generates and self.scoring_passes > 0,
        }
        return frozenset(name for name, has_effect in used.items() if not has_effect)

    @property
    def shares_card(self) -> bool:
        """Return whether an inference engine runs on the cards that train."""
        return self.generates and self.engine in ON_TRAINING_CARDS

    @property
    def scores_reference(self) -> bool:
        """Return whether a reference computes log-probabilities while training runs."""
        return self.reference in ("kept", "adapter-off")

    @property
    def scoring_passes(self) -> int:
        """Return how many models read all sequences of a step without gradients.

        **Source**: TRL 1.10 grpo_trainer.py: the policy itself scores what an engine generated (importance sampling),
        and nothing of what it generated itself for the step that follows.
        """
        policy = self.generates and (self.engine != "none" or self.method == "ppo")
        reward = self.generates and self.reward == "model"
        return sum((policy, self.scores_reference, reward, self.method == "ppo"))

    @property
    def further_cards(self) -> int:
        """Return the number of cards besides those that train."""
        return self.engine_cards if self.generates and self.engine == "other-cards" else 0

    @property
    def completions_per_prompt(self) -> int:
        """Return the completions that a step trains for each prompt."""
        return self.group if self.method == "grpo" else 1

    def sequences(self, micro_batch: int) -> int:
        """Return the sequences in a forward pass of `micro_batch`, which counts pairs in DPO."""
        return micro_batch * (_PAIR if self.method == "dpo" else 1)

    def settled(self, *, adapts: bool, sequence_length: int, micro_batch: int) -> "Alignment":
        """Return these settings with unset ones filled in for an objective.

        **Source**: TRL 1.10 (f2cd577): `GRPOConfig.beta` 0.0 needs no reference; `DPOTrainer` and `PPOTrainer` keep
        one, or turn the adapters off.
        """
        completion = self.completion_length or min(DEFAULT_COMPLETION, sequence_length // 2)
        usual: Reference = "none" if self.method == "grpo" else "adapter-off" if adapts else "kept"
        return self.evolve(
            completion_length=max(min(completion, sequence_length - 1), 1),
            reference=self.reference or usual,
            score_batch=self.score_batch or micro_batch,
        )


class AlignedLengths(NamedTuple):
    """Tokens of prompt and completion of one sequence."""

    prompt: int
    completion: int


def aligned_lengths(alignment: Alignment, sequence_length: int) -> AlignedLengths:
    """Return the tokens of prompt and completion in sequences of `sequence_length`; `alignment` is settled."""
    completion = alignment.completion_length or 0
    return AlignedLengths(max(sequence_length - completion, 1), completion)
