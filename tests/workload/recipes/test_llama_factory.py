"""Configurations of LLaMA-Factory."""

from training_files import LLAMA_FACTORY, read, reason, workload_of


def test_llama_factory():
    recipe = read(LLAMA_FACTORY)
    found = recipe.workload
    assert (found.method, found.weights, found.compute) == ("qlora", "nf4-dq", "amp-bf16")
    assert (found.lora.rank, found.lora.targets, found.activation_checkpointing) == (8, "all-linear", "full")
    assert (found.micro_batch, found.gradient_accumulation, found.sequence_length) == (1, 8, 2048)
    plain = workload_of(LLAMA_FACTORY, double_quantization=False, lora_target="q_proj,v_proj", use_dora=True)
    assert (plain.weights, plain.lora.targets, plain.lora.dora) == ("nf4", ("q_proj", "v_proj"), True)
    base = {"model_name_or_path": "x", "stage": "sft"}
    defaults = workload_of(base)
    assert (defaults.method, defaults.lora.rank, defaults.compute) == ("lora", 8, "fp32")
    assert workload_of(base, quantization_bit=8, bf16=True).weights == "int8"
    pure = read(base | {"pure_bf16": True, "bf16": True, "flash_attn": "fa2", "disable_gradient_checkpointing": True})
    assert (pure.workload.compute, pure.workload.lora.adapter_dtype, pure.workload.attention) == (
        "bf16",
        "bf16",
        "flash",
    )
    assert pure.workload.activation_checkpointing == "none"
    full = read(base | {"finetuning_type": "full", "lora_rank": 8, "use_galore": True, "enable_liger_kernel": True})
    assert (full.workload.method, full.workload.optimizer, full.workload.profile) == ("full", "galore-adamw", "liger")
    assert reason(full, "lora_rank") == "no adapter is trained"
    assert workload_of(base | {"finetuning_type": "full", "pure_bf16": True, "use_muon": True}).optimizer == "muon"
    dpo = read(base | {"stage": "dpo", "flash_attn": "new", "packing": True})
    assert {"stage", "flash_attn"} <= {entry.key for entry in dpo.not_estimated}
