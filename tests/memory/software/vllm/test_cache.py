"""Pages of vLLM's KV cache, by hand and as its logs print them."""

import pytest
from small_models import DEEPSEEK, LLAMA, bundled, llama, other
from vllm_cases import alive, setup, with_states

from planner.memory.software.vllm.cache import PageKind, Pages, _pages_of_equal_size, pages_of
from planner.models.architecture import Attention

T5 = {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4, "num_layers": 2, "vocab_size": 100}


LLAMA_3 = "meta-llama/Llama-3.1-8B"


def pages(model, length=4096, kv_format="bf16", **engine) -> Pages:
    found = pages_of(model, kv_format, setup(length, **engine), 100)
    assert found is not None
    return found


def test_a_page_holds_16_tokens_of_keys_and_values_of_every_layer():
    assert pages(bundled().models.model(LLAMA_3), 4096) == Pages(16 * 131_072, 256, 0, 32, 32, 16)
    assert Pages(1, 256, 3, 32, 32).pages == 259
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
