import yaml
from launched import PLANS, training

import planner
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()


def task(plan, program):
    return yaml.safe_load(launch_settings(plan, CATALOG, program, "skypilot").files[0].text)


def test_a_server_has_a_port_and_its_version():
    found = task(PLANS["served"], "vllm")
    assert found["resources"] == {"accelerators": "L40S:1", "ports": 8000}
    assert found["setup"] == "pip install vllm==0.33.0"


def test_several_nodes_find_each_other():
    found = task(training(count=16, parallel={"zero": 3}, activation_checkpointing="full"), "accelerate")
    assert found["num_nodes"] == 2
    assert 'MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)' in found["run"]
