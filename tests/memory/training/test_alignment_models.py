"""Frozen models and the value model beside the policy."""

import pytest
from aligned_training import NETWORK, WEIGHTS, bytes_of, estimated, grpo

from planner.memory.training.alignment_models import value_network


@pytest.mark.parametrize(
    ("method", "reference", "copies"),
    [("full", "kept", 1), ("full", "none", 0), ("lora", "adapter-off", 0), ("lora", "kept", 1)],
)
def test_a_reference_takes_as_much_as_the_weights_unless_adapters_are_turned_off(
    method: str, reference: str, copies: int
) -> None:
    memory = estimated(method=method, **grpo(reference=reference))
    assert bytes_of(memory, "step", "other_models") == copies * WEIGHTS * 2
    assert bytes_of(memory, "forward", "other_models") == copies * WEIGHTS * 2


def test_a_reward_model_counts_by_its_parameters() -> None:
    same, larger = (
        bytes_of(estimated(**grpo(reward="model", reward_parameters=size)), "score", "other_models")
        for size in (None, 3 * WEIGHTS)
    )
    assert (same, larger) == (WEIGHTS * 2, WEIGHTS * 6)


def test_ppo_trains_a_value_model_beside_the_policy() -> None:
    memory = estimated(alignment={"method": "ppo", "reference": "none"})
    own = value_network(NETWORK).parameters * 2
    assert own == (WEIGHTS - 32_000 * 4096 + 4096) * 2
    assert bytes_of(memory, "score", "other_models") == 3 * own
    # Its gradients exist before the policy's, and its activations with those of the policy.
    assert bytes_of(memory, "backward", "other_models") == 4 * own
    assert 3 * own < bytes_of(memory, "loss", "other_models") < 4 * own
    assert bytes_of(memory, "step", "other_models") >= 4 * own


def test_the_value_model_has_adapters_as_the_policy_or_is_trained_in_full() -> None:
    own = value_network(NETWORK).parameters * 2
    adapted, full = (
        bytes_of(estimated(method="lora", alignment={"method": "ppo", "value": value}), "score", "other_models")
        for value in ("as-policy", "full")
    )
    assert own < adapted < 1.1 * own
    assert full == 3 * own
