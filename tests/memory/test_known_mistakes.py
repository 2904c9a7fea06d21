"""Every number and defect that the survey of other tools names, each held by a test: here or where it says.

The survey: key/value caches and states (its section 2.7), inference activations (2.8), fixed overheads (2.9) and the
confirmed defects of ten tools.
"""

from pathlib import Path

import pytest
from small_models import DEEPSEEK, bundled, llama, other, small_llama
from vllm_cases import LARGE

from planner.dtypes import KV_FORMATS
from planner.memory.chance import ByteInterval
from planner.memory.estimate import estimate_memory
from planner.memory.fit import judge_bytes
from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.overhead import cublas_workspace_bytes, fixed_overhead, framework_overhead
from planner.memory.parallel.ranks import timelines_by_stage
from planner.memory.software.vllm import buffers_term, sampler_term
from planner.memory.software.vllm.cache import pages_of
from planner.memory.software.vllm.setup import setup_of
from planner.units import GIB, KIB, MIB
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference

HERE = Path(__file__).parent
ELSEWHERE = {
    "a cache has keys and values: factor 2": "test_mistakes_of_other_tools.py::test_a_cache_holds_keys_and_values",
    "grouped heads of keys": "test_mistakes_of_other_tools.py::test_grouped_heads_are_not_ignored",
    "head size ≠ width / heads": "test_mistakes_of_other_tools.py::test_the_size_of_a_head_is_not_the_width_over_heads",
    "latent of 576 numbers": "test_mistakes_of_other_tools.py::test_the_latent_cache_is_neither_expanded_nor_half",
    "gate of an MLP": "test_mistakes_of_other_tools.py::test_the_gate_of_a_feed_forward_block_is_kept_too",
    "activations of experts": "test_mistakes_of_other_tools.py::test_each_token_is_kept_by_the_experts_that_it_visits",
    "all experts resident": "test_mistakes_of_other_tools.py::test_all_experts_are_in_memory_though_few_are_active",
    "tied embeddings once": "test_mistakes_of_other_tools.py::test_tied_embeddings_are_one_tensor",
    "states of bf16 training": "test_mistakes_of_other_tools.py::test_states_of_pure_bf16_training_are_bf16",
    "8-bit states of embeddings": "test_mistakes_of_other_tools.py::test_8_bit_adam_is_not_two_bytes_everywhere",
    "NF4 has 4.5 bits": "test_mistakes_of_other_tools.py::test_nf4_is_more_than_four_bits",
    "double quantization is off": "test_training_in_full.py::test_double_quantization_is_not_the_default_and_saves",
    "LoRA keeps more": (
        "test_training_in_full.py::test_adapters_on_all_linears_keep_more_activations_than_full_training"
    ),
    "ZeRO divides by replicas": "parallel/test_sharding.py::test_states_are_divided_by_replicas_only",
    "heads repeated over GPUs": (
        "parallel/test_tensor.py::test_heads_of_keys_and_values_are_repeated_where_cards_are_more"
    ),
    "the latent on every GPU": "parallel/test_tensor.py::test_the_latent_is_on_every_card",
    "vLLM pads 62 layers to 70, 34 to 35": "software/vllm/test_cache.py::test_groups_of_hybrid_models_are_filled_up",
    "vLLM's sliding pages": (
        "software/vllm/test_cache.py::test_sliding_layers_hold_the_window_the_tokens_in_flight_and_one_page_more"
    ),
    "vLLM's sampler warm-up": "software/vllm/test_profile.py::test_the_profiled_peak_of_vllm_011_on_an_h100",
    "79.19 GiB of an 80 GB H100": "test_phases.py::test_the_pool_is_a_share_of_what_a_process_sees",
    "llama.cpp's sliding cells, 27.00 MiB": "software/llama_cpp/test_setup.py::test_cells_are_what_the_logs_print",
    "llama.cpp's latent has no values": "software/llama_cpp/test_setup.py::test_latent_attention_keeps_no_values",
    "scratch of a quantized cache": (
        "software/test_llama_cpp_by_hand.py::test_a_quantized_cache_is_smaller_and_its_buffer_larger"
    ),
    "logits in RAM": "software/test_llama_cpp_by_hand.py::test_the_logits_that_are_handed_out_are_in_ram",
    "layers in RAM": "software/llama_cpp/test_setup.py::test_what_is_not_on_the_card_is_in_ram",
    "transformers' sliding window": "inference/test_kv_cache.py::test_a_sliding_layer_keeps_its_window_once_it_decodes",
    "shared caches": "inference/test_kv_cache.py::test_shared_caches_are_kept_once",
    "cross-attention": ("inference/test_kv_cache.py::test_a_decoder_keeps_the_encoders_length_for_cross_attention"),
    "eager scores": "inference/test_scratch.py::test_eager_scores_grow_with_the_square_of_the_prompt",
    "logits of the last token": "test_logits.py::test_logits_of_the_last_token_or_of_the_whole_prompt",
    "layers' buffers do not add up": (
        "inference/test_scratch.py::test_scratch_is_of_the_widest_block_and_does_not_add_up_over_layers"
    ),
}


@pytest.mark.parametrize("mistake", ELSEWHERE)
def test_a_mistake_has_its_test(mistake):
    place, _, name = ELSEWHERE[mistake].partition("::")
    assert f"def {name}(" in (HERE / place).read_text(encoding="utf-8")


def shares(result, phase: str) -> dict[str, int]:
    found = next(one for one in result.phases if one.name == phase)
    return {share.name: share.bytes for share in found.shares}


def deltanets():
    """Return 64 layers of Qwen's hybrid: 48 gated delta nets of 48 value heads and 16 key heads, 128 wide."""
    sizes = {
        "hidden_size": 5120,
        "intermediate_size": 17_408,
        "num_hidden_layers": 64,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 248_320,
        "linear_num_value_heads": 48,
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "full_attention_interval": 4,
        "tie_word_embeddings": False,
    }
    return other("qwen3_5_text", sizes)


def test_states_of_gated_delta_nets_are_598_mib_for_four_slots():
    # lmstudio-ai/lmstudio-bug-tracker#1862: 48 layers · (48 · 128 · 128 + 3 · 10,240) · 4 bytes · 4 sequences
    by_hand = 48 * (48 * 128 * 128 + 3 * 10_240) * 4 * 4
    assert by_hand / MIB == 598.5
    result = estimate_memory(deltanets(), Inference(profile="llama.cpp", weights="Q4_0", engine={"slots": 4}))
    assert shares(result, "decode")["state"] == by_hand


def test_a_token_of_sparse_latent_attention_in_fp8_is_656_bytes():
    # 512 numbers in fp8, 16 bytes of scales and 64 rotary numbers in bf16
    dense = other("deepseek_v3", DEEPSEEK)
    groups = tuple(
        group.evolve(layer=group.layer.evolve(mixer=group.layer.mixer.evolve(indexer_dim=128)))
        for group in dense.main.groups
    )
    sparse = dense.evolve(stacks=(dense.main.evolve(groups=groups),))
    setup = setup_of(Inference(profile="vllm", context_length=16), LARGE)
    found = pages_of(sparse, "fp8", setup, 16)
    assert found.page_bytes == 4 * 16 * (656 + 128 + 4)  # beside the indexer's keys with their scale


@pytest.mark.parametrize(("name", "bits"), [("q8_0", 8.5), ("q4_0", 4.5), ("fp16", 16), ("bf16", 16)])
def test_formats_of_a_cache_have_scales(name, bits):
    assert KV_FORMATS[name] == bits


def test_pages_are_rounded_to_16_tokens():
    setup = setup_of(Inference(profile="vllm", context_length=1), LARGE)
    token = 2 * 32 * 4096 * 2
    assert pages_of(llama(), "bf16", setup._replace(length=17), 1).pages == 2
    assert pages_of(llama(), "bf16", setup._replace(length=17), 1).page_bytes == 16 * token


def test_states_do_not_grow_with_the_context():
    states = deltanets()
    short, long = (
        shares(estimate_memory(states, Inference(context_length=n)), "decode")["state"] for n in (64, 65_536)
    )
    assert short == long


def test_sampling_in_vllm_warms_up_with_all_sequences_not_with_the_layers():
    # About 14.9 kB · V of published H100 logs: 1,024 sequences of 14 bytes a logit and its copies, whatever the length.
    setup = setup_of(Inference(profile="vllm", context_length=4096), LARGE)
    term = sampler_term(llama(), setup)
    assert setup.sequences == 1024
    assert term.bytes == 1024 * 32_000 * (2 + 4 + 8)
    assert abs(term.bytes / (14_900 * 32_000) - 1) < 0.04


def test_cuda_graphs_are_told_as_a_range_that_holds_what_was_published():
    found = buffers_term(
        llama(),
        setup_of(Inference(profile="vllm", context_length=64, engine={"version": "0.11"}), LARGE),
    )
    assert found.low_bytes <= 0.1 * GIB
    assert found.high_bytes >= 1.79 * GIB
    assert found.certainty == "assumed"


@pytest.mark.parametrize(
    ("architecture", "least", "most"),
    [("Turing", 141, 141), ("Ada Lovelace", 426, 426), ("Hopper", 522, 522), ("Blackwell", 717, 749)],
)
def test_contexts_are_those_that_were_measured(architecture, least, most):
    card = next(gpu for gpu in bundled().hardware.gpus if gpu.architecture == architecture)
    assert least <= framework_overhead(fixed_overhead(card), 0, 0).context / MIB <= most


def test_the_matrix_library_takes_8_mib_and_32_from_hopper_on():
    assert cublas_workspace_bytes(bundled().hardware.gpu("rtx-4090")) == 2 * 4096 * KIB + 8 * 16 * KIB == 8.125 * MIB
    assert cublas_workspace_bytes(bundled().hardware.gpu("h100-sxm5-80gb")) == 32 * MIB


def test_the_usable_memory_is_compared_not_the_label():
    card = bundled().hardware.gpu("h100-sxm5-80gb")
    usable = bundled().hardware.usable_memory(card)
    need = ByteInterval(round(79.5 * GIB), round(79.5 * GIB), round(79.5 * GIB))
    assert need.bytes < 80 * GIB
    assert judge_bytes(need, usable, 0, ()).verdict == "does-not-fit"


def test_free_memory_counts_and_not_the_total():
    card = bundled().hardware.gpu("rtx-4090")
    usable = bundled().hardware.usable_memory(card)
    alone, beside = (
        estimate_memory(llama(), Inference(other_processes_bytes=taken), card, usable).verdict
        for taken in (0, 12 * GIB)
    )
    assert (alone, beside) == ("fits", "does-not-fit")


def test_what_stays_in_ram_is_a_result_of_its_own():
    model = bundled().models.model("meta-llama/Llama-3.1-8B")
    whole, half = (
        estimate_memory(model, Inference(profile="llama.cpp", weights="Q4_K_M", gpu_layers=layers))
        for layers in (33, 16)
    )
    assert half.total_bytes < whole.total_bytes
    assert half.host_bytes > whole.host_bytes + whole.term("weights").bytes - half.term("weights").bytes - MIB


def test_a_cache_in_8_bits_is_half_of_one_in_16():
    plain, fp8 = (kv_cache_term(small_llama(), 1, 1024, 0, name).bytes for name in ("bf16", "fp8"))
    assert plain == 2 * fp8


def test_only_the_stage_with_the_tower_reads_images():
    model = bundled().models.model("Qwen/Qwen2-VL-7B-Instruct")
    workload = Inference(parallel=Parallel(pipeline=2), images=1)
    first, last = (
        {term.name for snapshot in snapshots.snapshots for term in snapshot.terms}
        for _, snapshots in timelines_by_stage(model, with_defaults(workload, model, 2))
    )
    assert "buffers" in first
    assert "kv_cache" in last
