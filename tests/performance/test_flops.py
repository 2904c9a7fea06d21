"""What a forward pass computes, against figures worked out by hand and published ones."""

from functools import partial

import pytest
from small_models import LLAMA, MIXTRAL, llama, other

from planner.memory.parallel.tensor import tensor_share
from planner.models.readers.config_json import read_config
from planner.performance.flops import MatrixProduct, _reads_encoder_output, forward_work, mean_context_tokens
from planner.plan.catalog import Catalog

LENGTH = 2048


def test_every_matrix_of_a_llama_counts_twice_for_each_token() -> None:
    work = forward_work(llama(), 3, LENGTH)
    matrices = 32 * (4 * 4096**2 + 3 * 4096 * 11_008)
    assert work.layer_flops == 2 * matrices * 3 * LENGTH
    assert work.head_flops == 2 * 4096 * 32_000 * 3 * LENGTH
    assert work.logits == 3 * LENGTH * 32_000
    assert work.attention_flops == pytest.approx(32 * 4 * 4096 * 3 * LENGTH * (LENGTH + 1) / 2)
    assert (work.layers, work.expert_layers) == (32, 0)


@pytest.mark.parametrize(
    ("name", "of_all", "flops_over_active"),
    [
        ("meta-llama/Meta-Llama-3-8B", 8192, 6.41),
        ("meta-llama/Meta-Llama-3-70B", 8192, 6.36),
        ("meta-llama/Llama-3.1-405B", 8192, 6.2),
        ("Qwen/Qwen3-30B-A3B", 4096, 6.97),
        ("Qwen/Qwen3-235B-A22B", 4096, 6.73),
        ("deepseek-ai/DeepSeek-V3", 4096, 7.0),
    ],
)
def test_operations_over_parameters_are_as_nvidia_publishes_them(
    name: str, of_all: int, flops_over_active: float, catalog: Catalog
) -> None:
    """Megatron-Bridge's tables: TFLOPS per card over tokens per second, per active parameter."""
    architecture = catalog.models.model(name)
    work = forward_work(architecture, 1, of_all)
    assert 3 * work.flops / of_all / architecture.active_parameters == pytest.approx(flops_over_active, rel=0.07)


def test_a_gpt_iteration_is_korthikantis_formula() -> None:
    """72·b·s·L·h²·(1 + s/(6h) + V/(12hL)), which counts the full square of attention (arXiv 2205.05198, appendix)."""
    width, layers, vocabulary, batch = 1024, 24, 50_304, 4
    config: dict[str, object] = {"model_type": "gpt2", "n_embd": width, "n_layer": layers, "n_head": 16}
    config |= {"vocab_size": vocabulary, "n_positions": LENGTH}
    work = forward_work(read_config(config, "gpt"), batch, LENGTH)
    formula = 72 * batch * LENGTH * layers * width**2
    formula *= 1 + LENGTH / (6 * width) + vocabulary / (12 * width * layers)
    assert 3 * (work.flops + work.attention_flops) == pytest.approx(formula, rel=1e-3)


def test_a_token_visits_some_experts_only() -> None:
    mixtral = other("mixtral", MIXTRAL)
    work = forward_work(mixtral, 1, LENGTH)
    experts = [product for product in work.products if product.expert]
    assert {product.rows for product in experts} == {LENGTH * 2 / 8}
    assert sum(product.flops for product in experts) == 2 * LENGTH * 2 * 32 * 3 * 4096 * 14_336
    assert work.expert_layers == 32


def test_cards_that_share_experts_compute_more_tokens_with_fewer() -> None:
    mixtral = other("mixtral", MIXTRAL)
    shared = forward_work(tensor_share(mixtral, 1, expert_cards=4), 1, LENGTH)
    assert {product.rows for product in shared.products if product.expert} == {LENGTH * 2 / 2}
    assert shared.layer_flops == pytest.approx(forward_work(mixtral, 1, LENGTH).layer_flops)


def test_biases_of_experts_are_no_products(catalog: Catalog) -> None:
    work = forward_work(catalog.models.model("openai/gpt-oss-20b"), 1, LENGTH)
    assert all(product.inputs > 1 and product.outputs > 1 for product in work.products)


def test_a_tied_head_computes_as_an_own_one_does() -> None:
    tied = read_config(LLAMA | {"model_type": "llama", "tie_word_embeddings": True}, "tied")
    assert forward_work(tied, 1, 64).head_flops == forward_work(llama(), 1, 64).head_flops


def test_an_encoder_reads_all_of_its_input(catalog: Catalog) -> None:
    work = forward_work(catalog.models.model("google-bert/bert-base-uncased"), 1, 512)
    assert work.attention_flops == 12 * 4 * 768 * 512 * 512


def test_an_image_is_cut_by_a_convolution(catalog: Catalog) -> None:
    work = forward_work(catalog.models.model("google/vit-large-patch16-224"), 2, 1)
    cuts = [product for product in work.products if product.inputs == 3 * 16 * 16]
    assert sum(product.number for product in cuts) == 1


def test_a_decoder_reads_its_encoder(catalog: Catalog) -> None:
    work = forward_work(catalog.models.model("google-t5/t5-small"), 1, 128)
    inside = 6 * 4 * 512 * 128 * 128 + 6 * 4 * 512 * 128 * 129 / 2
    assert work.attention_flops == pytest.approx(inside + 6 * 4 * 512 * 128 * 128)


def test_latent_attention_has_heads_of_two_widths(catalog: Catalog) -> None:
    deepseek = catalog.models.model("deepseek-ai/DeepSeek-V2-Lite")
    work = forward_work(deepseek, 1, 100)
    assert work.attention_flops == pytest.approx(27 * 2 * 16 * (192 + 128) * 100 * 101 / 2)


def test_a_state_is_updated_for_each_token() -> None:

    config = {"vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2, "state_size": 16}
    short, long = (forward_work(other("mamba", config), 1, length).attention_flops for length in (10, 20))
    assert long == 2 * short > 0


read = partial(mean_context_tokens, causal=True)


def test_a_window_bounds_what_is_read() -> None:
    assert read(100, None) == 50.5
    assert read(100, 100) == 50.5
    assert read(4, 2) == (1 + 2 + 2 + 2) / 4
    assert mean_context_tokens(100, 10, causal=False) == 20
    assert mean_context_tokens(100, None, causal=False) == 100


def test_a_product_moves_both_factors_and_the_result() -> None:
    product = MatrixProduct(rows=2, inputs=3, outputs=5, number=7, expert=False)
    assert product.flops == 2 * 2 * 3 * 5 * 7
    assert product.moved_bytes(2) == 2 * 7 * (3 * 5 + 2 * 3 + 2 * 5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("decoder.layers.0.encoder_attn.k_proj", True),
        ("decoder.layers.0.encoder_attn.q_proj", False),
        ("decoder.block.0.layer.1.EncDecAttention.v.weight", True),
        ("decoder.block.0.layer.0.SelfAttention.v.weight", False),
        ("model.layers.0.cross_attn.v_proj", True),
        ("model.layers.0.self_attn.v_proj", False),
    ],
)
def test_keys_and_values_of_cross_attention_are_computed_from_the_encoder(name, expected):
    assert _reads_encoder_output(name) is expected
