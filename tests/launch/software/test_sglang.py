import pytest
from launched import serving

import planner
from planner.launch.launch import launch_facts, launch_settings
from planner.launch.load import load_launch_file
from planner.launch.software.sglang import SGLANG_SERVER

CATALOG = planner.load_catalog()


def read(tmp_path, command):
    (tmp_path / "run.sh").write_text(command)
    return load_launch_file(tmp_path / "run.sh")


@pytest.mark.parametrize(
    "command",
    [
        "sglang serve --model-path a/b --tp-size 2 --max-running-requests 8 --disable-cuda-graph",
        "python -m sglang.launch_server --model a/b --tp 2 --max-running-requests 8 --disable-cuda-graph",
        "python3 -m sglang.launch_server --model-path=a/b --tensor-parallel-size=2 --max-running-requests 8"
        " --cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled",
    ],
)
def test_its_command_is_read(tmp_path, command):
    recipe = read(tmp_path, command)
    assert (recipe.title, recipe.model, recipe.cards, recipe.workload.batch) == ("SGLang", "a/b", 2, 8)
    assert recipe.workload.engine.disable_cuda_graph is True
    assert recipe.not_estimated == ()


def test_what_is_not_described_is_named(tmp_path):
    recipe = read(tmp_path, "sglang serve --model-path a/b --quantization quark --enable-nan-detection --port 1 --tp 1")
    reasons = {entry.key: entry.reason.partition(":")[0] for entry in recipe.ignored}
    assert reasons == {
        "--quantization": "not estimated",
        "--enable-nan-detection": "unknown",
        "--port": "does not change memory",
    }
    assert recipe.workload.kv_cache == "bf16"


def test_without_graphs_neither_prompts_nor_tokens_have_any():
    settings = launch_settings(serving("sglang", engine={"disable_cuda_graph": True}), CATALOG, "sglang")
    values = {row.key: row.value for row in settings.settings}
    assert values["--cuda-graph-backend-decode"] == values["--cuda-graph-backend-prefill"] == "disabled"


def test_a_batch_that_is_not_the_limit_is_left_to_the_clients():
    settings = launch_settings(serving("sglang", batch=2, engine={"max_running_requests": 8}), CATALOG, "sglang")
    assert {row.key: row.value for row in settings.settings}["--max-running-requests"] == 8
    assert any(row.field == "batch" for row in settings.not_expressed)


@pytest.mark.parametrize("batch", [1, 4])
def test_it_is_measured_by_its_own_benchmark_and_metrics(batch):
    facts = launch_facts(serving("sglang", batch=batch), CATALOG, SGLANG_SERVER)
    speed, cache = SGLANG_SERVER.measure(facts, SGLANG_SERVER.write(facts))
    assert "sglang.bench_serving" in speed.command
    assert f"--max-concurrency {batch} --num-prompts {8 * batch}" in speed.command
    assert any(name == "first-token" for name, _ in speed.figures) is (batch == 1)
    assert cache.figures == (("cache-tokens", "sglang:max_total_num_tokens"),)


def test_a_check_of_one_token_states_no_number_of_drafted_ones(tmp_path):
    command = "sglang serve --model-path a/b --speculative-algorithm NGRAM --speculative-num-draft-tokens"
    assert read(tmp_path, f"{command} 1").workload.speculation.tokens is None
    assert read(tmp_path, f"{command} 2").workload.speculation.tokens == 1


def test_files_of_adapters_take_slots_that_are_counted_anyway(tmp_path):
    found = read(tmp_path, "sglang serve --model-path a/b --enable-lora --lora-paths a=b")
    assert found.workload.adapters.slots == 8
    assert {entry.key: entry.reason for entry in found.ignored}["--lora-paths"] == "each takes a slot when it is used"
