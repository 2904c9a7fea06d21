"""Arguments of the transformers Trainer and of TRL."""

import pytest
from training_files import TRL, ZERO_3, read, reason, workload_of


def test_trl_qlora():
    recipe = read(TRL)
    found = recipe.workload
    assert (found.method, found.weights, found.compute, found.loss) == ("qlora", "nf4", "amp-bf16", "full-logits")
    assert (found.lora.rank, found.lora.dropout) == (16, 0.05)
    assert found.lora.targets == ("q_proj", "v_proj", "o_proj")
    assert (found.micro_batch, found.sequence_length, found.activation_checkpointing) == (2, 2048, "full")
    assert {"bf16", "lora_r", "optim", "gradient_checkpointing"} <= {entry.key for entry in recipe.assumed}


def test_trl_variants():
    base = {"model_name_or_path": "x", "output_dir": "out"}
    found = workload_of(base)
    assert (found.method, found.weights, found.micro_batch, found.loss) == ("full", "fp32", 8, "chunked")
    assert found.loss_chunks == 8 * 1024 // 256
    lora = workload_of(base, use_peft=True, load_in_8bit=True, use_dora=True, dtype="bfloat16")
    assert (lora.method, lora.weights, lora.lora.targets, lora.lora.dora) == (
        "lora",
        "int8",
        ("q_proj", "v_proj"),
        True,
    )
    nested = read(base | {"use_peft": True, "load_in_4bit": True, "use_bnb_nested_quant": True})
    assert nested.workload.weights == "nf4-dq"
    fp4 = read(base | {"use_peft": True, "load_in_4bit": True, "bnb_4bit_quant_type": "fp4"})
    assert fp4.workload.weights == "nf4"
    assert "FP4" in reason(fp4, "bnb_4bit_quant_type")
    assert workload_of(base, torch_dtype="bfloat16").weights == "bf16"
    assert reason(read(base | {"dtype": "auto"}), "dtype").startswith("auto")
    assert reason(read(base | {"use_peft": False, "lora_r": 4}), "lora_r") == "no adapter is trained"
    liger = read(base | {"use_liger_kernel": True, "loss_type": "nll"})
    assert liger.workload.profile == "liger"
    assert reason(liger, "loss_type") == "the loss is Liger's"
    assert "dft" in reason(read(base | {"loss_type": "dft"}), "loss_type")
    assert workload_of(base, loss_type="chunked_nll", max_length=300, per_device_train_batch_size=1).loss_chunks == 2


@pytest.mark.parametrize(
    ("more", "compute"),
    [
        ({"bf16": True}, "amp-bf16"),
        ({"fp16": True}, "amp-fp16"),
        ({"tf32": True}, "tf32"),
        ({"bf16": False}, "fp32"),
        ({}, "fp32"),
    ],
)
def test_training_arguments_precision(more, compute):
    assert workload_of({"per_device_train_batch_size": 4}, **more).compute == compute


def test_training_arguments():
    base = {"per_device_train_batch_size": 4}
    recipe = read(
        base | {"optim": "apollo_adamw", "max_grad_norm": 0, "torch_compile": True, "neftune_noise_alpha": None}
    )
    assert (recipe.workload.optimizer, recipe.workload.gradient_clipping) == ("adamw", False)
    assert {entry.key for entry in recipe.not_estimated} == {"optim", "torch_compile"}
    assert reason(recipe, "neftune_noise_alpha") == "empty"
    assert workload_of({"per_gpu_train_batch_size": 3, "learning_rate": 1}).micro_batch == 3
    assert workload_of(base, optim="adamw_torch").optimizer_step == "foreach"
    assert workload_of(base, optim="paged_ademamix_8bit").optimizer == "paged-ademamix-8bit"
    assert workload_of(base, activation_checkpointing=True).activation_checkpointing == "full"
    found = workload_of(base, fsdp="shard_grad_op auto_wrap offload", fsdp_config={"version": 1})
    assert (found.parallel.zero, found.parallel.reshard_after_forward) == (3, False)
    assert found.parallel.offload == "parameters"
    assert workload_of(base, fsdp=True).parallel.zero == 3
    assert workload_of(base, fsdp=False).parallel.zero == 0
    assert reason(read(base | {"fsdp": "", "fsdp_config": {"version": 2}}), "fsdp_config").startswith("not used")
    assert workload_of(base, deepspeed=ZERO_3).parallel.offload == "nvme"
    assert "a configuration file" in reason(read(base | {"deepspeed": "ds.json"}), "deepspeed")
    hybrid = read(base | {"fsdp": ["hybrid_shard"]})
    assert "one group is assumed" in reason(hybrid, "fsdp")


def test_trl_pairs_and_groups():
    base = {"model_name_or_path": "x", "output_dir": "out"}
    dpo = workload_of(base, precompute_ref_log_probs=False, beta=0.1)
    assert (dpo.alignment.method, dpo.alignment.reference) == ("dpo", None)
    assert workload_of(base, beta=0.1).alignment.method == "dpo"
    assert workload_of(base, precompute_ref_log_probs=True).alignment.reference == "precomputed"
    plain = workload_of(base, num_generations=4).alignment
    assert (plain.method, plain.group, plain.completion_length, plain.reference) == ("grpo", 4, 512, None)
    assert workload_of(base, max_completion_length=64, beta=0.1).alignment.reference == "kept"
    adapted = workload_of(base, use_vllm=True, beta=0.1, use_peft=True, reward_model_name_or_path="y")
    assert (adapted.alignment.reference, adapted.alignment.reward) == ("adapter-off", "model")
    assert (adapted.alignment.engine, adapted.alignment.engine_memory) == ("same-cards", 0.3)
    asleep = workload_of(base, use_vllm=True, vllm_enable_sleep_mode=True, vllm_max_model_length=900)
    assert (asleep.alignment.engine, asleep.sequence_length) == ("same-cards-asleep", 900)
    apart = workload_of(base, use_vllm=True, vllm_mode="server", vllm_gpu_memory_utilization=0.6).alignment
    assert (apart.engine, apart.engine_memory) == ("other-cards", 0.3)  # what the server takes is none of these cards
