from launched import PLANS

import planner
from planner.launch.launch import launch_settings


def test_the_script_is_the_command_with_its_options_explained():
    text = launch_settings(PLANS["served"], planner.load_catalog(), "vllm").files[0].text
    assert text.startswith("#!/usr/bin/env bash\nset -euo pipefail\n# Needs vllm==0.33.0\narguments=(\n")
    assert "  --max-model-len 8192  # context: prompt and output tokens together\n" in text
    assert 'vllm serve meta-llama/Llama-3.1-8B "${arguments[@]}"\n' in text
