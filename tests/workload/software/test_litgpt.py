"""What LitGPT can train."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.workload.defaults import with_defaults
from planner.workload.training import Training


def test_several_cards_cannot_be_estimated() -> None:
    with pytest.raises(SpecError, match="LitGPT cannot be estimated on several GPUs"):
        with_defaults(Training(profile="litgpt"), small_llama(), 2)


def test_a_quantized_base_model_computes_in_16_bits_throughout() -> None:
    assert Training(profile="litgpt", method="qlora", compute="bf16").compute == "bf16"
    with pytest.raises(SpecError, match="qlora cannot compute in amp-bf16"):
        Training(profile="litgpt", method="qlora", compute="amp-bf16")
