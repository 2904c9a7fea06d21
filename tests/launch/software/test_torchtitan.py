import pytest
from launched import training

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()
H100 = {"gpu": "h100-sxm5-80gb", "count": 8}


def arguments(plan, place="shell"):
    return {row.key: row.value for row in launch_settings(plan, CATALOG, "torchtitan", place).settings}


def test_a_plan_is_estimated_with_what_torchtitan_always_does():
    settled = launch_settings(training(parallel={"zero": 3}, **H100), CATALOG, "torchtitan").plan.workload
    chosen = (settled.gradient_clipping, settled.loss, settled.loss_chunks, settled.optimizer_step)
    assert chosen == (True, "chunked", 8, "fused")


def test_a_batch_is_of_all_replicas():
    found = arguments(training(parallel={"zero": 3}, micro_batch=2, gradient_accumulation=3, **H100))
    assert (found["--training.local_batch_size"], found["--training.global_batch_size"]) == (2, 48)
    assert found["--parallelism.data_parallel_shard_degree"] == 8
    assert "--parallelism.pipeline_parallel_microbatch_size" not in found


def test_the_micro_batches_of_a_pipeline_are_parts_of_the_local_batch():
    shared = {"pipeline": 4, "data": 2, "zero": 3}
    found = arguments(training(parallel=shared, micro_batch=2, gradient_accumulation=4, **H100))
    assert found["--training.local_batch_size"] == 8
    assert found["--parallelism.pipeline_parallel_microbatch_size"] == 2
    assert found["--parallelism.pipeline_parallel_first_stage_less_layers"] == 0


def test_parameters_that_are_kept_and_norms_that_are_not_split_are_written_out():
    shared = {"tensor": 2, "data": 4, "zero": 3, "reshard_after_forward": False, "sequence": False}
    found = arguments(training(parallel=shared, activation_checkpointing="full", **H100))
    assert found["--parallelism.fsdp_reshard_after_forward"] == "never"
    assert found["--parallelism.no-enable_sequence_parallel"] is True
    assert found["activation_checkpoint:full"] is True


def test_replicas_without_sharing_are_ddp():
    plan = training(gpu="b200-sxm-180gb", count=2, parallel={"data": 2}, activation_checkpointing="full")
    found = arguments(plan.evolve(model=planner.ModelChoice(id="Qwen/Qwen3-1.7B")))
    assert found["--parallelism.data_parallel_replicate_degree"] == 2
    assert found["--parallelism.data_parallel_shard_degree"] == 1
    assert "--parallelism.fsdp_reshard_after_forward" not in found


@pytest.mark.parametrize(
    ("offload", "key", "comment"),
    [
        ("none", "--training.no-enable_cpu_offload", "parameters stay on the GPU"),
        ("parameters", "--training.enable_cpu_offload", "parameters, gradients and states in RAM"),
    ],
)
def test_states_in_ram_are_asked_for_and_those_on_the_cards_too(offload, key, comment):
    plan = training(parallel={"zero": 3, "offload": offload}, **H100)
    found = [row for row in launch_settings(plan, CATALOG, "torchtitan").settings if "cpu_offload" in row.key]
    assert [(row.key, row.comment) for row in found] == [(key, comment)]


def test_several_nodes_find_each_other_before_the_program_is_named():
    text = (
        launch_settings(training(gpu="h100-sxm5-80gb", count=16, parallel={"zero": 3}), CATALOG, "torchtitan", "slurm")
        .files[0]
        .text
    )
    assert text.index('--rdzv_endpoint "$MASTER_ADDR:29500"') < text.index("-m torchtitan.train")
    assert "--standalone" not in text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"method": "lora"}, "training of all parameters only"),
        ({"trainable": ("layers.31",)}, "training of all parameters only"),
        ({"optimizer": "lion"}, "train with AdamW"),
        ({"weights": "bf16", "compute": "amp-bf16"}, "no configuration computes in amp-bf16 with weights in bf16"),
        ({"loss": "full-logits"}, "computes the loss in chunks"),
        ({"attention": "eager"}, "no eager attention"),
        ({"activation_checkpointing": "full", "checkpoint_every": 2}, "checkpoints every layer"),
        ({"parallel": {"zero": 1}}, "has no ZeRO-1"),
        ({"parallel": {"zero": 3, "offload": "optimizer"}}, "offloads parameters, gradients and states together"),
        ({"parallel": {"pipeline": 2, "data": 4, "interleave": 2}}, "1F1B schedule only"),
    ],
)
def test_what_torchtitan_has_no_argument_for_is_refused(fields, message):
    plan = training(gpu="b200-sxm-180gb", count=8, **{"parallel": {"zero": 3}, **fields})
    with pytest.raises(SpecError, match=message) as refused:
        launch_settings(plan, CATALOG, "torchtitan")
    assert refused.value.hint


def test_a_model_without_a_configuration_is_refused_with_those_that_have_one():
    plan = training(parallel={"zero": 3}, **H100).evolve(model=planner.ModelChoice(id="Qwen/Qwen3-8B"))
    with pytest.raises(SpecError, match=r"no plain configuration of Qwen/Qwen3-8B") as refused:
        launch_settings(plan, CATALOG, "torchtitan")
    assert "Qwen/Qwen3-14B" in refused.value.hint
