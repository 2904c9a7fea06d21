"""Settings of preference tuning and reinforcement learning, with their defaults."""

import pytest
from small_models import llama, small_llama

from planner.errors import SpecError
from planner.workload.alignment import Alignment, aligned_lengths
from planner.workload.defaults import with_defaults
from planner.workload.fields import fields_of
from planner.workload.presentation import FieldContext
from planner.workload.rules import check_given, in_whole_groups
from planner.workload.training import Training


@pytest.mark.parametrize(
    ("objective", "method", "reference", "loss"),
    [
        ("none", "lora", None, "full-logits"),
        ("grpo", "lora", "none", "chunked"),
        ("dpo", "lora", "adapter-off", "chunked"),
        ("dpo", "full", "kept", "chunked"),
        ("ppo", "full", "kept", "full-logits"),
    ],
)
def test_unset_fields_follow_the_objective(objective, method, reference, loss):
    asked = Training(method=method, micro_batch=4, gradient_accumulation=2, alignment={"method": objective})
    workload = with_defaults(asked, llama(), 1)
    assert (workload.alignment.reference, workload.loss) == (reference, loss)
    assert workload.alignment.score_batch == (None if objective == "none" else 4)


def test_a_reward_is_asked_for_only_where_completions_are_generated():
    reward = fields_of("training")["alignment.reward"]
    for objective, shown in (("grpo", True), ("ppo", True), ("dpo", False), ("none", False)):
        workload = with_defaults(Training(gradient_accumulation=8, alignment={"method": objective}), llama(), 1)
        assert reward.is_shown(FieldContext(workload, llama())) is shown, objective


def test_a_completion_is_512_tokens_or_half_of_the_sequence():
    def tokens(length, **alignment):
        alignment = {"method": "dpo"} | alignment
        workload = with_defaults(Training(sequence_length=length, alignment=alignment), llama(), 1)
        return aligned_lengths(workload.alignment, length)

    assert tokens(2048) == (1536, 512)
    assert tokens(600) == (300, 300)
    assert tokens(2048, completion_length=2000) == (48, 2000)
    # In estimates a prompt keeps one token, as in curves over the sequence length.
    assert tokens(64, completion_length=64) == (1, 63)
    assert tokens(1) == (1, 1)
    with pytest.raises(SpecError, match="leaves no prompt in sequences of 64"):
        check_given(Training(sequence_length=64, alignment={"method": "dpo", "completion_length": 64}), None)


def test_a_network_that_generates_no_text_is_not_aligned(catalog):
    with pytest.raises(SpecError, match="compares generated text"):
        with_defaults(Training(alignment={"method": "dpo"}), catalog.models.model("google-bert/bert-base-uncased"), 1)


def test_what_a_pair_a_group_and_an_engine_count():
    pair, group = Alignment(method="dpo"), Alignment(method="grpo", group=4, engine="other-cards", engine_cards=3)
    assert (pair.sequences(2), pair.generates, pair.completions_per_prompt, pair.further_cards) == (4, False, 1, 0)
    assert (group.sequences(2), group.generates, group.completions_per_prompt, group.further_cards) == (2, True, 4, 3)
    assert not group.shares_card
    assert Alignment(method="ppo", engine="same-cards").shares_card


def test_groups_fill_the_sequences_of_all_replicas():
    one = Training(alignment={"method": "grpo", "group": 8}, micro_batch=2, gradient_accumulation=2)
    with pytest.raises(SpecError, match="4 completions, which is not a multiple of the group size 8"):
        with_defaults(one, small_llama(), 1)
    assert with_defaults(one, small_llama(), 2)
    assert in_whole_groups(one, 1).gradient_accumulation == 4
    assert in_whole_groups(one, 2) == one


def test_fields_of_other_objectives_have_no_effect():
    assert Alignment().unused == set(Alignment.model_fields)
    pairs = {"group", "reward", "reward_parameters", "value", "engine", "engine_memory", "engine_cards", "score_batch"}
    assert Alignment(method="dpo").unused == pairs
    shared = Alignment(method="grpo", reward="model", engine="same-cards")
    assert shared.unused == {"value", "engine_cards"}
    assert Alignment(method="ppo", engine="other-cards").unused == {"group", "reward_parameters", "engine_memory"}


@pytest.mark.parametrize("profile", ["hf", "liger", "unsloth", "deepspeed"])
def test_programs_that_align_are_known(profile):
    asked = Training(profile=profile, gradient_accumulation=8, alignment={"method": "grpo"})
    assert asked.alignment.generates
