"""Programs of a workload are found by its profile."""

from each_record import for_each

from planner.performance.setting import TimeSetting
from planner.performance.software import engine_of, llama_cpp, megatron, training_pace, transformers
from planner.workload.parallel import Parallel
from planner.workload.software.registry import TRAINERS
from planner.workload.training import Training
from planner.workload.workload import Inference


def test_an_inference_workload_without_a_profile_runs_in_transformers() -> None:
    assert engine_of(Inference(), TimeSetting()) is transformers.ENGINE
    assert engine_of(Inference(profile="llama.cpp"), TimeSetting()) is llama_cpp.ENGINE


def test_a_training_workload_has_the_pace_of_its_profile() -> None:
    assert training_pace(Training(profile="megatron")) is megatron.PACE


@for_each("name", [name for name in TRAINERS if name != "megatron"])
def test_zero_exchanges_16_bits_of_other_programs(name: str) -> None:
    workload = Training(profile=name)
    pace = training_pace(workload)
    assert pace.exchanged_format(workload, "fp32") == "fp32"
    assert pace.exchanged_format(workload.evolve(parallel=Parallel(zero=1)), "fp32") == "bf16"
