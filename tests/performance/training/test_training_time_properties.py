"""What holds for every training step, whatever is trained on whatever cards."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import MIXTRAL, llama, other, small_llama

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.estimate import estimate_time
from planner.performance.result import TimeResult
from planner.performance.setting import TimeSetting
from planner.plan.catalog import load_catalog
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.training import Training

CARDS = (
    "h100-sxm5-80gb",
    "a100-sxm4-80gb",
    "rtx-4090",
    "quadro-rtx-8000",
    "rtx-4060",
    "instinct-mi300x",
    "b200-sxm-180gb",
)
MODELS = (llama, small_llama, lambda: other("mixtral", MIXTRAL))

works = st.fixed_dictionaries(
    {
        "micro_batch": st.integers(1, 32),
        "sequence_length": st.integers(1, 8192),
        "gradient_accumulation": st.integers(1, 16),
        "compute": st.sampled_from(["bf16", "fp16", "amp-bf16", "amp-fp16", "fp32", "tf32"]),
        "attention": st.sampled_from(["sdpa", "eager"]),
        "activation_checkpointing": st.sampled_from(["none", "selective", "full"]),
    }
)
settings_ = st.builds(TimeSetting, compiled=st.booleans(), parameter_server=st.booleans())
models = st.sampled_from(MODELS).map(lambda build: build())
names = st.sampled_from(CARDS)


@cache
def card(name: str) -> Gpu:
    return next(gpu for gpu in load_catalog().hardware.gpus if gpu.id == name)


def timed(model: Architecture, name: str, count: int, work: dict[str, Any], setting: TimeSetting) -> TimeResult:
    workload = with_defaults(Training(**work), model, count)
    return estimate_time(model, workload, ((card(name), count),), setting)


def seconds(model: Architecture, name: str, count: int, work: dict[str, Any], setting: TimeSetting) -> float:
    found = timed(model, name, count, work, setting).seconds
    assert found is not None
    return found


@settings(max_examples=60)
@given(models, names, st.sampled_from([1, 2, 8, 16, 64]), st.integers(0, 3), works, settings_)
def test_the_parts_sum_to_the_whole(
    model: Architecture, name: str, count: int, zero: int, work: dict[str, Any], setting: TimeSetting
) -> None:
    found = timed(model, name, count, work | {"parallel": Parallel(zero=zero)}, setting)
    assert found.seconds == pytest.approx(sum(term.exposed_seconds for term in found.terms))
    assert found.low_seconds is not None
    assert found.high_seconds is not None
    assert found.seconds is not None
    assert 0 < found.low_seconds < found.seconds < found.high_seconds
    assert found.mfu_fraction is not None
    assert 0 < found.mfu_fraction < 1


@settings(max_examples=60)
@given(models, names, works, settings_, st.integers(1, 64))
def test_more_tokens_are_never_quicker(
    model: Architecture, name: str, work: dict[str, Any], setting: TimeSetting, more: int
) -> None:
    before = seconds(model, name, 1, work, setting)
    assert seconds(model, name, 1, work | {"sequence_length": work["sequence_length"] + more}, setting) >= before
    assert seconds(model, name, 1, work | {"micro_batch": work["micro_batch"] + more}, setting) >= before
    several = work | {"gradient_accumulation": work["gradient_accumulation"] + more}
    assert seconds(model, name, 1, several, setting) >= before


@settings(max_examples=60)
@given(models, names, works, settings_)
def test_recomputation_is_never_quicker(
    model: Architecture, name: str, work: dict[str, Any], setting: TimeSetting
) -> None:
    steps = [
        seconds(model, name, 1, work | {"activation_checkpointing": kind}, setting)
        for kind in ("none", "selective", "full")
    ]
    assert steps == sorted(steps)


@settings(max_examples=60)
@given(models, names, works, settings_, st.sampled_from([2, 4, 8, 16]))
def test_more_cards_are_never_slower_at_the_same_work_but_for_what_they_exchange(
    model: Architecture, name: str, work: dict[str, Any], setting: TimeSetting, count: int
) -> None:
    alone = work | {"gradient_accumulation": 16}
    together = work | {"gradient_accumulation": 16 // count}
    exchanged = timed(model, name, count, together, setting).term("gradient_exchange")
    assert exchanged is not None
    spread = seconds(model, name, count, together, setting) - exchanged.exposed_seconds
    assert spread <= seconds(model, name, 1, alone, setting) * (1 + 1e-9)


@settings(max_examples=30)
@given(models, names, works, settings_)
def test_adapters_are_never_slower_than_the_whole_network(
    model: Architecture, name: str, work: dict[str, Any], setting: TimeSetting
) -> None:
    """Of batches that keep the card busy: with few tokens, launching the adapters takes longest."""
    busy = work | {"micro_batch": 32, "sequence_length": 4096, "compute": "bf16"}
    if model.parameters < 1e9:
        return
    assert seconds(model, name, 1, busy | {"method": "lora"}, setting) < seconds(model, name, 1, busy, setting)
