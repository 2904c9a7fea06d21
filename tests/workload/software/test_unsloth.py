"""What Unsloth can train."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.workload.defaults import with_defaults
from planner.workload.training import Training


def test_the_loss_is_fused_with_the_output_head_by_default() -> None:
    filled = with_defaults(Training(profile="unsloth"), small_llama(), 1)
    assert isinstance(filled, Training)
    assert filled.loss == "fused-linear"


def test_fp8_is_refused() -> None:
    with pytest.raises(SpecError, match="fp8 comes from torchao, but Unsloth has its own linear layers"):
        Training(profile="unsloth", compute="fp8")


def test_the_base_model_has_double_quantization_by_default() -> None:
    filled = with_defaults(Training(profile="unsloth", method="qlora"), small_llama(), 1)
    assert filled.weights == "nf4-dq"
    assert with_defaults(Training(profile="hf", method="qlora"), small_llama(), 1).weights == "nf4"
