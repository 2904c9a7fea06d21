"""SGLang's static share, its pool and its buffers, with the arithmetic by hand and with what its logs print."""

import pytest
from small_models import DEEPSEEK, bundled, llama, other

from planner.memory.estimate import estimate_memory
from planner.memory.inference.engine import engine_cache_bytes
from planner.memory.software.sglang import SERVING, CardSetup, _prompt_graphs, card_setup, setup_of
from planner.units import GIB, MIB
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

LLAMA_3 = "meta-llama/Llama-3.1-8B"
H100, L40S, B200 = "h100-sxm5-80gb", "l40s", "b200-sxm-180gb"


def gpu(name):
    return bundled().hardware.gpu(name)


def memory(model=LLAMA_3, card=H100, count=1, **fields):
    hardware = bundled().hardware
    workload = Inference(profile="sglang", **fields)
    found = bundled().models.model(model)
    return estimate_memory(found, workload, gpu(card), hardware.usable_memory(gpu(card)), count)


def setup(model=None, card=None, **fields):
    model = model or llama()
    return setup_of(
        model, with_defaults(Inference(profile="sglang", **fields), model, 1), card and card_setup(gpu(card))
    )


def test_the_pool_is_what_a_published_log_prints():
    # Qwen3-30B-A3B with experts in host memory on an H100, --mem-fraction-static 0.85: 78.49 GiB free at start,
    # 62.08 GiB after 16.41 GiB of weights, and a cache of 50.28 GiB.
    free, after, fraction = 78.49, 62.08, 0.85
    assert after - free * (1 - fraction) == pytest.approx(50.28, abs=0.05)
    found = memory(engine={"mem_fraction_static": fraction}, context_length=8192)
    weights, context = found.term("weights").bytes, card_setup(gpu(H100)).context
    share = int(fraction * (found.capacity_bytes - context))
    assert found.cache_pool.bytes == (share - weights) // 131_072 * 131_072
    assert (found.capacity_bytes - context) / GIB == pytest.approx(free, abs=0.2)


def test_the_pool_of_qwen3_235b_on_four_h100():
    # vllm-project/vllm#21348: 16.46 GB of cache, 367,404 tokens, on each of 4 cards with fraction 0.93.
    found = memory(
        "Qwen/Qwen3-235B-A22B", count=4, weights="fp8", parallel={"tensor": 4}, engine={"mem_fraction_static": 0.93}
    )
    assert found.cache_pool.bytes / GIB == pytest.approx(16.46, rel=0.15)


def test_other_programs_and_communicators_are_taken_before_the_share_is_counted():
    alone, beside = memory(), memory(other_processes_bytes=4 * GIB)
    lost = alone.cache_pool.bytes - beside.cache_pool.bytes
    assert lost == pytest.approx(alone.cache_pool.utilization * 4 * GIB, abs=131_072)
    pool = SERVING.timeline(llama(), with_defaults(Inference(profile="sglang"), llama(), 1)).pool
    assert SERVING.pool_beside(pool, 5).taken_bytes == pool.taken_bytes + 5


@pytest.mark.parametrize(
    ("mib", "tensor", "chunk", "graphs"),
    [
        (None, 1, 4_096, 160),
        (20_479, 1, 2_048, 8),
        (20_480, 1, 4_096, 48),
        (35_839, 4, 4_096, 160),
        (35_840, 1, 4_096, 32),
        (61_439, 4, 4_096, 160),
        (61_440, 1, 8_192, 256),
        (163_839, 4, 8_192, 512),
        (163_840, 1, 16_384, 512),
    ],
)
def test_defaults_follow_the_memory_of_the_card(mib, tensor, chunk, graphs):
    workload = with_defaults(Inference(profile="sglang"), llama(), 1)
    workload = workload.replaced(parallel=workload.parallel.replaced(tensor=tensor))
    found = setup_of(llama(), workload, CardSetup(mib, 0, 0))
    assert (found.chunk, found.graph_batch) == (chunk, graphs)


def test_the_default_fraction_leaves_a_chunk_and_graphs():
    # 512 MiB + 1.5 MiB · 8,192 + 128 MiB for one card + graphs: 2 · 256 MiB and 8 MiB for each of 58 prompt sizes.
    reserved = 512 + 1.5 * 8192 + 128 + 512 + 8 * 58
    assert _prompt_graphs(8192) == 58
    assert setup(card=H100).fraction == round((81_559 - reserved) / 81_559, 3)
    assert setup().fraction == 0.88
    eager = setup(card=H100, engine={"disable_cuda_graph": True, "chunked_prefill_size": 2048})
    assert eager.fraction == round((81_559 - 10 * 1024) / 81_559, 3)
    latent = setup(other("deepseek_v3", DEEPSEEK), card=B200)
    assert latent.prompt_graphs == 58
    staged = setup_of(llama(), Inference(profile="sglang", parallel={"pipeline": 2}), None)
    assert staged.prompt_graphs == 0


def test_attention_kernels_follow_the_architecture():
    workspaces = [card_setup(gpu(name)).workspace // MIB for name in (H100, L40S, B200, "instinct-mi300x")]
    assert workspaces == [0, 384, 512, 0]
    assert [setup(card=name).page_tokens for name in (H100, B200)] == [1, 64]


def test_buffers_are_a_table_and_logits_of_graphs():
    found = memory(engine={"max_running_requests": 100, "cuda_graph_max_bs": 16}, context_length=8192)
    parts = {part.name: part.bytes for part in found.term("buffers").parts}
    assert parts["table of cached tokens"] == 101 * (8192 + 4) * 4
    assert parts["logits of CUDA graphs"] == 16 * 128_256 * 4
    assert parts["CUDA graphs"] == (2 * 16 + 8 * 58) * MIB
    eager = memory(engine={"disable_cuda_graph": True}).term("buffers")
    assert (eager.certainty, eager.bytes) == ("exact", eager.high_bytes)


def sizes(model, context, **engine):
    workload = with_defaults(Inference(profile="sglang", context_length=context, engine=engine), model, 1)
    pool = SERVING.timeline(model, workload).pool
    return pool and (pool.page_bytes, pool.pages)


def windowed(model, window, layers=None):
    group = model.main.groups[0]
    layer = group.layer.evolve(mixer=group.layer.mixer.evolve(window=window))
    few = layers or group.count
    groups = [group.evolve(layer=layer, count=few, places=tuple(range(few)))]
    if layers:
        groups.append(group.evolve(count=group.count - few, places=tuple(range(few, group.count))))
    return model.evolve(stacks=(model.main.evolve(groups=tuple(groups)),))


def test_a_token_takes_all_layers_and_a_window_has_a_pool_of_its_own():
    model = llama()
    each = 2 * 4096 * 2
    assert sizes(model, 4096) == (32 * each, 4096)
    assert sizes(model, 4096, page_size=64) == (64 * 32 * each, 64)
    half = windowed(model, 1024, 16)
    assert sizes(half, 4096) == (16 * each + 16 * each * 4 // 5, 4096)
    assert sizes(half, 1024)[1] == (1024 * 5 + 3) // 4
    assert sizes(windowed(model, 1024), 4096) == (32 * each, 4096)
    assert sizes(other("deepseek_v3", DEEPSEEK), 4096) == (4 * 576 * 2, 4096)


def test_states_take_nine_tenths_of_the_cache_beside_it():
    from vllm_cases import with_states

    both = with_states(4, 3, conv_state_elements=1000, recurrent_state_elements=100_000)
    cached = engine_cache_bytes(both, "bf16", 2)
    page, pages = sizes(both, 4096)
    assert page == cached.token + cached.token * 9 // 10
    assert pages == max(4096, -(-3 * cached.state * 10 // (9 * cached.token)))
    alone = with_states(3, 3, conv_state_elements=10, recurrent_state_elements=100)
    assert sizes(alone, 4096) == (3 * engine_cache_bytes(alone, "bf16", 2).state, 1)
    notes = " ".join(estimate_memory(both, Inference(profile="sglang")).notes)
    assert "three slots" in notes
    assert "pool of their own" in " ".join(estimate_memory(windowed(llama(), 9, 3), Inference(profile="sglang")).notes)


def test_an_encoder_has_no_cache_and_a_headless_network_samples_nothing():
    bert = bundled().models.model("BAAI/bge-large-en-v1.5")
    found = estimate_memory(bert, Inference(profile="sglang", context_length=512))
    assert (found.term("kv_cache"), found.cache_pool) == (None, None)
    headless = llama().evolve(head=())
    timeline = SERVING.timeline(headless, with_defaults(Inference(profile="sglang"), headless, 1))
    assert all(term.name != "logits" for term in timeline.snapshots[-1].terms)


def test_more_sequences_than_run_wait():
    notes = " ".join(memory(batch=20, engine={"max_running_requests": 16}).notes)
    assert "4 of 20 requests wait" in notes
    assert "no CUDA graphs" in " ".join(memory(engine={"disable_cuda_graph": True}).notes)


@pytest.mark.parametrize(
    ("name", "compute", "reason"),
    [
        ("rtx-4090", "bf16", ""),
        ("instinct-mi300x", "bf16", ""),
        ("tesla-t4", "fp16", ""),
        ("tesla-t4", "bf16", "choose fp16"),
        ("gtx-1070", "fp16", "needs compute capability 7.5"),
        ("radeon-rx-7900-xtx", "bf16", "MI300 or newer"),
        ("gaudi3", "bf16", "does not describe"),
    ],
)
def test_it_runs_on_cards_that_its_kernels_are_built_for(name, compute, reason):
    said = " ".join(SERVING.unsupported_reasons(Inference(profile="sglang", compute=compute), gpu(name)))
    assert (reason in said) if reason else not said


def test_layers_and_vocabulary_are_split_as_sglang_does():
    workload = Inference(profile="sglang", parallel={"pipeline": 3})
    assert SERVING.split_layers(llama(), workload) == (10, 11, 11)
    assert [SERVING.vocabulary_multiple(cards) for cards in (1, 8, 3)] == [64, 8, 1]


def test_the_settings_in_use_are_those_of_the_card():
    used = SERVING.settings_in_use(llama(), with_defaults(Inference(profile="sglang"), llama(), 1), gpu(H100))
    assert (used.chunked_prefill_size, used.cuda_graph_max_bs, used.max_running_requests) == (8192, 256, 2048)
    without = SERVING.settings_in_use(llama(), with_defaults(Inference(profile="sglang"), llama(), 1), None)
    assert without.mem_fraction_static == 0.88
