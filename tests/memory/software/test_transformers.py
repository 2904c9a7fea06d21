"""Which layers transformers' device map puts on each card, and which outputs come back."""

from small_models import bundled, llama

from planner.memory.estimate import estimate_memory
from planner.memory.software.transformers import layers_by_device_map
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference

GIB, GB = 2**30, 10**9


def test_transformers_fills_one_card_after_the_other():
    # 13.48 GB of which a layer is 0.405 and each table 0.262: 6.74 + 0.51 for each of two, less a layer on the first.
    assert layers_by_device_map(llama(), "bf16", 2) == (16, 16)
    # A third is 4.49: 10 layers and the embedding in 4.59, 12 in 5.00, the rest.
    assert layers_by_device_map(llama(), "bf16", 3) == (10, 12, 10)


def test_transformers_takes_no_more_than_is_free():
    assert layers_by_device_map(llama(), "bf16", 2, (3 * GB, 24 * GB)) == (5, 27)
    assert layers_by_device_map(llama(), "bf16", 2, (80 * GB, 80 * GB)) == (16, 16)
    # What fits nowhere is counted on the last card.
    assert layers_by_device_map(llama(), "bf16", 2, (3 * GB, 3 * GB)) == (5, 27)


def test_tables_stay_in_16_bits_beside_quantized_layers():
    # NF4: a layer is 0.114 GB and each table 2.10: 3.92 + 2.62 for each card, less the head to come on the first.
    assert layers_by_device_map(llama(vocab_size=256_000), "nf4", 2) == (20, 12)


def test_layers_of_several_kinds_are_placed_in_their_order():
    deepseek = bundled().models.model("deepseek-ai/DeepSeek-V3")
    # Three dense layers are small: the first card has room for more layers than the others.
    held = layers_by_device_map(deepseek, "bf16", 8)
    assert sum(held) == 61
    gemma = bundled().models.model("google/gemma-3-4b-it")
    assert sum(layers_by_device_map(gemma, "bf16", 3)) == 34


def test_outputs_come_back_to_the_card_of_the_inputs():
    asked = Inference(
        prompt_logits="all", prompt_length=4096, context_length=4096, parallel=Parallel(pipeline=2, data=1)
    )
    result = estimate_memory(llama(vocab_size=128_000), asked, count=2)
    last = estimate_memory(llama(vocab_size=128_000), asked.evolve(prompt_logits="last"), count=2)
    logits = 4096 * 128_000 * 4
    more = result.per_gpu[0].total_bytes - last.per_gpu[0].total_bytes
    assert 0.5 * logits < more <= logits
    in_fp32 = asked.evolve(weights="fp32", compute="fp32", kv_cache="fp32")
    assert estimate_memory(llama(), in_fp32, count=2).per_gpu[0].total_bytes > 4096 * 32_000 * 4
