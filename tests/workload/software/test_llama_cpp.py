"""Settings and capabilities of llama.cpp."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.workload.defaults import with_defaults
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.workload import Inference


def test_16_bit_caches_are_kept_in_f16() -> None:
    filled = with_defaults(Inference(profile="llama.cpp", weights="Q4_0", kv_cache="bf16"), small_llama(), 1)
    assert isinstance(filled, Inference)
    assert filled.kv_cache == "fp16"


def test_sizes_are_above_zero() -> None:
    with pytest.raises(SpecError, match="n_ubatch"):
        LlamaCppSettings(n_ubatch=0)
