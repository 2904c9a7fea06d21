from launched import PLANS

import planner
from planner.launch.launch import launch_settings


def test_variables_are_those_of_the_job():
    text = launch_settings(PLANS["lora"], planner.load_catalog(), "llama-factory", "ray").files[0].text
    assert "ray job submit --entrypoint-num-gpus 1 --working-dir . -- env FORCE_TORCHRUN=1 NPROC_PER_NODE=1" in text
    assert "\n# FORCE_TORCHRUN=1: one process for each GPU\n" in text
