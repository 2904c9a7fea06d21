import yaml
from launched import PLANS

import planner
from planner.launch.launch import launch_settings
from planner.launch.load import load_launch_file

CATALOG = planner.load_catalog()


def service(program, plan):
    return yaml.safe_load(launch_settings(plan, CATALOG, program, "compose").files[0].text)["services"]["plan"]


def test_a_server_has_its_port_and_gpus():
    found = service("vllm", PLANS["served on 2"])
    assert found["entrypoint"] == ["vllm", "serve", "meta-llama/Llama-3.1-8B"]
    device = found["deploy"]["resources"]["reservations"]["devices"][0]
    assert (device["count"], device["capabilities"], found["ports"]) == (2, ["gpu"], ["8000:8000"])


def test_what_the_shell_expands_is_kept_from_compose():
    assert '"$${arguments[@]}"' in service("trl", PLANS["lora"])["entrypoint"][2]


def test_a_file_of_another_hand_is_read(tmp_path):
    file = tmp_path / "compose.yaml"
    file.write_text("services: {a: {image: x, command: [vllm, serve, Qwen/Qwen3-8B, --max-model-len, '2048']}}")
    recipe = load_launch_file(file)
    assert (recipe.model, recipe.workload.context_length, recipe.cards) == ("Qwen/Qwen3-8B", 2048, 1)
