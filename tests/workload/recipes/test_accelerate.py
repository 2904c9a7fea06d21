"""Configurations of accelerate."""

from training_files import FSDP_2, ZERO_2, read, reason, workload_of

ACCELERATE_DEEPSPEED = {
    "compute_environment": "LOCAL_MACHINE",
    "deepspeed_config": {
        "gradient_accumulation_steps": 4,
        "gradient_clipping": 1.0,
        "offload_optimizer_device": "cpu",
        "offload_param_device": "cpu",
        "zero3_init_flag": True,
        "zero_stage": 3,
    },
    "distributed_type": "DEEPSPEED",
    "fsdp_config": {},
    "mixed_precision": "fp16",
    "num_processes": 2,
}


def test_accelerate_with_fsdp():
    recipe = read(FSDP_2)
    found = recipe.workload
    assert (recipe.cards, found.compute, found.activation_checkpointing) == (8, "amp-bf16", "full")
    assert (found.parallel.zero, found.parallel.reshard_after_forward) == (3, False)
    older = read(FSDP_2, fsdp_config={"fsdp_sharding_strategy": 3, "fsdp_reshard_after_forward": "NO_SHARD"})
    assert older.workload.parallel.zero == 0


def test_accelerate_with_deepspeed():
    recipe = read(ACCELERATE_DEEPSPEED)
    found = recipe.workload
    assert (recipe.cards, found.compute, found.gradient_accumulation) == (2, "amp-fp16", 4)
    assert (found.parallel.zero, found.parallel.offload, found.profile) == (3, "parameters", "deepspeed")
    assert reason(recipe, "fsdp_config") == "not used: distributed_type is DEEPSPEED"
    linked = read(ACCELERATE_DEEPSPEED, deepspeed_config={"deepspeed_config_file": ZERO_2})
    assert linked.workload.parallel.zero == 2
    lost = read(ACCELERATE_DEEPSPEED, deepspeed_config={"deepspeed_config_file": "ds.json"})
    assert "a configuration file" in reason(lost, "deepspeed_config.deepspeed_config_file")
    assert read(ACCELERATE_DEEPSPEED, deepspeed_config={}).workload.parallel.zero == 2


def test_accelerate_with_megatron_and_other_ways():
    found = workload_of(
        {"distributed_type": "MEGATRON_LM", "mixed_precision": "bf16"},
        megatron_lm_config={
            "megatron_lm_tp_degree": 2,
            "megatron_lm_pp_degree": 4,
            "megatron_lm_sequence_parallelism": True,
            "megatron_lm_use_distributed_optimizer": True,
            "megatron_lm_gradient_clipping": 1.0,
            "megatron_lm_num_micro_batches": 8,
            "megatron_lm_recompute_activations": True,
            "megatron_lm_new_key": 1,
        },
    )
    assert (found.parallel.tensor, found.parallel.pipeline, found.parallel.sequence) == (2, 4, True)
    assert (found.parallel.zero, found.gradient_accumulation, found.profile) == (1, 8, "megatron")
    sizes = {"parallelism_config_tp_size": 2, "parallelism_config_cp_size": 2, "parallelism_config_dp_shard_size": 4}
    spread = read({"distributed_type": "MULTI_GPU", "mixed_precision": False, "parallelism_config": sizes})
    assert (spread.workload.parallel.tensor, spread.workload.parallel.context) == (2, 2)
    assert (spread.workload.parallel.zero, spread.workload.compute) == (3, "fp32")
    copies = read(
        {"distributed_type": "NO", "parallelism_config": {**sizes, "parallelism_config_dp_replicate_size": 2}}
    )
    assert "groups of GPUs" in reason(copies, "parallelism_config.dp_shard_size")
    assert "fp8" in reason(read({"distributed_type": "NO", "mixed_precision": "fp8"}), "mixed_precision")


def test_megatron_without_its_choices_and_offload_in_part():
    plain = workload_of({"distributed_type": "MEGATRON_LM"}, megatron_lm_config={"megatron_lm_tp_degree": 2})
    assert (plain.parallel.sequence, plain.parallel.zero, plain.gradient_clipping) == (False, 0, False)
    zero = {"stage": 3, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "none", "ratio": 0.5}}
    recipe = read({"zero_optimization": zero, "optimizer": {"params": {}}, "fp16": {"enabled": False}})
    assert recipe.workload.parallel.offload == "parameters"
    assert "partial" in reason(recipe, "zero_optimization.offload_optimizer.ratio")
    mixed = read({"zero_optimization": {"offload_param": {"device": "nvme"}, "offload_optimizer": {"device": "cpu"}}})
    assert mixed.workload.parallel.offload == "nvme"
