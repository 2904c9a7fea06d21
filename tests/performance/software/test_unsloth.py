"""Training speed of Unsloth."""

from planner.performance.software import training_pace
from planner.workload.parallel import Parallel
from planner.workload.training import Training


def test_the_layers_are_fused_and_zero_exchanges_16_bits() -> None:
    workload = Training(profile="unsloth")
    pace = training_pace(workload)
    assert pace.fused is True
    assert pace.exchanged_format(workload, "fp32") == "fp32"
    assert pace.exchanged_format(workload.evolve(parallel=Parallel(zero=1)), "fp32") == "bf16"
