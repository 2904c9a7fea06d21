"""vLLM's pages, profiling step and pool, with the arithmetic and with what its logs printed."""

import pytest
from small_models import DEEPSEEK, LLAMA, MIXTRAL, bundled, llama, other

from planner.hardware.usable import UsableMemory
from planner.memory.estimate import estimate_memory, fits_on, fullest_timeline
from planner.memory.software.vllm.cache import PageKind, Pages, _pages_of_equal_size, pages_of
from planner.memory.software.vllm.profile import forward_term, sampler_term
from planner.memory.software.vllm.setup import CardClass, class_of_card, setup_of
from planner.models.architecture import Attention, StateMixer
from planner.units import GIB, MIB
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

T5 = {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4, "num_layers": 2, "vocab_size": 100}
LLAMA_3 = "meta-llama/Llama-3.1-8B"


def setup(length=4096, of_card=CardClass.LARGE, **engine):
    return setup_of(Inference(profile="vllm", context_length=length, engine=engine), of_card)


def pages(model, length=4096, kv_format="bf16", **engine) -> Pages:
    found = pages_of(model, kv_format, setup(length, **engine), 100)
    assert found is not None
    return found


def alive(model, phase, of_card=CardClass.LARGE, **changes) -> dict[str, int]:
    filled = with_defaults(Inference(profile="vllm").evolve(**changes), model, 1)
    snapshot = next(m for m in fullest_timeline(model, filled, of_card).snapshots if m.name == phase)
    return {term.name: term.bytes for term in snapshot.terms}


def with_states(layers: int, of_states: int, **state):
    """Return a llama of `layers`, of which the first `of_states` keep a state instead of a cache."""
    mixer = StateMixer(name="gated-delta-net", inner_dim=64, **state)
    model = llama(num_hidden_layers=layers, num_key_value_heads=8)
    group = model.main.groups[0]
    states = group.evolve(layer=group.layer.evolve(mixer=mixer), count=of_states, places=tuple(range(of_states)))
    rest = tuple(range(of_states, layers))
    groups = (states, group.evolve(count=len(rest), places=rest)) if rest else (states,)
    return model.evolve(stacks=(model.main.evolve(groups=groups),))


def test_a_page_holds_16_tokens_of_keys_and_values_of_every_layer():
    assert pages(bundled().models.model(LLAMA_3), 4096) == Pages(16 * 131_072, 256, 0, 32, 32)
    assert pages(bundled().models.model(LLAMA_3), 4097).pages == 257
    assert pages(bundled().models.model(LLAMA_3), 4096, block_size=32).pages == 128


@pytest.mark.parametrize(
    ("name", "layers", "slots"),
    [
        ("google/gemma-3-27b-it", 62, 70),  # 10 full and 52 sliding: 1 + 6 groups of 10
        ("google/gemma-3-4b-it", 34, 35),  # 5 and 29: 1 + 6 groups of 5
        ("openai/gpt-oss-20b", 24, 24),  # 12 and 12
    ],
)
def test_groups_of_hybrid_models_are_filled_up(name: str, layers: int, slots: int):
    # The slots that vLLM's logs of an H100 show: KV bytes per token to 0.02 %.
    found = pages(bundled().models.model(name))
    assert (found.layers, found.slots) == (layers, slots)


def test_sliding_layers_hold_the_window_the_tokens_in_flight_and_one_page_more():
    gemma = bundled().models.model("google/gemma-3-27b-it")
    steps_ahead = 2 * 8192  # two steps of as many tokens as an H100's server takes
    sliding = (1024 - 1 + steps_ahead + 15) // 16 + 1
    assert pages(gemma, 131_072).cache_pages == 131_072 // 16 + 6 * sliding
    assert pages(gemma, 131_072, version="0.19").cache_pages == 131_072 // 16 + 6 * ((1023 + 8192 + 15) // 16 + 1)
    assert pages(gemma, 1024).cache_pages == 64 + 6 * 65


def test_kinds_with_nearly_as_many_layers_make_groups_of_the_larger_one():
    layers = [pages(with_sliding(full, sliding)).slots for full, sliding in ((12, 13), (10, 15))]
    assert layers == [13 + 13, 10 + 20]


def with_sliding(full: int, sliding: int):
    model = llama(num_hidden_layers=full + sliding, num_key_value_heads=8)
    group = model.main.groups[0]
    windowed = group.layer.evolve(mixer=group.layer.mixer.evolve(window=128))
    places = tuple(range(full + sliding))
    groups = (
        group.evolve(count=full, places=places[:full]),
        group.evolve(layer=windowed, count=sliding, places=places[full:]),
    )
    return model.evolve(stacks=(model.main.evolve(groups=groups),))


def test_latent_attention_keeps_576_numbers_and_656_bytes_where_it_is_sparse_and_in_fp8():
    dense = other("deepseek_v3", DEEPSEEK)
    assert pages(dense).page_bytes == 4 * 16 * 576 * 2
    assert pages(dense, kv_format="fp8").page_bytes == 4 * 16 * 576
    sparse = with_indexer(dense, 128)
    # The indexer's keys: 128 fp8 numbers and one fp32 scale, whatever the format of the rest.
    assert pages(sparse, kv_format="fp8").page_bytes == 4 * 16 * (656 + 132)
    assert pages(sparse).page_bytes == 4 * 16 * (576 * 2 + 132)


def with_indexer(model, width: int):
    groups = tuple(
        group.evolve(layer=group.layer.evolve(mixer=group.layer.mixer.evolve(indexer_dim=width)))
        for group in model.main.groups
    )
    return model.evolve(stacks=(*model.stacks[:-1], model.main.evolve(groups=groups)))


def test_a_page_of_attention_grows_until_it_holds_a_state():
    # Qwen3-Next: 512 tokens · 2 heads · 256 · 2 … the state of 48 · 128 · 128 fp32 numbers decides the page.
    model = with_states(4, 3, conv_state_elements=1000, recurrent_state_elements=100_000)
    state = 1000 * 2 + 100_000 * 4
    token = 2 * 8 * 128 * 2
    tokens = -(-state // (16 * token)) * 16
    found = pages(model, 4096)
    # 3 states and 1 layer with a cache: groups of 1, each with pages of the same size
    assert found == Pages(tokens * token, -(-4096 // tokens), 3, 4, 4)
    shares = alive(model, "decode", batch=2)
    assert shares["state"] == 2 * 3 * tokens * token


def test_states_alone_have_one_page_each():
    model = with_states(3, 3, conv_state_elements=10, recurrent_state_elements=100)
    assert pages(model) == Pages(3 * (10 * 2 + 100 * 4), 0, 1, 3, 3)
    assert "kv_cache" not in alive(model, "decode")
    mamba = model.main.groups[0].layer.mixer.evolve(name="mamba2")
    group = model.main.groups[0]
    stack = model.main.evolve(groups=(group.evolve(layer=group.layer.evolve(mixer=mamba)),))
    assert pages(model.evolve(stacks=(stack,))).page_bytes == 3 * (10 + 100) * 2


def test_states_beside_states_of_another_size_are_padded():
    model = with_states(2, 2, conv_state_elements=10, recurrent_state_elements=100)
    group = model.main.groups[0]
    larger = group.layer.evolve(mixer=group.layer.mixer.evolve(recurrent_state_elements=200))
    attended = group.layer.evolve(second_mixer=Attention(heads=1, kv_heads=1, head_dim=8))
    groups = (group.evolve(count=1, places=(0,)), group.evolve(layer=larger, count=1, places=(1,)))
    assert pages(model.evolve(stacks=(model.main.evolve(groups=groups),))).state_pages == 1
    groups = (group.evolve(layer=attended),)
    assert pages(model.evolve(stacks=(model.main.evolve(groups=groups),))).cache_pages > 0


def test_pages_of_several_sizes_become_the_largest():
    small, large = PageKind("full", None, 16, 100), PageKind("sliding", 8, 16, 300)
    odd = PageKind("full", None, 16, 70)
    assert _pages_of_equal_size({small: 2, large: 3, odd: 1}) == {
        PageKind("full", None, 48, 300): 2,
        large: 3,
        PageKind("full", None, 16, 300): 1,
    }


def test_cross_attention_keeps_pages_of_the_prompt_and_encoders_none():
    t5 = other("t5", T5)
    assert pages(t5, 160).pages == 10 + 7
    assert pages_of(other("bert", LLAMA), "bf16", setup(), 1) is None


def test_layers_that_share_keys_and_values_have_no_pages():
    model = llama()
    group = model.main.groups[0]
    shared = group.layer.evolve(mixer=group.layer.mixer.evolve(kv_shared=True))
    halves = (group.evolve(count=20), group.evolve(layer=shared, count=12))
    assert pages(model.evolve(stacks=(model.main.evolve(groups=halves),))).layers == 20


@pytest.mark.parametrize(
    ("name", "of_card"),
    [
        ("b200-sxm-180gb", CardClass.LARGEST),
        ("h100-sxm5-80gb", CardClass.LARGE),
        ("a100-sxm4-80gb", CardClass.OTHER),
        ("rtx-4090", CardClass.OTHER),
    ],
)
def test_defaults_follow_the_card(name: str, of_card: CardClass):
    assert class_of_card(bundled().hardware.gpu(name)) is of_card


def test_limits_of_a_step():
    large = setup()
    assert (large.tokens, large.sequences, large.in_flight, large.utilization) == (8192, 1024, 16_384, 0.92)
    assert setup(version="0.11").utilization == 0.9
    assert setup(length=1, max_num_seqs=3).tokens == 3
    assert setup(max_num_batched_tokens=100).sequences == 100
    assert setup(max_num_batched_tokens=100, max_num_seqs=200).sequences == 200


@pytest.mark.parametrize(("version", "per_logit"), [("0.33", 14), ("0.19", 14), ("0.11", 38)])
def test_sampling_for_the_most_sequences_decides_the_peak(version: str, per_logit: int):
    # logits 2, fp32 copy 4, then 8 (masked logits and probabilities), or 32 where they are sorted with their indices
    model = bundled().models.model("Qwen/Qwen3-0.6B")
    assert sampler_term(model, setup(version=version)).bytes == 1024 * 151_936 * per_logit
    assert sampler_term(model, setup(version=version, max_num_seqs=1)).bytes == 151_936 * per_logit


@pytest.mark.parametrize(("name", "measured_gib"), [("openai/gpt-oss-120b", 7.38), ("Qwen/Qwen3-0.6B", 5.56)])
def test_the_profiled_peak_of_vllm_011_on_an_h100(name: str, measured_gib: float):
    # llm-d-planner docs/empirical-vllm-memory-results.md: torch peak increase
    shares = alive(bundled().models.model(name), "decode", engine={"version": "0.11"}, context_length=16_000)
    assert (shares["activations"] + shares["logits"]) / GIB == pytest.approx(measured_gib, rel=0.01)


def test_fp32_has_no_copy_and_models_without_a_vocabulary_sample_nothing():
    model = llama()
    fp32 = setup_of(Inference(profile="vllm", compute="fp32", context_length=10), CardClass.OTHER)
    assert sampler_term(model, fp32).bytes == fp32.sequences * 32_000 * 12
    headless = model.evolve(head=())
    assert sampler_term(headless, setup()) is None
    assert "buffers" not in alive(headless, "decode", engine={"enforce_eager": True})


def test_a_step_holds_the_widest_layer():
    step = setup(max_num_batched_tokens=10)
    assert forward_term(llama(), step).bytes == 10 * 2 * (2 * 4096 + 3 * 11_008)
    experts = 2 * (2 * 14_336 + 14_336) + 4096 + 8
    assert forward_term(other("mixtral", MIXTRAL), step).bytes == 10 * 2 * (2 * 4096 + experts)
    latent = 2 * 128 * 192 + 128 * 256 + 128 * 128 + 576
    assert forward_term(other("deepseek_v3", DEEPSEEK), step).bytes == 10 * 2 * (2 * 7168 + latent)
    states = with_states(1, 1, conv_state_elements=1, recurrent_state_elements=1)
    assert forward_term(states, step).bytes == 10 * 2 * (2 * 4096 + 3 * 11_008)
    group = states.main.groups[0]
    bare = group.evolve(layer=group.layer.evolve(feed_forward=None))
    assert forward_term(states.evolve(stacks=(states.main.evolve(groups=(bare,)),)), step).bytes == 20 * (8192 + 256)


def test_tables_of_penalties_stay_for_good_and_graphs_are_an_assumption():
    eager = alive(llama(), "decode", engine={"enforce_eager": True})
    assert eager["buffers"] == 1024 * 4 * (32_000 + 1000)
    assert alive(llama(), "decode")["buffers"] - eager["buffers"] == GIB // 2
    assert "buffers" not in alive(llama(), "decode", engine={"enforce_eager": True, "version": "0.19"})


def usable(size: int) -> UsableMemory:
    return UsableMemory(
        bytes=size, low_bytes=size, high_bytes=size, certainty="measured", source="a test", explanation="as measured"
    )


def test_the_pool_says_how_many_tokens_and_sequences_the_card_holds():
    model = bundled().models.model(LLAMA_3)
    card = bundled().hardware.gpu("rtx-4090")
    workload = Inference(profile="vllm", context_length=8192, engine={"memory_utilization": 0.9})
    result = estimate_memory(model, workload, card, usable(24 * GIB))
    terms = {term.name: term.bytes for term in result.terms}
    beside = terms["weights"] + terms["buffers"] + terms["activations"] + terms["logits"] + 143 * MIB
    number = (int(0.9 * 24 * GIB) - beside) // (16 * 131_072)
    assert result.cache_pool.bytes == number * 16 * 131_072
    assert result.cache_pool.tokens == number * 16
    assert result.cache_pool.sequences == round(number / 512, 2)
    assert any("Using 90% of the card" in note for note in result.notes)


def test_a_pool_that_is_too_small_is_said_to_be_so():
    model = bundled().models.model(LLAMA_3)
    card = bundled().hardware.gpu("rtx-4090")
    result = estimate_memory(model, Inference(profile="vllm", batch=300), card, usable(18 * GIB))
    assert any("too small for 300" in note for note in result.notes)
    assert any("44 of 300 sequences wait" in note for note in result.notes)


def test_the_pool_is_a_share_of_what_a_process_sees():
    # An H100 with 80 GB on its label has 79.19 GiB, not 80.
    h100 = bundled().hardware.gpu("h100-sxm5-80gb")
    total = bundled().hardware.usable_memory(h100).bytes
    assert 79.0 < total / GIB < 79.7
    result = estimate_memory(bundled().models.model(LLAMA_3), Inference(profile="vllm"), h100, usable(total))
    terms = {term.name: term.bytes for term in result.terms}
    beside = terms["weights"] + terms["buffers"] + terms["activations"] + terms["logits"] + 143 * MIB
    assert result.cache_pool.bytes == pytest.approx(0.92 * total - beside, abs=16 * 131_072)


@pytest.mark.parametrize(
    ("name", "weights", "available"), [("Qwen/Qwen3-0.6B", "bf16", 64.45), ("openai/gpt-oss-120b", "mxfp4", 3.33)]
)
def test_before_graphs_were_counted_the_pool_is_what_vllm_0_11_printed(name, weights, available):
    # llm-d-planner's table: 0.9 of 79.18 GiB; with graphs of half a GiB the first pool would be 64.0, the second 2.9.
    h100 = bundled().hardware.gpu("h100-sxm5-80gb")
    workload = Inference(profile="vllm", weights=weights, context_length=16_000, engine={"version": "0.11"})
    result = estimate_memory(bundled().models.model(name), workload, h100, usable(round(79.18 * GIB)))
    assert result.cache_pool.bytes / GIB == pytest.approx(available, abs=0.005 * 71.26)  # half a hundredth of the share


def test_the_whole_catalog_has_the_verdicts_of_single_estimates():
    model, workload = bundled().models.model(LLAMA_3), Inference(profile="vllm")
    hardware = bundled().hardware
    cards = [(gpu, hardware.usable_memory(gpu)) for gpu in hardware.gpus]
    for (gpu, available), fit in zip(cards, fits_on(model, workload, cards), strict=True):
        single = estimate_memory(model, workload, gpu, available)
        assert (fit.verdict, fit.total_bytes, fit.free_bytes) == (single.verdict, single.total_bytes, single.free_bytes)


def test_notes_say_what_was_assumed():
    model = bundled().models.model("google/gemma-3-27b-it")
    notes = " ".join(estimate_memory(model, Inference(profile="vllm", engine={"enforce_eager": True})).notes)
    assert "at most 256 sequences and 2,048 tokens" in notes
    assert "without CUDA graphs" in notes
    assert "70 layers" in notes
    assert "vLLM 0.19" in " ".join(estimate_memory(model, Inference(profile="vllm", engine={"version": 0.19})).notes)
