"""What AutoAWQ can run."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


def test_its_cache_is_in_fp16_and_its_weights_in_awq() -> None:
    settled = with_defaults(Inference(profile="autoawq"), small_llama(), 1)
    assert (settled.kv_cache, settled.weights) == ("fp16", "awq4-128")
    smaller_groups = with_defaults(Inference(profile="autoawq", weights="awq4-64"), small_llama(), 1)
    assert smaller_groups.weights == "awq4-64"


def test_other_formats_are_refused() -> None:
    with pytest.raises(SpecError, match="AutoAWQ does not run GPTQ"):
        with_defaults(Inference(profile="autoawq", weights="gptq4-128"), small_llama(), 1)
