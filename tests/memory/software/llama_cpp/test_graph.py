"""The compute buffer against the sizes that llama.cpp 0.5.0 itself prints.

The figures are those of its CPU build (`sched_reserve: CPU compute buffer size`) for files of three layers with the
dimensions named here, a context of 4,096 tokens unless said, micro-batches of 512.
"""

import pytest

from planner.memory.software.llama_cpp.graph import (
    NO_COPIES,
    ExpertCopies,
    GraphAllocator,
    GraphBatch,
    GraphNetwork,
    compute_buffer_bytes,
)
from planner.models.architecture import Attention, LatentAttention, Layer, Mlp, Moe, Norm
from planner.units import MIB

NORM = Norm(kind="rms")


def layer(heads, kv_heads, width=0, moe=None, **attention) -> Layer:
    mixer = Attention(heads=heads, kv_heads=kv_heads, head_dim=128, **attention)
    block = moe or Mlp(intermediate=width, gated=True)
    return Layer(mixer=mixer, feed_forward=block, norm=NORM, norm_count=2, tensors=())


LLAMA_3_8B = GraphNetwork(4096, 128_256, (layer(32, 8, 14_336),) * 3)
LLAMA_2_7B = GraphNetwork(4096, 32_000, (layer(32, 32, 11_008),) * 3)
QWEN_3_8B = GraphNetwork(4096, 151_936, (layer(32, 8, 12_288, qk_norm="head"),) * 3)
EXPERTS = Moe(experts=128, top_k=8, intermediate=768)
QWEN_3_30B = GraphNetwork(2048, 151_936, (layer(32, 4, moe=EXPERTS, qk_norm="head"),) * 3)
SLIDING = layer(32, 16, 21_504, window=1024, qk_norm="head")
GEMMA_3_27B = GraphNetwork(5376, 262_208, (SLIDING, SLIDING, layer(32, 16, 21_504, qk_norm="head")))


def printed(network: GraphNetwork, **changes) -> float:
    batch = GraphBatch(tokens=512, outputs=1, cells=4096, sliding_cells=1536, on_card=False)._replace(**changes)
    return round(compute_buffer_bytes(network, batch) / MIB, 2)


@pytest.mark.parametrize(
    ("network", "changes", "mib"),
    [
        (LLAMA_3_8B, {}, 120.01),
        (LLAMA_3_8B, {"cells": 32_768}, 148.01),
        (LLAMA_3_8B, {"tokens": 1024}, 240.02),
        (LLAMA_3_8B, {"outputs": 512}, 266.50),
        (LLAMA_3_8B, {"flash": False, "outputs": 4}, 308.01),
        (LLAMA_2_7B, {}, 100.51),
        (LLAMA_2_7B, {"cells": 32_768}, 128.51),
        (LLAMA_2_7B, {"flash": False, "outputs": 4}, 320.01),
        (QWEN_3_8B, {}, 108.01),
        (QWEN_3_8B, {"outputs": 512}, 312.75),
        (QWEN_3_8B, {"flash": False, "outputs": 4}, 308.01),
        (QWEN_3_30B, {}, 92.01),
        (QWEN_3_30B, {"cells": 32_768}, 120.01),
        (QWEN_3_30B, {"flash": False, "outputs": 4}, 294.01),
        (GEMMA_3_27B, {"cells": 32_768}, 199.02),
        (GEMMA_3_27B, {"cells": 32_768, "sliding_cells": 4608, "outputs": 4}, 202.02),
        (GEMMA_3_27B, {"sliding_cells": 4096}, 173.52),
        (GEMMA_3_27B, {"flash": False}, 330.51),
    ],
)
def test_the_buffer_is_as_long_as_llama_cpp_says(network: GraphNetwork, changes: dict[str, int], mib: float):
    assert printed(network, **changes) == pytest.approx(mib, abs=0.011)


@pytest.mark.parametrize("flash", [True, False])
def test_a_layer_of_latent_attention_leaves_nothing_to_the_next_ones(flash: bool):
    mixer = LatentAttention(
        heads=16, q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128
    )
    latent = layer(1, 1, 4096).evolve(mixer=mixer)
    few, many = (printed(GraphNetwork(4096, 1000, (latent,) * count), flash=flash) for count in (3, 9))
    assert few == many


def test_on_a_card_there_is_no_room_for_embeddings_that_are_given():
    # The CPU build keeps 8 MiB for them: 512 tokens × 4,096 numbers × 4 bytes.
    assert printed(LLAMA_3_8B) - printed(LLAMA_3_8B, on_card=True) == 8


def test_a_cache_that_is_not_in_f16_is_copied_for_one_layer():
    copied = 2 * 32_768 * 1024 * 2 / MIB
    plain, widened = (printed(LLAMA_3_8B, cells=32_768, on_card=True, widened=choice) for choice in (False, True))
    assert 0 < widened - plain <= copied == 128


def test_the_smallest_hole_that_is_large_enough_is_taken_and_holes_join():
    places = GraphAllocator()
    first, second, third, fourth = (places.allocate(size) for size in (1024, 128, 512, 128))
    places.free(first, third)
    assert places.allocate(500) == third
    assert places.allocate(1000) == first
    places.free(second, first)
    assert places.allocate(1152) == (0, 1152)
    places.free(fourth)
    assert places.allocate(256) == (1664, 256)
    assert places.furthest == 1920


def test_weights_are_copied_to_the_card_from_32_rows_on():
    copies = ExpertCopies()
    assert copies.for_rows(32) is copies
    assert copies.for_rows(31) is NO_COPIES
