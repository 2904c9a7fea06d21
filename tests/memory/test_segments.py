"""Ends of the allocator's segments that stay with the last block, calculated by hand."""

from hypothesis import given
from hypothesis import strategies as st
from small_models import bundled

from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.segments import unsplit_bytes, unsplit_weight_bytes
from planner.trace.allocator import CachingAllocator
from planner.trace.allocator_settings import DEFAULT_SETTINGS
from planner.units import MIB
from planner.workload.defaults import with_defaults
from planner.workload.training import Training
from planner.workload.workload import Inference

QWEN = "Qwen/Qwen2.5-14B-Instruct"
UNSPLIT_OF_QWEN = (48 * 3 + 2) * MIB
"""5,120 × 13,824 in bf16 are 135 MiB in segments of 136 MiB, embedding and head 1,485 MiB in segments of 1,486."""


def test_what_is_left_of_a_segment_stays_with_its_block_up_to_one_mebibyte():
    assert unsplit_bytes([135 * MIB]) == MIB
    assert unsplit_bytes([12 * MIB + 512]) == 0  # more than 1 MiB of its 14 MiB is left, and split off
    assert unsplit_bytes([19 * MIB // 2, 19 * MIB // 2]) == MIB  # two of 9.5 MiB in a segment of 20 MiB
    assert unsplit_bytes([MIB, MIB, 3]) == 0


def test_a_later_tensor_takes_the_end_of_a_segment():
    assert unsplit_bytes([12 * MIB + 512, 3 * MIB // 2]) == MIB // 2 - 512


@given(st.lists(st.integers(1, 40 * MIB), max_size=30))
def test_blocks_are_as_large_as_those_of_the_allocator(sizes):
    allocator = CachingAllocator(DEFAULT_SETTINGS)
    blocks = [allocator.malloc(size) for size in sizes]
    rounded = sum(-(-size // 512) * 512 for size in sizes)
    assert unsplit_bytes(sizes) == sum(block.size for block in blocks) - rounded


def test_the_weights_of_a_network_in_their_blocks():
    qwen = bundled().models.model(QWEN)
    assert unsplit_weight_bytes(qwen, "bf16") == UNSPLIT_OF_QWEN
    assert unsplit_weight_bytes(qwen, "Q4_K_M") == 0  # llama.cpp has an allocator of its own


def test_packed_weights_and_their_scales_are_tensors_of_their_own():
    qwen = bundled().models.model(QWEN)
    # 5,120 × 13,824 in 8 bits are 67.5 MiB of 68; the scales of a group of 128 are above 1 MiB, and share segments.
    assert 48 * 3 * MIB // 2 < unsplit_weight_bytes(qwen, "gptq8-128") < UNSPLIT_OF_QWEN * 3 // 2


def test_gradients_have_the_blocks_of_their_parameters():
    qwen = bundled().models.model(QWEN)
    full, adapted = Training(compute="bf16", weights="bf16"), Training(compute="bf16", method="lora")
    assert fullest_timeline(qwen, with_defaults(full, qwen, 1)).unsplit_bytes == 2 * UNSPLIT_OF_QWEN
    assert fullest_timeline(qwen, with_defaults(adapted, qwen, 1)).unsplit_bytes == UNSPLIT_OF_QWEN


def test_they_count_as_allocated_and_are_a_part_of_the_overhead():
    result = estimate_memory(bundled().models.model(QWEN), Inference(weights="bf16"))
    overhead = result.term("framework_overhead")
    part = next(part for part in overhead.parts if part.name == "allocator fragmentation (within blocks)")
    assert part.bytes == UNSPLIT_OF_QWEN + 14 * MIB  # and those of short-lived tensors
    slack = next(part for part in overhead.parts if part.name == "allocator slack").bytes
    assert result.reserved_bytes - result.allocated_bytes == slack
    assert sum(part.bytes for part in overhead.parts) == overhead.bytes
