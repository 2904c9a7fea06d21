"""What gpt-fast can run, and its settings."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.workload.defaults import with_defaults
from planner.workload.software.gpt_fast import GptFastSettings
from planner.workload.workload import Inference


def test_a_setting_of_its_own_names_it() -> None:
    settled = with_defaults(Inference(engine={"linear_causal_mask": True}), small_llama(), 1)
    assert settled.profile == "gpt-fast"
    assert settled.engine == GptFastSettings(linear_causal_mask=True)


def test_quantized_weights_are_refused() -> None:
    with pytest.raises(SpecError, match="gpt-fast does not run NF4"):
        with_defaults(Inference(profile="gpt-fast", weights="nf4"), small_llama(), 1)
