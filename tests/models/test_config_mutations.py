"""Whatever a configuration holds, reading it gives a network or says why not."""

from typing import Any

import pytest
from config_outcomes import read_or_refuse
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.models.catalog import load_models
from planner.models.readers.registry import readers
from planner.paths import catalog_dir

CONFIGS = tuple(record.config for record in load_models(catalog_dir() / "models").records)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-2, max_value=300)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["gelu", "full_attention", "auto", "10" * 10])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = sorted(
    {name for config in CONFIGS for name in config}
    | {"layer_types", "quantization_config", "torch_dtype", "text_config", "attention_bias", "use_sliding_window"}
)


@given(st.sampled_from(CONFIGS), st.dictionaries(st.sampled_from(NAMES), VALUES, min_size=1, max_size=4))
def test_a_mutated_configuration_is_read_or_refused(config: dict[str, Any], changes: dict[str, Any]) -> None:
    read_or_refuse({**config, **changes})


@given(st.sampled_from(CONFIGS), st.data())
def test_a_configuration_without_some_fields_is_read_or_refused(config: dict[str, Any], data: st.DataObject) -> None:
    kept = data.draw(st.sets(st.sampled_from(sorted(config))))
    read_or_refuse({name: config[name] for name in kept})


@pytest.mark.fuzz
@settings(max_examples=1000)
@given(
    st.sampled_from(CONFIGS),
    st.sampled_from(sorted(readers())),
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8),
)
def test_any_type_with_any_fields_is_read_or_refused(
    config: dict[str, Any], model_type: str, changes: dict[str, Any]
) -> None:
    read_or_refuse({**config, "model_type": model_type, **changes})
