import shlex

import pytest

from planner.errors import RecipeError
from planner.workload.recipes.detect import read_recipe
from planner.workload.recipes.torchtitan import torchtitan_options


def recipe(text):
    return read_recipe(torchtitan_options(tuple(shlex.split(text))), "run.sh", "torchtitan")


def ignored(found):
    return {entry.key: entry.reason for entry in found.ignored}


def test_what_a_command_leaves_out_is_as_in_the_models_configuration():
    found = recipe("--module llama3 --config llama3_70b")
    workload = found.workload
    assert found.model == "meta-llama/Llama-3.1-70B"
    assert (workload.micro_batch, workload.sequence_length, workload.activation_checkpointing) == (8, 8192, "full")
    assert (workload.parallel.tensor, workload.parallel.sequence, workload.parallel.zero) == (8, True, 3)
    assert (workload.loss, workload.loss_chunks, workload.optimizer_step) == ("chunked", 8, "fused")
    assert found.cards is None
    assert "CUDA graphs" in ignored(found)["training.disable_cuda_graphs"]


def test_hyphens_and_underscores_are_the_same_and_a_policy_stands_anywhere():
    text = "--config qwen3_14b --training.seq-len=2048 --training.no-enable-cpu-offload activation-checkpoint:none"
    found = recipe(text)
    assert (found.model, found.workload.sequence_length) == ("Qwen/Qwen3-14B", 2048)
    assert found.workload.activation_checkpointing == "none"
    assert found.workload.parallel.offload == "none"


def test_replicas_and_shards_give_the_number_of_cards():
    copies = recipe(
        "--config llama3_8b --parallelism.data_parallel_replicate_degree 4 --parallelism.data_parallel_shard_degree 1"
    )
    assert (copies.cards, copies.workload.parallel.data, copies.workload.parallel.zero) == (4, 4, 0)
    shards = recipe("--config llama3_8b --parallelism.data_parallel_shard_degree 8 --training.global_batch_size 32")
    assert (shards.cards, shards.workload.gradient_accumulation) == (8, 4)


def test_a_local_batch_is_all_micro_batches_of_a_pipeline():
    text = "--config llama3_8b --parallelism.pipeline_parallel_degree 2 --training.local_batch_size 8"
    found = recipe(f"{text} --parallelism.pipeline_parallel_microbatch_size 2 --training.disable_cuda_graphs")
    assert (found.workload.micro_batch, found.workload.gradient_accumulation) == (2, 4)
    assert ignored(found)["training.disable_cuda_graphs"] == "as in the estimate"
    assert recipe("--config llama3_8b --parallelism.pipeline_parallel_degree 2").workload.micro_batch == 1


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("--parallelism.pipeline_parallel_schedule Interleaved1F1B", "parallelism.pipeline_parallel_schedule"),
        (
            "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 4",
            "parallelism.data_parallel_shard_degree",
        ),
        ("--optimizer.implementation fused_opt_states_bf16", "optimizer.implementation"),
        ("activation_checkpoint:memory-budget", "activation_checkpoint"),
        ("--compile.enable", "compile.enable"),
    ],
)
def test_what_is_not_estimated_is_told(text, key):
    assert ignored(recipe(f"--config llama3_8b {text}"))[key].startswith("not estimated")


def test_pure_bf16_is_read_and_odd_formats_are_refused():
    found = recipe("--config llama3_8b --training.dtype bfloat16")
    assert (found.workload.weights, found.workload.compute) == ("bf16", "bf16")
    with pytest.raises(RecipeError, match=r"training\.dtype goes with no computing"):
        recipe("--config llama3_8b --training.dtype bfloat16 --training.mixed_precision_param float32")
    with pytest.raises(RecipeError, match=r"training\.mixed_precision_param goes with no computing"):
        recipe("--config llama3_8b --training.mixed_precision_param float16")


def test_a_configuration_that_is_not_known_names_no_known_model():
    found = recipe("--config llama3_debugmodel --parallelism.pipeline_parallel_schedule 1F1B")
    assert (found.model, found.workload.sequence_length) == ("llama3_debugmodel", 2048)
