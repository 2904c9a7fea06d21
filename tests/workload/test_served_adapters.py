"""LoRA adapters of a server: their layers, and programs without slots."""

import pytest

from planner.errors import SpecError
from planner.workload.served_adapters import ServedAdapters
from planner.workload.workload import Inference


def test_layers_are_named_as_those_of_training():
    assert ServedAdapters(targets="q_proj, v_proj").targets == ("q_proj", "v_proj")
    assert ServedAdapters(targets=["all-linear"]).targets == "all-linear"


def test_programs_without_estimated_slots_refuse_adapters():
    with pytest.raises(SpecError, match="the slots of TensorRT-LLM for LoRA adapters are not estimated"):
        Inference(profile="tensorrt-llm", adapters={"slots": 1})
    assert Inference(profile="tensorrt-llm").adapters.slots == 0
