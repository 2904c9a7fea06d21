import pytest
from launched import serving

import planner
from planner.errors import RecipeError
from planner.launch.launch import launch_facts, launch_settings
from planner.launch.load import load_launch_file
from planner.launch.software.tensorrt_llm import TENSORRT_LLM_SERVER

CATALOG = planner.load_catalog()
FILE = """\
kv_cache_config:
  dtype: fp8
  free_gpu_memory_fraction: 0.8
cuda_graph_config: {enable_padding: true, max_batch_size: 16}
max_num_tokens: 4096
"""


def read(tmp_path, command):
    (tmp_path / "run.sh").write_text(command)
    return load_launch_file(tmp_path / "run.sh")


@pytest.mark.parametrize(
    "command",
    [
        "trtllm-serve a/b --tp_size 2 --max_batch_size 8 --config x.yaml",
        "mpirun -n 2 trtllm-serve serve a/b --tensor_parallel_size 2 --max_batch_size 8 --extra_llm_api_options x.yaml",
    ],
)
def test_its_command_is_read_with_its_file(tmp_path, command):
    (tmp_path / "x.yaml").write_text(FILE)
    recipe = read(tmp_path, command)
    workload = recipe.workload
    assert (recipe.title, recipe.model, recipe.cards, workload.batch) == ("TensorRT-LLM", "a/b", 2, 8)
    assert (workload.kv_cache, workload.engine.free_gpu_memory_fraction) == ("fp8", 0.8)
    assert (workload.engine.max_num_tokens, workload.engine.cuda_graph_max_batch_size) == (4096, 16)
    assert [entry.key for entry in recipe.not_estimated] == ["cuda_graph_config.enable_padding"]


def test_a_fraction_on_the_command_line_is_read(tmp_path):
    recipe = read(tmp_path, "trtllm-serve a/b --kv_cache_free_gpu_memory_fraction 0.7 --backend pytorch")
    assert recipe.workload.engine.free_gpu_memory_fraction == 0.7
    assert recipe.workload.kv_cache == "bf16"


@pytest.mark.parametrize("name", ["none.yaml", "text"])
def test_a_file_that_is_not_there_or_has_no_keys_is_told(tmp_path, name):
    (tmp_path / "text").write_text("a")
    with pytest.raises(RecipeError, match="names the file"):
        read(tmp_path, f"trtllm-serve a/b --config {name}")


def test_replicas_are_servers_of_their_own():
    plan = serving("tensorrt-llm", count=2, parallel={"data": 2})
    settings = launch_settings(plan, CATALOG, "tensorrt-llm")
    assert {row.field: row.reason for row in settings.not_expressed}[
        "parallel.data"
    ] == "start a server for each replica"


def test_a_batch_that_is_not_the_limit_is_left_to_the_clients():
    settings = launch_settings(serving("tensorrt-llm", batch=2, engine={"max_batch_size": 8}), CATALOG, "tensorrt-llm")
    assert any(row.field == "batch" for row in settings.not_expressed)


@pytest.mark.parametrize("batch", [1, 4])
def test_it_is_measured_by_a_benchmark_of_any_server(batch):
    facts = launch_facts(serving("tensorrt-llm", batch=batch), CATALOG, TENSORRT_LLM_SERVER)
    (speed,) = TENSORRT_LLM_SERVER.measure(facts, TENSORRT_LLM_SERVER.write(facts))
    assert "vllm bench serve" in speed.command
    assert any(name == "first-token" for name, _ in speed.figures) is (batch == 1)
