"""Published memory measurements are read as the runs that they were."""

import csv
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def catalog():
    from planner.plan.catalog import load_catalog

    return load_catalog()


@pytest.fixture(scope="module")
def records():
    with (ROOT / "tests" / "truth" / "memory.csv").open(encoding="utf-8", newline="") as stream:
        return {record["id"]: record for record in csv.DictReader(stream)}


@pytest.fixture(scope="module")
def row_of(records):
    """Return a function that reads a row of the table, with other entries where they are given."""
    from memory_rows import Row

    return lambda name, **changed: Row.from_csv(records[name] | changed)


@pytest.fixture(scope="module")
def answer_to(catalog):
    """Return a function that answers a row as the benchmark does."""
    from truth_rows import predict
    from truth_tuned import TUNED, predict_tuned

    return lambda row: (predict_tuned if row.kind in TUNED else predict)(row, catalog)


@pytest.fixture(scope="module")
def error_of(row_of, answer_to):
    """Return a function that gives the signed relative error of the estimate for a row of the table."""

    def error(name):
        row = row_of(name)
        return answer_to(row).bytes / 2**30 / row.measured_gib - 1

    return error


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("bf16", "bf16"),
        ("bf16 (stated elsewhere in the README as torch_dtype=bfloat16)", "bf16"),
        ("fp8", "fp8"),
        ("nf4 (bnb)", "nf4"),
        ("nf4 double-quant (bnb)", "nf4-dq"),
        ("int4 (AWQ, g128)", "awq4-128"),
        ("Q4_K - Medium (GGUF)", "Q4_K_M"),
        ("Q5_K - Small (GGUF)", "Q5_K_S"),
        ("IQ4_XS - 4.25 bpw (GGUF)", "IQ4_XS"),
        ("f16 (GGUF)", "F16"),
        ("int8 (quanto)", None),
        ("int4wo-64", None),
        ("nf4 double-quant (torchao)", None),
    ],
)
def test_a_weight_format_gets_its_name_on_the_command_line(written, name):
    from memory_rows import scheme_named

    assert scheme_named(written) == name


def test_keys_and_values_may_have_a_format_each():
    from memory_rows import cache_formats

    assert cache_formats("q8_0") == ("q8_0", "q8_0")
    assert cache_formats("f16/q8_0") == ("fp16", "q8_0")
    assert cache_formats("iq4_nl/f16") is None


def test_a_cache_in_q8_0_is_covered(error_of):
    assert abs(error_of("ikllama-011")) < 0.001


@pytest.mark.parametrize("name", ["mcore-021", "mcore-051", "mcore-052", "mcore-028"])
def test_recomputation_local_attention_and_virtual_stages_of_megatron_are_read(name, error_of):
    assert abs(error_of(name)) < 0.02


@pytest.mark.parametrize("name", ["mcore-070", "mcore-073", "mcore-074"])
def test_experts_of_megatron_are_split_over_replicas(name, error_of):
    assert abs(error_of(name)) < 0.025


def test_experts_in_a_group_of_their_own_are_not_covered(row_of, answer_to):
    assert "a group of their own" in answer_to(row_of("mcore-075")).reason


@pytest.mark.parametrize("name", ["mcore-011", "mcore-061"])
def test_what_a_row_of_megatron_does_not_state_is_not_guessed(name, row_of, answer_to):
    assert "not stated" in answer_to(row_of(name)).reason


@pytest.mark.parametrize(
    ("other", "tokens"), [("n_ctx=512 n_batch=256", 256), ("n_batch=2048 n_ubatch=64", 64), ("", 512)]
)
def test_the_batch_of_an_old_llama_cpp_is_its_micro_batch(other, tokens):
    from engine_rows import total_run

    assert total_run("llama.cpp", "512", other, "F16").workload.engine.n_ubatch == tokens


def test_copies_for_cards_that_work_on_several_micro_batches_are_counted(error_of):
    assert abs(error_of("llcpp-039")) < 0.01


def test_forks_of_llama_cpp_are_covered_only_where_they_do_what_it_does(row_of, answer_to):
    assert "ik_llama.cpp's own" in answer_to(row_of("ikllama-056")).reason
    assert answer_to(row_of("ikllama-084")).bytes


def test_fp8_weights_are_split_over_cards_as_fp8(row_of, answer_to):
    half = answer_to(row_of("vllm-003")).bytes
    assert 0.5 < answer_to(row_of("vllm-003", precision="fp8")).bytes / half < 0.6


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "mbridge-099", "model": "Qwen/Qwen3-30B-A3B", "technique": "LoRA r=8; TP4 EP4; SP=yes", "kind": "lora"},
        {"id": "fluxl-001", "model": "black-forest-labs/FLUX.1-dev", "technique": "QLoRA r=4", "kind": "qlora"},
        {"id": "vllm-099", "model": "nobody/nothing", "technique": "vLLM TP=4 EP4", "n_gpus": "4", "kind": "kv_only"},
    ],
)
def test_a_row_that_is_not_covered_has_a_reason(changed, row_of, answer_to):
    assert answer_to(row_of("vllm-003", **changed)).reason


def test_a_row_of_vllm_without_a_batch_is_one_sequence(row_of, answer_to):
    assert answer_to(row_of("vllm-007", batch_size="")).bytes == answer_to(row_of("vllm-007", batch_size="1")).bytes


def test_memory_that_a_card_has_for_its_cache_is_not_the_cache(row_of, answer_to):
    for name in ("vllm-006", "vllm-010"):
        assert "the one with the least" in answer_to(row_of(name)).reason


def test_a_file_of_its_author_s_own_mixture_is_read_as_its_log_counts_it(error_of):
    assert abs(error_of("ikllama-031")) < 0.0001


def test_a_tied_head_that_awq_stores_is_there_while_loading(error_of):
    for name in ("awq-017", "awq-019", "qwen2-004", "qwen25-004"):
        assert abs(error_of(name)) < 0.015


def test_nf4_multiplies_in_fp32_unless_told_otherwise(error_of):
    assert abs(error_of("optllm-003")) < 0.01


def test_offload_and_slices_of_a_pipeline_are_read(row_of, answer_to):
    plain, sliced = (answer_to(row_of(name)) for name in ("sdxl-003", "sdxl-007"))
    assert sliced.bytes < plain.bytes
    assert "offload: sequential" in answer_to(row_of("sdxl-006")).how
    assert "another pipeline" in answer_to(row_of("sdxl-010")).reason


def test_weights_that_are_quantised_on_the_card_are_there_before(error_of):
    for name in ("dtao-011", "dtao-012"):
        assert abs(error_of(name)) < 0.01


def test_accumulated_micro_batches_are_read(row_of, answer_to):
    newer = {"id": "newer-003"}
    alone = answer_to(row_of("bertl-003", image_size_or_other="grad_accum=1", **newer)).bytes
    assert answer_to(row_of("bertl-003", **newer)).bytes > alone


def test_what_old_versions_of_pytorch_held_is_counted(error_of):
    # a batch of four after gradients of zeros, with the scores that softmax saved; four batches with checkpoints
    for name in ("bertl-002", "bertl-005", "bertl-004"):
        assert abs(error_of(name)) < 0.025
    assert abs(error_of("hfbench-004")) < 0.04


def test_allocated_bytes_beside_a_context_are_compared_with_both(row_of, answer_to):
    both, allocated = row_of("optgptq-016"), row_of("optgptq-016", metric="max_memory_allocated")
    assert answer_to(both).bytes - answer_to(allocated).bytes == 426 * 2**20
    assert answer_to(both).low - answer_to(allocated).low == 141 * 2**20


@pytest.mark.parametrize("family", ["awq", "ao-llama", "exllama", "litgpt", "litgpt-mgpu"])
def test_programs_with_modules_of_their_own_hold_what_their_source_says(family, records, row_of, answer_to):
    from memory_rows import Predicted

    rows = [row for row in map(row_of, records) if row.family == family and row.kind == "inference" and row.strict]
    found = [(answer_to(row), row.measured_gib) for row in rows]
    errors = [abs(one.bytes / 2**30 / measured - 1) for one, measured in found if isinstance(one, Predicted)]
    assert len(errors) > 0.8 * len(rows)
    assert median(errors) < 0.015


def test_keys_that_gpt_neox_returned_were_in_fp32(error_of):
    for name in ("sdpa-193", "sdpa-201"):
        assert abs(error_of(name)) < 0.005


def test_adapters_of_ms_swift_are_named_as_in_the_network(error_of):
    assert abs(error_of("swift-038")) < 0.03


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("torchtune-003", {}, "torch.compile"),
        ("torchtune-017", {}, "offloaded"),
        ("torchtune-003", {"n_gpus": "2"}, "several cards"),
        ("torchtune-003", {"seq_len": "packed"}, "lengths"),
        ("torchtune-003", {"precision": "nf4 double-quant (torchao)"}, "weight format"),
        ("torchtune-020", {"technique": "LoRA; grad_ckpt=yes"}, "rank"),
        ("torchtune-020", {"technique": "LoRA r=8 targets=nothing"}, "rank"),
    ],
)
def test_adapters_whose_run_is_not_known_have_a_reason(name, changed, reason, row_of, answer_to):
    assert reason in answer_to(row_of(name, **changed)).reason


def _speed(**fields):
    from throughput_rows import Row

    empty = dict.fromkeys(("params_b", "active_params_b", "precision", "batch_global", "batch_micro", "seq_len"), "")
    empty |= dict.fromkeys(("output_len", "parallelism", "recompute", "framework", "notes"), "")
    plain = {
        "id": "six-1",
        "task": "infer_decode",
        "model": "m",
        "gpu": "H100",
        "n_gpus": "4",
        "value": "1",
        "unit": "u",
    }
    return Row.from_csv({**empty, **plain, "quality": "A", **fields})


@pytest.mark.parametrize(
    ("fields", "degrees"),
    [
        ({"parallelism": "TP4 EP4"}, (4, 1)),
        ({"parallelism": "TP2,PP4"}, (2, 4)),
        ({"parallelism": "TP3", "framework": "Transformers 4.46.0"}, (1, 4)),
        ({"parallelism": "layer split"}, (1, 4)),
    ],
)
def test_experts_and_device_maps_take_no_tensor_parallel_cards(fields, degrees):
    import throughput_inference

    assert throughput_inference.degrees(_speed(**fields)) == degrees


def test_programs_are_read_in_the_version_of_the_source():
    from throughput_programs import program_of, with_most_similar_constants

    old, new = (program_of(name, "bf16", has_experts=False) for name in ("vLLM 0.13.0", "vLLM 0.15.1"))
    assert (old.schedules_ahead, new.schedules_ahead) == (False, True)
    triton, cuda = (
        program_of(f"Transformers {version}", "awq4-128", has_experts=False) for version in ("4.46.0", "4.51.3")
    )
    assert "awq" in triton.quantised_layer_seconds
    assert "awq" not in cuda.quantised_layer_seconds
    autogptq = program_of("Transformers 4.46.0", "gptq8-128", has_experts=False)
    assert autogptq.quantised_layer_seconds["gptq8"] == pytest.approx(610e-6 * (1 + 31 / 46))
    # Its kernels are counted in its source code, whatever is left out; the hosts of its source are not known then.
    assert with_most_similar_constants(autogptq).quantised_layer_seconds["gptq8"] == pytest.approx(
        610e-6 * (1 + 31 / 46)
    )
    assert with_most_similar_constants(autogptq).older_host_slowdown == 1.0
    assert program_of("SGLang 0.4.6", "gptq4-128", has_experts=True).eager
    assert program_of("a program that nobody knows", "bf16", has_experts=False) is None


def test_products_of_one_row_without_vector_loads_are_bound_by_the_multiprocessors(catalog):
    from throughput_programs import program_of

    may_2024, stacked = program_of("llama.cpp llama-bench (May 2024)", "F16", has_experts=False), "a100-sxm4-80gb"
    cards = catalog.hardware
    assert may_2024.read_share(cards.gpu(stacked), "F16").fraction == pytest.approx(8 * 108 * 1.41e9 / 2.039e12)
    assert may_2024.read_share(cards.gpu(stacked), "Q4_K_M").fraction == 0.57
    assert may_2024.read_share(cards.gpu("rtx-4090"), "F16").fraction == 0.92


def test_an_interval_is_scored_by_its_width_and_what_lies_beyond_it():
    from throughput_reliability import Stated, calibrated_without_source, came_true

    inside, beyond = Stated("a", 0.1, 0.2), Stated("b", -0.3, 0.2)
    assert (inside.inside, beyond.inside) == (True, False)
    assert inside.score == pytest.approx(0.4)
    assert beyond.score == pytest.approx(0.4 + 10 * 0.1)
    assert inside.at_most(0.9)
    assert not inside.at_most(0.5)
    assert beyond.at_most(0.05)
    assert came_true([inside, beyond])[3] == 0.5
    # Without its own source, the interval holds the other's error: 0.3 ÷ 0.2 and 0.1 ÷ 0.2 of the width.
    assert [row.half_width for row in calibrated_without_source([inside, beyond])] == pytest.approx([0.3, 0.1])


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("liger-049", "geglu,huggingface,8,2048,4096,11008"),
        ("liger-051", "rope,liger,2048,512,32,8"),
        ("liger-053", "rope,liger,4096,8192,32,8"),
        ("liger-080", "fused_moe,huggingface,8192,8,2048,768,8"),
        ("xtuner-loss-001", "head,torch,32768,4096,151936"),
    ],
)
def test_the_sizes_of_an_operator_are_read(name, run, row_of):
    from traced_kernels import run_of

    assert run_of(row_of(name)) == run


def test_operators_are_traced_one_after_another(row_of, catalog):
    from memory_rows import Excluded
    from traced_kernels import predict_kernels

    rows = [row_of(name) for name in ("liger-051", "liger-052", "liger-021")]
    (first, rotated), (second, plain), (_, norm) = predict_kernels(rows, catalog.hardware)
    assert rotated.bytes / 2**30 == pytest.approx(first.measured_gib, rel=0.002)
    assert plain.bytes / 2**30 == pytest.approx(second.measured_gib, rel=0.002)
    assert isinstance(norm, Excluded)


def test_megatrons_uneven_stages_and_latent_heads_are_read_from_its_own_files(error_of):
    assert abs(error_of("mcore-035")) < 0.005
    assert abs(error_of("mcore-045")) < 0.035


def test_benchmarks_of_inferencex_have_its_lengths_and_its_servers_settings():
    from serving_accuracy import harness_of

    row = {"batch_size": "64", "isl": "8192", "osl": "1024", "system": "b200_sxm", "precision": "fp8"}
    row |= {"model_path": "deepseek-ai/DeepSeek-R1", "backend_version": "0.5.9"}
    chunk = {"chunked_prefill_size": 32_768, "mem_fraction_static": 0.82}
    assert harness_of(row, "vllm").shortest == 0.8
    assert harness_of(row, "sglang").engine == {**chunk, "scheduler_recv_interval": 30}
    assert harness_of(row | {"batch_size": "8"}, "sglang").engine == {**chunk, "scheduler_recv_interval": 10}
    assert harness_of(row | {"system": "h200_sxm"}, "sglang").engine == chunk
    assert harness_of(row | {"precision": "fp4"}, "sglang").engine["chunked_prefill_size"] == 16_384
    later = row | {"system": "b300_sxm", "backend_version": "0.5.10.post1", "model_path": "Qwen/Qwen3.5-397B-A17B"}
    small = {"chunked_prefill_size": 16_384, "mem_fraction_static": 0.80}
    assert harness_of(later, "sglang").engine == {**small, "scheduler_recv_interval": 10}
    assert harness_of(later | {"precision": "fp4"}, "sglang").engine == {**chunk, "scheduler_recv_interval": 30}
    assert harness_of(row, "tensorrt-llm").engine == {"max_num_tokens": 8_320}
    assert harness_of(row | {"osl": "100"}, "sglang").shortest == 1.0


def test_the_first_benchmarks_of_inferencex_began_with_a_cold_server_and_small_steps():
    from serving_accuracy import harness_of

    row = {"batch_size": "64", "isl": "1024", "osl": "1024", "system": "b200_sxm", "precision": "fp8"}
    row |= {"model_path": "deepseek-ai/DeepSeek-R1", "backend_version": "1.1.0rc2.post2"}
    cold, warm = harness_of(row, "tensorrt-llm"), harness_of(row | {"backend_version": "1.2.0"}, "tensorrt-llm")
    assert (cold.warmed, cold.engine) == (False, {"max_num_tokens": 1_152})
    assert (warm.warmed, warm.engine) == (True, {"max_num_tokens": 8_192})
    assert (
        harness_of(row | {"model_path": "meta-llama/Llama-3.1-70B"}, "tensorrt-llm").engine["max_num_tokens"] == 16_384
    )


def test_benchmarks_with_a_draft_or_without_a_number_of_clients_are_not_compared():
    from serving_accuracy import _measurement, _unstated

    row = {"id": "dsr1_c4_cfg87", "backend": "sglang", "backend_version": "0.5.9", "system": "b200_sxm"}
    row |= {"precision": "fp8", "model_path": "deepseek-ai/DeepSeek-R1", "tp_size": "8", "moe_ep_size": "1"}
    row |= {"isl": "1024", "osl": "1024", "batch_size": "4", "silicon_ttft_ms": "183.18", "silicon_tpot_ms": "8.76"}
    plain = {_measurement(row)}
    assert _measurement(row | {"silicon_tpot_ms": "8.7601"}) in plain
    drafted = row | {"silicon_ttft_ms": "206.72", "silicon_tpot_ms": "6.7032"}
    assert [_unstated(each, plain) for each in (row, drafted)] == ["", "whether a draft was used"]
    qwen = drafted | {"model_path": "Qwen/Qwen3.5-397B-A17B"}
    assert _unstated(qwen, plain) == ""
    assert _unstated(qwen | {"tp_size": "4"}, plain) == "whether a draft was used"
    assert _unstated(qwen | {"tp_size": "4", "precision": "fp4"}, plain) == ""
    for name in ("qwen3_32b_gb200_trtllm_agg_4000x1000_c_tp1_epnone_1", "gpt_oss_120b_agg_4000x1000_c192_tp4_epnone_1"):
        assert "clients" in _unstated(row | {"id": name}, plain)


def test_prompts_run_in_graphs_up_to_what_a_benchmarks_server_sets():
    from serving_accuracy import harness_of

    row = {"batch_size": "4", "isl": "1024", "osl": "1024", "precision": "fp8", "model_path": "MiniMaxAI/MiniMax-M2.5"}
    row |= {"system": "h200_sxm", "backend_version": "0.5.10.post1"}
    assert harness_of(row, "vllm").graph_rows is None
    assert harness_of(row | {"system": "b300_sxm"}, "vllm").graph_rows == 2_048
    assert harness_of(row | {"system": "b300_sxm"}, "vllm").engine == {"max_num_batched_tokens": 2_048}
    assert harness_of(row, "sglang").graph_rows is None
    assert harness_of(row | {"backend_version": "0.5.9"}, "sglang").graph_rows == 0
    assert harness_of(row | {"model_path": "Qwen/Qwen3.5-397B-A17B"}, "sglang").graph_rows == 0
    assert harness_of(row, "vllm").experts is None
    assert harness_of(row | {"model_path": "openai/gpt-oss-120b"}, "vllm").experts == "int4-weights"
    assert harness_of(row | {"osl": "100", "backend_version": "0.5.9"}, "sglang").graph_rows == 0


def test_cards_that_are_multiplied_by_those_of_the_experts_are_those_of_the_model():
    from serving_accuracy import tensor_degree

    assert tensor_degree({"tp_size": "64", "moe_tp_size": "8", "moe_ep_size": "8"}) == 8
    assert tensor_degree({"tp_size": "8", "moe_tp_size": "1", "moe_ep_size": "8"}) == 8
    assert tensor_degree({"tp_size": "4", "moe_tp_size": "", "moe_ep_size": ""}) == 4
