from launched import PLANS, training

import planner
from planner.launch.launch import launch_settings
from planner.launch.load import load_launch_file


def test_the_script_is_the_command_with_its_options_explained():
    text = launch_settings(PLANS["served"], planner.load_catalog(), "vllm").files[0].text
    assert text.startswith("#!/usr/bin/env bash\nset -euo pipefail\n# Needs vllm==0.33.0\narguments=(\n")
    assert "  --max-model-len 8192  # context: prompt and output tokens together\n" in text
    assert 'vllm serve meta-llama/Llama-3.1-8B "${arguments[@]}"\n' in text


CATALOG = planner.load_catalog()


def test_several_nodes_find_each_other():
    plan = training(count=16, parallel={"zero": 3}, activation_checkpointing="full")
    settings = launch_settings(plan, CATALOG, "accelerate", "slurm")
    script = settings.files[0].text
    assert "#SBATCH --nodes=2\n" in script
    assert "#SBATCH --gres=gpu:8\n" in script
    assert '  --main_process_ip "$MASTER_ADDR"' in script
    assert "num_processes: 16" in settings.files[1].text


def test_directives_come_before_the_first_command():
    lines = launch_settings(PLANS["lora"], CATALOG, "trl", "slurm").files[0].text.splitlines()
    assert max(n for n, line in enumerate(lines) if line.startswith("#SBATCH")) < lines.index("set -euo pipefail")


def test_a_script_of_another_hand_is_read(tmp_path):
    file = tmp_path / "job.slurm"
    file.write_text(
        "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --gpus-per-node=h100:4\nmodule load cuda; export X=1\n"
        "srun --ntasks=1 \\\n  python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B -tp=8 && echo done\n"
    )
    recipe = load_launch_file(file)
    assert (recipe.model, recipe.cards, recipe.workload.parallel.tensor) == ("Qwen/Qwen3-8B", 8, 8)


def test_variables_are_those_of_the_job():
    text = launch_settings(PLANS["lora"], planner.load_catalog(), "llama-factory", "ray").files[0].text
    assert "ray job submit --entrypoint-num-gpus 1 --working-dir . -- env FORCE_TORCHRUN=1 NPROC_PER_NODE=1" in text
    assert "\n# FORCE_TORCHRUN=1: one process for each GPU\n" in text
