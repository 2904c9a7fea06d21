"""Training speed of Megatron-LM."""

from planner.memory.training.saved import SavedPerToken
from planner.performance.software import training_pace
from planner.workload.training import Training

PACE = training_pace(Training(profile="megatron"))


def test_gradients_are_exchanged_in_16_bits_without_sharding() -> None:
    assert PACE.exchanged_format(Training(profile="megatron", compute="bf16"), "fp32") == "bf16"


def test_all_reduces_overlap_with_products() -> None:
    assert PACE.hides_tensor_exchange()
    assert not training_pace(Training(profile="hf")).hides_tensor_exchange()


def test_fused_attention_moves_no_scores() -> None:
    ledger = SavedPerToken(scores=7, linear=5) if "linear" in SavedPerToken._fields else SavedPerToken(scores=7)
    assert PACE.moved_activations(ledger) == ledger._replace(scores=0)
