"""Configurations of DeepSpeed."""

from training_files import ZERO_2, ZERO_3, read, reason


def test_deepspeed_stage_2():
    recipe = read(ZERO_2)
    found = recipe.workload
    assert (recipe.cards, found.micro_batch, found.gradient_accumulation) == (8, 4, 2)
    assert (found.compute, found.optimizer, found.profile) == ("amp-bf16", "adamw", "deepspeed")
    assert (found.parallel.zero, found.parallel.offload) == (2, "optimizer")
    assert found.gradient_clipping
    assert "buckets" in reason(recipe, "zero_optimization.reduce_bucket_size")


def test_deepspeed_stage_3_and_what_is_left_to_others():
    recipe = read(ZERO_3)
    assert recipe.workload.compute == "amp-fp16"
    assert (recipe.workload.parallel.zero, recipe.workload.parallel.offload) == (3, "nvme")
    auto = read(
        {
            "zero_optimization": {"stage": 1, "cpu_offload": True, "reduce_bucket_size": "auto"},
            "bf16": {"enabled": "auto"},
            "fp16": "auto",
            "train_batch_size": "auto",
            "train_micro_batch_size_per_gpu": "auto",
            "optimizer": {"type": "OneBitAdam"},
        }
    )
    assert auto.workload.parallel.offload == "optimizer"
    assert reason(auto, "train_batch_size").startswith("auto")
    assert reason(auto, "bf16.enabled").startswith("auto")
    assert "OneBitAdam" in reason(auto, "optimizer.type")
    assert reason(read({"train_batch_size": 7, "zero_optimization": "auto"}), "train_batch_size").startswith(
        "the micro"
    )
    assert read({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8}).cards == 8
    assert read({"train_batch_size": 7}).workload.compute == "fp32"
