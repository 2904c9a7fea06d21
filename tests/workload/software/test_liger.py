"""What Liger's kernels can train."""

from small_models import small_llama

from planner.workload.defaults import with_defaults
from planner.workload.training import Training


def test_the_loss_is_fused_with_the_output_head_by_default() -> None:
    filled = with_defaults(Training(profile="liger"), small_llama(), 1)
    assert isinstance(filled, Training)
    assert filled.loss == "fused-linear"
