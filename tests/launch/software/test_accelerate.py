import pytest
from launched import PLANS, training

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()
FULL = {"activation_checkpointing": "full"}


def values(plan):
    return {row.key: row.value for row in launch_settings(plan, CATALOG, "accelerate").settings}


@pytest.mark.parametrize(
    ("plan", "kind"),
    [
        (PLANS["lora"], "NO"),
        (PLANS["lora"].evolve(count=2), "MULTI_GPU"),
        (PLANS["full in fsdp"], "FSDP"),
        (PLANS["full in zero-2"], "DEEPSPEED"),
    ],
)
def test_the_kind_of_distribution_follows_from_the_sharing(plan, kind):
    shared = plan.evolve(workload=plan.workload.evolve(parallel=plan.workload.parallel.evolve(sharing="manual")))
    assert values(shared)["distributed_type"] == kind


def test_fsdp_is_version_2_with_what_the_plan_keeps():
    plan = training(count=8, parallel={"zero": 3, "reshard_after_forward": False, "offload": "parameters"}, **FULL)
    chosen = values(plan)
    assert chosen["fsdp_config.fsdp_version"] == 2
    assert chosen["fsdp_config.fsdp_reshard_after_forward"] is False
    assert chosen["fsdp_config.fsdp_offload_params"] is True
    assert chosen["fsdp_config.fsdp_activation_checkpointing"] is True


def test_selective_checkpoints_and_pure_16_bits_are_named():
    plan = training(
        count=8, compute="bf16", parallel={"zero": 3}, activation_checkpointing="selective", optimizer="adamw-8bit"
    )
    settings = launch_settings(plan, CATALOG, "accelerate")
    assert {"activation_checkpointing", "compute"} <= {row.field for row in settings.not_expressed}


def test_degrees_stand_in_their_own_section():
    chosen = values(training(gpu="h100-sxm5-80gb", count=8, parallel={"zero": 3, "tensor": 2, "data": 4}, **FULL))
    assert chosen["parallelism_config.parallelism_config_tp_size"] == 2
    assert chosen["parallelism_config.parallelism_config_dp_shard_size"] == 4


@pytest.mark.parametrize(
    ("parallel", "message"),
    [
        ({"zero": 2}, "ZeRO-2 in DeepSpeed only"),
        ({"zero": 3, "offload": "optimizer"}, "RAM the optimizer states alone"),
        ({"zero": 3, "offload": "nvme"}, "offload to disk"),
        ({"pipeline": 8}, "no pipeline"),
    ],
)
def test_a_sharing_that_it_does_not_have_is_refused(parallel, message):
    with pytest.raises(SpecError, match=message):
        values(training(gpu="h100-sxm5-80gb", count=8, parallel=parallel, **FULL))
