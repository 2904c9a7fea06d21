import yaml
from launched import PLANS, training

import planner
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()


def run(plan, program):
    return yaml.safe_load(launch_settings(plan, CATALOG, program, "dstack").files[0].text)


def test_a_server_is_a_service_and_a_training_a_task_with_its_files():
    assert (run(PLANS["served"], "vllm")["type"], run(PLANS["served"], "vllm")["port"]) == ("service", 8000)
    found = run(PLANS["qlora"], "axolotl")
    assert (found["type"], found["files"], found["nodes"]) == ("task", ["axolotl.yaml"], 1)
    assert found["resources"]["gpu"] == {"name": "L40S", "count": 1}


def test_several_nodes_find_each_other():
    found = run(training(count=16, parallel={"zero": 3}, activation_checkpointing="full"), "accelerate")
    assert found["nodes"] == 2
    install, script = found["commands"]
    assert install == "pip install accelerate==1.15.0"
    assert "$DSTACK_MASTER_NODE_IP" in script
