"""What published estimators get wrong, each with the figure that it would give."""

import pytest
from small_models import LLAMA, MIXTRAL, bundled, llama, other, small_llama
from vllm_cases import LARGE

from planner.memory.estimate import estimate_memory
from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.precision import Precision
from planner.memory.software.vllm.cache import pages_of
from planner.memory.software.vllm.setup import setup_of
from planner.memory.training.autograd.layer import saved_by_layer
from planner.memory.weights import placed_tensors, weight_bytes
from planner.units import GIB, MIB
from planner.workload.workload import Inference, Training

BF16 = Precision(2, 2, 2, autocast=False)


def cached(model, tokens=1) -> int:
    return kv_cache_term(model, 1, tokens, 0, "bf16").bytes


def shares(result, phase) -> dict[str, int]:
    found = next(p for p in result.phases if p.name == phase)
    return {share.name: share.bytes for share in found.shares}


def test_a_cache_holds_keys_and_values():
    keys_alone = 32 * 4096 * 2
    assert cached(llama()) == 2 * keys_alone


def test_grouped_heads_are_not_ignored():
    assert cached(llama(num_key_value_heads=8)) == 2 * 32 * 8 * 128 * 2 != cached(llama())


@pytest.mark.parametrize(
    ("name", "head", "width_over_heads"), [("Qwen/Qwen3-0.6B", 128, 64), ("google/gemma-3-270m-it", 256, 160)]
)
def test_the_size_of_a_head_is_not_the_width_over_heads(name, head, width_over_heads):
    model = bundled().models.model(name)
    mixer = model.main.groups[0].layer.mixer
    assert mixer.head_dim == head
    assert model.hidden // mixer.heads == width_over_heads
    assert cached(model) == 2 * model.main.layer_count * mixer.kv_heads * head * 2


def test_the_latent_cache_is_neither_expanded_nor_half():
    deepseek = bundled().models.model("deepseek-ai/DeepSeek-V3")
    per_layer = cached(deepseek) // 61 // 2
    assert per_layer == 512 + 64
    assert per_layer != 128 + 192  # value and key of one head
    assert per_layer * 25 < 128 * (192 + 128)  # all heads expanded: a hundred times too much


def test_sliding_layers_do_not_cache_the_whole_context():
    gemma = bundled().models.model("google/gemma-3-4b-it")
    naive = 2 * gemma.main.layer_count * 4 * 256 * 2 * 131_072
    assert cached(gemma, 131_072) < naive / 6


def test_the_gate_of_a_feed_forward_block_is_kept_too():
    layer = llama().main.groups[0].layer
    # gate, its activation, up and their product, not two tensors of the inner width
    assert saved_by_layer(layer, 4096, BF16, "sdpa").feed_forward == 4 * 11_008 * 2


def test_each_token_is_kept_by_the_experts_that_it_visits():
    layer = other("mixtral", MIXTRAL).main.groups[0].layer
    visits = 2 * 2 * (2 * 4096 + 4 * 14_336)
    assert saved_by_layer(layer, 4096, BF16, "sdpa").feed_forward == visits + 4 * 8


def test_all_experts_are_in_memory_though_few_are_active():
    mixtral = bundled().models.model("mistralai/Mixtral-8x7B-v0.1")
    # Of 8 experts 6 are idle for a token: 46.70 B parameters, 12.88 B of them active.
    idle = 32 * 6 * 3 * 4096 * 14_336
    assert mixtral.parameters == 46_702_792_704
    assert mixtral.active_parameters == mixtral.parameters - idle == 12_879_925_248
    assert weight_bytes(mixtral, "bf16") == 2 * mixtral.parameters


def test_tied_embeddings_are_one_tensor():
    qwen = bundled().models.model("Qwen/Qwen3-0.6B")
    assert qwen.parameters == 596_049_920  # with the head once more, 751,632,384


def test_states_of_pure_bf16_training_are_bf16():
    # Twelve or sixteen bytes a parameter is what most assume; PyTorch makes states like their parameters.
    result = estimate_memory(llama(), Training(compute="bf16"))
    assert shares(result, "step")["optimizer_states"] == 4 * llama().parameters


def test_training_is_not_four_times_the_weights():
    result = estimate_memory(llama(), Training(compute="bf16", micro_batch=8))
    assert result.total_bytes > 1.5 * 4 * weight_bytes(llama(), "bf16")


def test_the_loss_holds_more_than_the_logits():
    # Llama 3 at 4,096 tokens: 4,096 · 128,256 logits are 1.05 GB in bf16, and 7.35 GB with all that the loss holds.
    llama3 = bundled().models.model("meta-llama/Llama-3.1-8B")
    result = estimate_memory(llama3, Training(compute="bf16", micro_batch=2, sequence_length=2048))
    assert shares(result, "loss")["logits"] == 14 * 4096 * 128_256 == 7_354_712_064


def test_the_peak_is_no_sum_of_things_that_are_never_there_together():
    result = estimate_memory(llama(), Training(compute="bf16", micro_batch=4))
    everything: dict[str, int] = {}
    for phase in result.phases:
        for share in phase.shares:
            everything[share.name] = max(everything.get(share.name, 0), share.bytes)
    assert result.total_bytes < sum(everything.values()) - 10 * GIB


def test_the_verdict_counts_the_cache():
    # The weights of Llama 2 7B (12.6 GiB) fit a 24 GB card; with 32 sequences of 4,096 tokens (64 GiB) they do not.
    card = bundled().hardware.gpu("rtx-4090")
    available = bundled().hardware.usable_memory(card)
    assert estimate_memory(llama(), Inference(), card, available).verdict == "fits"
    assert estimate_memory(llama(), Inference(batch=32), card, available).verdict == "does-not-fit"


def test_the_scratch_of_layers_does_not_add_up():
    shallow, deep = (other("llama", LLAMA, num_hidden_layers=n) for n in (4, 32))
    results = [shares(estimate_memory(model, Inference()), "prefill")["activations"] for model in (shallow, deep)]
    assert results[0] == results[1]


def test_nf4_is_more_than_four_bits():
    llama3 = bundled().models.model("meta-llama/Llama-3.1-8B")
    naive = llama3.parameters // 2
    # 6,979,321,856 of 8,030,261,248 parameters are projections: 4.5 bits there, 16 elsewhere
    assert weight_bytes(llama3, "nf4") == 6_979_321_856 * 9 // 16 + 2 * (8_030_261_248 - 6_979_321_856)
    assert weight_bytes(llama3, "nf4") > 1.5 * naive


def test_8_bit_adam_is_not_two_bytes_everywhere():
    llama3 = bundled().models.model("meta-llama/Llama-3.1-8B")
    states = shares(estimate_memory(llama3, Training(optimizer="adamw-8bit")), "step")["optimizer_states"]
    embedding = 128_256 * 4096
    assert states > 2 * llama3.parameters + 6 * embedding


def test_qlora_keeps_the_embedding_the_head_and_the_norms_in_fp32():
    # peft's prepare_model_for_kbit_training: 4.2 GB more than in 16 bits, for Llama 3 8B
    llama3 = bundled().models.model("meta-llama/Llama-3.1-8B")
    projections, rest = 6_979_321_856, 8_030_261_248 - 6_979_321_856
    for scheme, stored in (("nf4", projections * 9 // 16), ("nf4-dq", nested(llama3))):
        result = estimate_memory(llama3, Training(method="qlora", weights=scheme))
        assert result.term("weights").bytes == stored + 4 * rest
    in_16_bits = estimate_memory(llama3, Training(method="qlora", profile="unsloth"))
    assert in_16_bits.term("weights").bytes == nested(llama3) + 2 * rest


def nested(model) -> int:
    """Return the bytes of NF4 whose scales are quantized again: 4.127 bits a weight, matrix by matrix."""
    return weight_bytes(model, "nf4-dq") - 2 * (8_030_261_248 - 6_979_321_856)


def test_double_quantization_takes_4_127_bits():
    llama3 = bundled().models.model("meta-llama/Llama-3.1-8B")
    assert 8 * nested(llama3) / 6_979_321_856 == pytest.approx(4 + 8 / 64 + 32 / (64 * 256), rel=1e-3)


def test_8_bit_states_are_32_bit_for_embeddings_and_below_4096_elements():
    model = small_llama()
    small, wide, embedding = [], [], []
    for tensor, count in placed_tensors(model):
        kind = embedding if tensor.role == "embedding" else wide if tensor.size >= 4096 else small
        kind.append((tensor.size, count))
    assert small
    assert wide
    expected = sum(8 * size * count for size, count in (*small, *embedding))
    expected += sum(2 * (size + 4 * -(-size // 256)) * count for size, count in wide)
    states = estimate_memory(model, Training(optimizer="adamw-8bit", sequence_length=16))
    assert shares(states, "step")["optimizer_states"] == expected


def test_bitsandbytes_kept_the_inputs_of_quantized_layers_beyond_their_step():
    # 0.42 and earlier, which LitGPT requires: 0.9 GB for 1,034 tokens through a network of 3 B parameters.
    model = bundled().models.model("stabilityai/stablelm-base-alpha-3b")
    how = {"method": "qlora", "compute": "bf16", "sequence_length": 1034, "lora": {"dropout": 0.05}}
    result = estimate_memory(model, Training(profile="litgpt", **how))
    forward = next(phase for phase in result.phases if phase.name == "forward")
    held = sum(share.bytes for share in forward.shares if share.name == "buffers")
    assert 1.6 * GIB < held < 1.8 * GIB  # of this step, and of the one before


def pages(name: str, length: int, kv_format: str = "bf16"):
    setup = setup_of(Inference(profile="vllm", context_length=length), LARGE)
    return pages_of(bundled().models.model(name), kv_format, setup, length)


def test_vllm_keeps_pages_for_layers_that_are_not_there():
    # Every token of Gemma 3 27B takes pages of 10 of its 62 layers in each of 7 groups: of 70 layers.
    found = pages("google/gemma-3-27b-it", 131_072)
    assert (found.layers, found.slots) == (62, 70)
    counted_as_full = 62 * 131_072 * 2 * 16 * 128 * 2
    assert found.page_bytes * found.pages < counted_as_full / 2


def test_vllm_caches_the_latent_once_and_in_fp8_as_it_is():
    bf16, fp8 = (pages("deepseek-ai/DeepSeek-V3", 16, kv_format).page_bytes for kv_format in ("bf16", "fp8"))
    assert bf16 == 61 * 16 * 576 * 2  # not 2 · 512, and not the 128 heads' keys and values
    assert fp8 == 61 * 16 * 576  # 656 bytes a token only where attention is sparse


def test_sliding_layers_of_llama_cpp_keep_more_than_their_window_and_less_than_the_context():
    gemma = bundled().models.model("google/gemma-3-27b-it")
    kept = [
        shares(estimate_memory(gemma, Inference(weights="Q4_K_M", context_length=32_768, engine=engine)), "decode")
        for engine in ({"slots": 1}, {"slots": 1, "swa_full": True})
    ]
    cell = 2 * 16 * 128 * 2
    assert kept[0]["kv_cache"] == cell * (10 * 32_768 + 52 * 1536)  # window 1,024 and a micro-batch of 512
    assert kept[1]["kv_cache"] == cell * 62 * 32_768 == 15_872 * MIB


def test_an_80_gb_card_has_79_gib_not_80():
    card = bundled().hardware.gpu("h100-sxm5-80gb")
    assert 79.0 < bundled().hardware.usable_memory(card).bytes / GIB < 79.7


def test_logits_of_llama_cpp_are_no_memory_of_the_card():
    model = bundled().models.model("meta-llama/Llama-3.1-8B")
    result = estimate_memory(model, Inference(weights="Q4_K_M"))
    assert result.term("logits") is None
    rows = 4 * 128_256 * 4
    embedding = 281.81 * MIB  # what its log names as the CPU's model buffer
    assert result.host_bytes > rows + embedding
