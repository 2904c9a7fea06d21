import json

import pytest
from launched import PLANS, training

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()


def config(plan):
    files = {file.name: file.text for file in launch_settings(plan, CATALOG, "deepspeed").files}
    return json.loads(files["ds_config.json"])


def test_batches_multiply_and_pinned_memory_is_written():
    document = config(PLANS["full in zero-2"])
    assert document["train_batch_size"] == 8 * 4
    assert document["zero_optimization"]["offload_optimizer"] == {"device": "cpu", "pin_memory": True}
    assert document["bf16"] == {"enabled": True}


def test_a_disk_holds_both_and_fp32_has_no_section():
    plan = training(
        count=8, profile="deepspeed", compute="fp32", parallel={"zero": 3, "offload": "nvme"},
        optimizer="adamw", activation_checkpointing="full", gradient_clipping=True,
    )  # fmt: skip
    document = config(plan)
    assert document["zero_optimization"]["offload_param"]["nvme_path"] == "/local_nvme"
    assert not {"bf16", "fp16"} & set(document)
    assert document["gradient_clipping"] == 1.0


def test_an_optimizer_of_another_library_is_left_to_the_script():
    plan = training(count=8, profile="deepspeed", parallel={"zero": 3}, optimizer="adamw-8bit",
                    activation_checkpointing="full")  # fmt: skip
    assert "optimizer" not in config(plan)


def test_splits_of_the_model_are_refused():
    plan = training(gpu="h100-sxm5-80gb", count=8, profile="deepspeed", parallel={"tensor": 2, "zero": 1},
                    activation_checkpointing="full")  # fmt: skip
    with pytest.raises(SpecError, match="ZeRO only"):
        config(plan)
