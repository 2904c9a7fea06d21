"""Speed of llama.cpp: measured tokens per second, dense rates and shares."""

from math import inf

import pytest
from known_engines import ENGINES
from small_models import bundled
from timed_requests import gpu, served

from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.request import decoding_step_time, prompt_time


def test_an_rtx_4090_decodes_54_tokens_per_second_as_measured():
    # XiongjieDai/GPU-Benchmarks-on-LLM-Inference: 54.34 with F16 and 127.74 with Q4_K_M.
    assert 1 / decoding_step_time(served(unfused=True), 1, 512).seconds == pytest.approx(54.34, rel=0.05)
    assert 1 / decoding_step_time(served(weights="Q4_K_M", unfused=True), 1, 512).seconds == pytest.approx(
        127.74, rel=0.05
    )


def test_llama_cpp_writes_quantised_weights_out_for_each_chunk():
    spent = prompt_time(served(weights="Q4_K_M"), 1, 1024)
    one = served(weights="Q4_K_M")
    written = one.work.dequantised_bytes * one.work.read_bytes(512) / one.work.fixed_bytes
    assert spent.dequantisation == pytest.approx(2 * (one.work.read_bytes(512) + written) / (0.88 * 1008e9))
    assert decoding_step_time(one, 1, 1024).dequantisation == 0


def test_activations_have_32_bits_and_are_cast_for_each_product():
    # A layer of Llama 3.1 8B: widths of 4,096, 1,024 (keys, values) and 14,336.
    casts = 6 * (4 * 4096 + 2 * (4096 + 1024) + 3 * (4096 + 14336))
    stream, mixer, gate = 4 * 14 * 4096, 4 * (4 * 4096 + 2 * 1024) + 12 * 1024, 4 * 5 * 14336
    assert served().work.pointwise_bytes == 32 * (casts + stream + mixer + gate)


def test_activations_without_a_gate_pass_memory_twice():
    # A layer of BLOOM 560M: four products of 1,024 and 4,096, queries, keys and values in one.
    casts = 6 * (1024 + 3072 + 2 * 1024 + 2 * (1024 + 4096))
    stream, mixer, activation = 4 * 14 * 1024, 4 * 6 * 1024 + 12 * 1024, 4 * 2 * 4096
    assert served(model="bigscience/bloom-560m").work.pointwise_bytes == 24 * (casts + stream + mixer + activation)


def test_experts_move_the_activations_of_each_visit():
    # A layer of Mixtral 8x7B, two experts of 14,336 for each token.
    casts = 6 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 2 * 3 * (4096 + 14336))
    stream, mixer = 4 * 14 * 4096, 4 * (4 * 4096 + 2 * 1024) + 12 * 1024
    experts = 4 * 2 * (5 * 14336 + 4 * 4096)
    assert served(model="mistralai/Mixtral-8x7B-v0.1").work.pointwise_bytes == 32 * (casts + stream + mixer + experts)


def test_a_layer_without_attention_or_block_has_norms_and_casts():
    llama = bundled().models.model("meta-llama/Llama-3.1-8B")
    (group,) = llama.main.groups
    bare = group.evolve(layer=group.layer.evolve(mixer=None, feed_forward=None))
    alone = llama.evolve(stacks=(llama.main.evolve(groups=(bare,)),))
    casts = sum(6 * each.copies * sum(each.shape) for each in bare.layer.tensors if each.role == "linear")
    assert ENGINES["llama.cpp"].work(alone, "F16").pointwise_bytes == 32 * (casts + 4 * 14 * 4096)


def test_llama_cpp_sums_in_16_bits_at_the_whole_rate_of_a_geforce_card():
    card = gpu("rtx-4090")
    assert ENGINES["llama.cpp"].rate(card, "fp16") == pytest.approx(330.3e12)
    assert ENGINES["vllm"].rate(card, "fp16") == pytest.approx(165.2e12)
    assert ENGINES["llama.cpp"].rate(gpu("apple-m3-max"), "fp16") == pytest.approx(14.2e12)


def test_prompts_are_multiplied_by_cublas_within_the_board_power():
    strong, thrifty = gpu("rtx-4090"), gpu("rtx-6000-ada")
    assert gpu_speed(strong, ENGINES["llama.cpp"], "F16").products.fraction == pytest.approx(0.8 * 0.85)
    # 300 W for 364 TFLOP/s, where others of its family have 350 W for 363.
    found = gpu_speed(thrifty, ENGINES["llama.cpp"], "F16").products.fraction
    assert found == pytest.approx(0.8 * 0.66 * (300 / 364.2 / (350 / 363)) ** (1 / 3), rel=1e-3)
    assert gpu_speed(gpu("apple-m3-max"), ENGINES["llama.cpp"], "F16").products.fraction == 0.66


def test_kernels_that_load_single_numbers_are_bound_by_the_multiprocessors():
    stacked = gpu_speed(gpu("a100-sxm4-80gb"), ENGINES["llama.cpp"], "F16")
    assert stacked.scalar_bytes_per_s == pytest.approx(8.0 * 108 * 1.41e9)
    assert stacked.scalar_bytes_per_s < stacked.pointwise * stacked.bytes_per_s
    plain = gpu_speed(gpu("rtx-4090"), ENGINES["llama.cpp"], "F16")
    assert plain.scalar_bytes_per_s > plain.bytes_per_s
    assert gpu_speed(gpu("a100-sxm4-80gb"), ENGINES["vllm"], "bf16").scalar_bytes_per_s == inf


def test_what_one_kernel_wrote_the_next_finds_in_a_large_cache():
    small, large = served(gpu="rtx-3070"), served()
    spent = [prompt_time(one, 1, 512).elementwise for one in (small, large)]
    moved = 512 * large.work.pointwise_bytes
    assert spent[0] == pytest.approx(moved / (0.88 * 448e9), rel=0.01)
    # 19 MB for each of 28 kernels of a layer, and 72 MB of cache.
    assert spent[1] == pytest.approx(moved / (0.88 * 1008e9) / 2.6, rel=0.02)


def test_unfused_attention_reads_the_cache_slowly():
    fused = gpu_speed(gpu("rtx-4090"), ENGINES["llama.cpp"], "F16")
    unfused = gpu_speed(gpu("rtx-4090"), ENGINES["llama.cpp"], "F16", unfused=True)
    assert (fused.cache.fraction, unfused.cache.fraction) == pytest.approx((0.75 / 0.80 * 0.88, 0.37))


def test_the_first_stage_holds_most_layers_and_chunks_follow_each_other_through_it():
    small = served().work
    # Of 32 layers and the output, 9, 8, 8 and 7 layers: eight chunks pass the 9, and the last one the rest.
    assert ENGINES["llama.cpp"].passes_in_stages(small, [1.0] * 8, 4) == pytest.approx((8 * 9 + 23) / 32)
    assert ENGINES["llama.cpp"].passes_in_stages(small, [1.0], 4) == pytest.approx(1.0)
    # A longer prompt is followed in 256 parts.
    several = [ENGINES["llama.cpp"].passes_in_stages(small, [1.0] * count, 4) for count in (256, 512)]
    assert several[1] == pytest.approx(2 * several[0])


def test_a_full_queue_of_launches_holds_the_next_chunk_back():
    large = {"model": "meta-llama/Llama-3.1-70B"}
    quantised, plain = served(weights="Q4_K_M", **large).work, served(weights="F16", **large).work
    engine = ENGINES["llama.cpp"]
    # 21, 20, 20 and 19 of 80 layers. 54 · 19 = 1,026 launches of the last stage: the second chunk is launched when two
    # of them are done.
    assert engine.passes_in_stages(quantised, [1.0] * 2, 4) == pytest.approx(1 + 61 / 80 + 2 / 1026 * 19 / 80)
    # 47 · 21 = 987 of the first stage without unpacking: the second chunk follows at once.
    assert engine.passes_in_stages(plain, [1.0] * 2, 4) == pytest.approx(1 + 21 / 80)


def test_the_sixth_chunk_waits_until_the_first_is_through_the_last_stage():
    # The fifth one needs the copy of the first on each of eight cards, and is launched before the sixth.
    found = [ENGINES["llama.cpp"].passes_in_stages(served().work, [1.0] * count, 8) for count in (5, 6)]
    assert found == pytest.approx([4 * 5 / 32 + 1, 2.0])


def test_pascal_multiplies_16_bits_in_fp32():
    p40 = gpu("tesla-p40")
    assert ENGINES["llama.cpp"].rate(p40, "fp16") == pytest.approx(p40.rate("fp32").ops_per_s)


def test_builds_for_blackwell_start_a_layer_as_part_of_one_graph_with_fused_kernels():
    # Qwen3.5 27B on an RTX PRO 6000, ggml-org/llama.cpp issue 28196: 75 % of the bandwidth, of which reading has 88 %.
    left_over = 16.2e9 * (1 / 0.75 - 1 / 0.88) / 1792e9 / 64
    engine = ENGINES["llama.cpp"]
    assert engine.seconds_per_layer(gpu("rtx-pro-6000-blackwell-server"), "Q4_K_M") == pytest.approx(
        left_over, rel=0.01
    )
    assert engine.seconds_per_layer(gpu("rtx-4090"), "Q4_K_M") == engine.layer_seconds


def test_pascal_multiplies_quantised_weights_by_dot_products_of_bytes():
    # ggml-org/llama.cpp#4682: Llama 2 7B in Q8_0 on a P40, 894 tokens/s of a prompt of 512 tokens.
    p40, engine = gpu("tesla-p40"), ENGINES["llama.cpp"]
    assert engine.product_format(p40, "Q8_0", "fp16") == "int8"
    assert engine.product_format(p40, "F16", "fp16") == engine.product_format(gpu("rtx-4090"), "Q8_0", "fp16") == "fp16"
    assert engine.rate(p40, "int8") == pytest.approx(4 * 11.76e12)
    products = 512 / 894 - 0.061
    expected = 2 * 6.48e9 * 512 / products / (4 * 11.76e12)
    assert engine.product_share(p40, "int8").fraction == pytest.approx(expected, rel=0.03)
    assert prompt_time(served("tesla-p40", weights="Q8_0"), 1, 512).dequantisation == 0


def test_sums_in_16_bits_reach_less_of_their_whole_rate_than_those_in_32_bits_of_the_halved_one():
    engine, card = ENGINES["llama.cpp"], gpu("rtx-4090")
    assert engine.product_share(card, "fp16").fraction == pytest.approx(0.85 * engine.compute_share)
