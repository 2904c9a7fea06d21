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


@pytest.mark.parametrize(
    ("written", "layers"), [("0-2, 5", (0, 1, 2, 5)), ("", ()), ((3, 1, 3), (1, 3)), ("7", (7,)), ([0], (0,))]
)
def test_layers_are_given_by_number_and_range(written, layers):
    settings = Inference(profile="llama.cpp", engine={"cpu_moe_layers": written}).engine
    assert settings.cpu_moe_layers == layers
    assert ("cpu_moe_layers" in settings.explicit_names()) == bool(layers)
    assert [layer for layer in range(9) if settings.has_experts_in_ram(layer)] == list(layers)
    assert settings.keeps_experts_in_ram == bool(layers)


@pytest.mark.parametrize("written", ["a", "3-", "-3", "5-2", "0-100000", "1-2-3", (-1,), (100_000,)])
def test_layers_that_are_none_are_refused(written):
    with pytest.raises(SpecError) as refused:
        Inference(profile="llama.cpp", engine={"cpu_moe_layers": written})
    assert refused.value.field.startswith("engine.cpu_moe_layers")


def test_the_first_layers_are_those_below_the_number():
    settings = LlamaCppSettings(n_cpu_moe=2)
    assert [layer for layer in range(9) if settings.has_experts_in_ram(layer)] == [0, 1]
    assert settings.explicit_names() == ("n_cpu_moe",)
    assert not LlamaCppSettings(n_cpu_moe=0).keeps_experts_in_ram
