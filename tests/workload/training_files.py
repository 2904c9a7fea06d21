"""Training files of other programs, and the recipes in them, for tests of several formats."""

from planner.workload.recipes.detect import read_recipe

ZERO_2 = {
    "bf16": {"enabled": True},
    "optimizer": {"type": "AdamW", "params": {"lr": 3e-5}},
    "zero_optimization": {
        "stage": 2,
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
        "overlap_comm": True,
        "reduce_bucket_size": 5e8,
    },
    "gradient_clipping": 1.0,
    "train_batch_size": 64,
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "steps_per_print": 10,
}


FSDP_2 = {
    "compute_environment": "LOCAL_MACHINE",
    "debug": False,
    "distributed_type": "FSDP",
    "downcast_bf16": "no",
    "fsdp_config": {
        "fsdp_activation_checkpointing": True,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_cpu_ram_efficient_loading": True,
        "fsdp_offload_params": False,
        "fsdp_reshard_after_forward": False,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        "fsdp_version": 2,
    },
    "mixed_precision": "bf16",
    "num_machines": 1,
    "num_processes": 8,
    "tpu_env": [],
}


def read(config, **more):
    return read_recipe({**config, **more}, "recipe.yml")


def reason(recipe, key):
    return next(entry.reason for entry in recipe.ignored if entry.key == key)


def workload_of(base, **more):
    return read(base, **more).workload


AXOLOTL_QLORA = {
    "base_model": "NousResearch/Meta-Llama-3-8B",
    "model_type": "AutoModelForCausalLM",
    "load_in_8bit": False,
    "load_in_4bit": True,
    "datasets": [{"path": "aaditya/alpaca_subset_1", "type": "alpaca"}],
    "dataset_prepared_path": None,
    "adapter": "qlora",
    "lora_model_dir": None,
    "sequence_len": 4096,
    "sample_packing": True,
    "lora_r": 32,
    "lora_alpha": 16,
    "lora_dropout": 0.05,
    "lora_target_linear": True,
    "wandb_project": None,
    "gradient_accumulation_steps": 4,
    "micro_batch_size": 2,
    "num_epochs": 4,
    "optimizer": "paged_adamw_32bit",
    "learning_rate": 0.0002,
    "bf16": "auto",
    "tf32": False,
    "gradient_checkpointing": True,
    "attn_implementation": "flash_attention_2",
    "special_tokens": {"pad_token": "<|end_of_text|>"},
}


ZERO_3 = {
    "fp16": {"enabled": True, "loss_scale": 0},
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "nvme", "nvme_path": "/disk"},
        "offload_param": {"device": "cpu"},
        "stage3_max_live_parameters": 1e9,
    },
    "train_micro_batch_size_per_gpu": 1,
}


TRL = {
    "model_name_or_path": "Qwen/Qwen2.5-7B",
    "dataset_name": "trl-lib/Capybara",
    "use_peft": True,
    "lora_target_modules": ["q_proj", "v_proj", "o_proj"],
    "load_in_4bit": True,
    "per_device_train_batch_size": 2,
    "max_length": 2048,
    "output_dir": "out",
    "learning_rate": "2.0e-4",
    "packing": True,
    "loss_type": "nll",
}


LLAMA_FACTORY = {
    "model_name_or_path": "Qwen/Qwen3-4B-Instruct-2507",
    "quantization_bit": 4,
    "quantization_method": "bnb",
    "stage": "sft",
    "finetuning_type": "lora",
    "lora_rank": 8,
    "lora_target": "all",
    "dataset": "identity,alpaca_en_demo",
    "template": "qwen3_nothink",
    "cutoff_len": 2048,
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 8,
    "bf16": True,
}
