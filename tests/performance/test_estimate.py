"""The time of a workload is that of its task: of a training step, or of a request."""

from small_models import bundled, small_llama

from planner.performance.estimate import estimate_time
from planner.performance.inference.estimate import inference_time
from planner.performance.setting import TimeSetting
from planner.performance.training.estimate import training_time
from planner.workload.defaults import with_defaults
from planner.workload.training import Training
from planner.workload.workload import Inference

CARDS = ((bundled().hardware.gpu("rtx-4090"), 1),)


def test_training_is_timed_by_its_step() -> None:
    workload = with_defaults(Training(), small_llama(), 1)
    assert isinstance(workload, Training)
    found = estimate_time(small_llama(), workload, CARDS)
    assert found == training_time(small_llama(), workload, CARDS, TimeSetting())
    assert (found.task, found.kind) == ("training", "step")


def test_inference_is_timed_by_its_request() -> None:
    workload = with_defaults(Inference(), small_llama(), 1)
    assert isinstance(workload, Inference)
    found = estimate_time(small_llama(), workload, CARDS)
    assert found == inference_time(small_llama(), workload, CARDS)
    assert (found.task, found.kind) == ("inference", "service")
