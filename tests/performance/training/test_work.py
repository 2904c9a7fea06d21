"""Work of a micro-batch, with the arithmetic."""

import pytest
from small_models import bundled, llama, small_llama
from timed_steps import step

from planner.hardware.gpu import Gpu
from planner.performance.efficiency import (
    MEASURED,
)
from planner.performance.setting import TimeSetting
from planner.workload.software.registry import TRAINERS

PLAIN = TimeSetting()


def test_some_parameters_need_some_gradients(h100: Gpu) -> None:
    some = step(llama(), h100, trainable=("*layers.31.*",))
    assert 0 < some.batch.weight_gradient_share < 0.05


def test_scores_of_eager_attention_are_moved_through_memory(h100: Gpu) -> None:
    eager = step(llama(), h100, attention="eager", classes=MEASURED)
    fused = step(llama(), h100, attention="flash", classes=MEASURED)
    assert eager.passes.elements_forward > 2 * fused.passes.elements_forward
    assert eager.passes.attention_backward == 2 * eager.passes.attention_forward


def test_element_wise_operations_are_fused_where_kernels_are(h100: Gpu) -> None:
    fused = {name for name in TRAINERS if step(llama(), h100, profile=name, compute="bf16").batch.fused}
    assert fused == {"liger", "unsloth", "megatron"}


def test_autocast_casts_every_matrix(h100: Gpu) -> None:
    assert step(small_llama(), h100, compute="amp-bf16").batch.cast_bytes > 0
    assert step(small_llama(), h100, compute="bf16").batch.cast_bytes == 0


def test_packed_samples_attend_to_themselves_alone(h100: Gpu) -> None:
    """16 samples of 128 tokens in a sequence of 2,048: each reads 64.5 tokens on average instead of 1,024.5."""
    whole, packed = step(llama(), h100), step(llama(), h100, setting=TimeSetting(packed_tokens=128))
    ratio = 64.5 / 1024.5
    assert packed.batch.forward.attention_flops == pytest.approx(ratio * whole.batch.forward.attention_flops)
    assert packed.batch.forward.products == whole.batch.forward.products
    assert packed.flops < whole.flops
    longer = step(llama(), h100, setting=TimeSetting(packed_tokens=100_000))
    assert longer.batch.forward == whole.batch.forward


def test_cross_attention_without_an_encoder_reads_as_many_tokens_as_the_sequence_has(h100: Gpu) -> None:
    vision = bundled().models.model("meta-llama/Llama-3.2-11B-Vision")
    once, twice = (step(vision, h100, sequence_length=length).batch.kept_bytes for length in (1_024, 2_048))
    assert twice == 2 * once
