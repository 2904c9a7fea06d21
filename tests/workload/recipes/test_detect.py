"""Training files of other programs become the workloads that those programs would run."""

import pytest

from planner.errors import RecipeError
from planner.workload.recipes.detect import detect_format, read_recipe
from planner.workload.recipes.recipe import FORMAT_TITLES, FORMAT_VERSIONS, NEUTRAL
from planner.workload.training import Lora, Training

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
EXAMPLES = {
    "axolotl": AXOLOTL_QLORA,
    "trl": TRL,
    "transformers": {"per_device_train_batch_size": 4, "bf16": True, "output_dir": "out"},
    "deepspeed": ZERO_2,
    "accelerate": FSDP_2,
    "llama-factory": LLAMA_FACTORY,
}


def read(config, **more):
    return read_recipe({**config, **more}, "recipe.yml")


def reason(recipe, key):
    return next(entry.reason for entry in recipe.ignored if entry.key == key)


def workload_of(base, **more):
    return read(base, **more).workload


@pytest.mark.parametrize(("kind", "config"), EXAMPLES.items())
def test_the_program_is_told_by_its_keys_and_every_key_has_an_account(kind, config):
    recipe = read(config)
    assert recipe.format == kind == detect_format(config)
    assert recipe.title == FORMAT_TITLES[kind]
    assert kind in FORMAT_VERSIONS
    told = {entry.key.partition(".")[0] for entry in (*recipe.read, *recipe.ignored)}
    assert set(config) <= told
    assert not [entry.key for entry in recipe.ignored if entry.reason == "unknown"]


def test_axolotl_qlora():
    recipe = read(AXOLOTL_QLORA)
    found = recipe.workload
    assert (recipe.model, recipe.cards) == ("NousResearch/Meta-Llama-3-8B", None)
    assert (found.method, found.weights, found.compute) == ("qlora", "nf4-dq", "amp-bf16")
    assert (found.lora.rank, found.lora.targets, found.lora.dropout) == (32, "all-linear", 0.05)
    assert (found.micro_batch, found.gradient_accumulation, found.sequence_length) == (2, 4, 4096)
    assert (found.optimizer, found.attention) == ("paged-adamw-32bit", "flash")
    assert found.activation_checkpointing == "full"
    assert found.gradient_clipping
    assert [entry.key for entry in recipe.assumed] == ["bnb_4bit_use_double_quant", "max_grad_norm"]
    assert reason(recipe, "learning_rate") == "does not change memory"
    assert reason(recipe, "sample_packing") == "sequences are estimated at full length"


def test_axolotl_defaults_are_told():
    recipe = read({"base_model": "x"})
    assert recipe.workload.sequence_length == 512
    assert recipe.workload.weights == "bf16"
    assert {entry.key: entry.value for entry in recipe.assumed} == {
        "adapter": "none",
        "bf16": "auto",
        "micro_batch_size": "1",
        "sequence_len": "512",
        "gradient_accumulation_steps": "1",
        "optimizer": "adamw_torch_fused",
        "max_grad_norm": "1.0",
        "gradient_checkpointing": "false",
    }


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"bf16": True}, ("amp-bf16", "bf16")),
        ({"bf16": "full"}, ("bf16", "bf16")),
        ({"bfloat16": True}, ("bf16", "bf16")),
        ({"float16": True}, ("fp16", "fp16")),
        ({"bf16": False}, ("fp32", "fp32")),
        ({"float32": True}, ("fp32", "fp32")),
        ({"bf16": False, "tf32": True}, ("tf32", "fp32")),
    ],
)
def test_axolotl_precision(more, expected):
    found = workload_of({"base_model": "x"}, **more)
    assert (found.compute, found.weights) == expected


def test_axolotl_in_fp16_trains_adapters_only():
    found = workload_of({"base_model": "x", "adapter": "lora"}, fp16=True, bf16="auto")
    assert (found.compute, found.weights) == ("amp-fp16", "fp16")
    recipe = read({"base_model": "x", "fp16": True})
    assert recipe.workload.weights is None
    assert "parameters in fp16 cannot be trained in amp-fp16" in recipe.not_estimated[0].reason


def test_axolotl_adapters():
    base = {"base_model": "x", "adapter": "lora", "lora_r": "16", "lora_dropout": "5e-2"}
    found = workload_of(base, load_in_8bit=True, lora_target_modules=["q_proj"], peft_use_dora=True)
    assert (found.method, found.weights, found.lora.targets, found.lora.dora) == ("lora", "int8", ("q_proj",), True)
    assert (found.lora.rank, found.lora.dropout) == (16, 0.05)
    assert workload_of(base, load_in_4bit=True).method == "qlora"
    assert workload_of(base, peft_autocast_adapter_dtype=False).lora.adapter_dtype == "bf16"
    plain = read(AXOLOTL_QLORA, bnb_config_kwargs={"bnb_4bit_use_double_quant": False, "bnb_4bit_quant_type": "fp4"})
    assert plain.workload.weights == "nf4"
    assert "FP4" in reason(plain, "bnb_config_kwargs.bnb_4bit_quant_type")
    assert reason(read({"base_model": "x", "lora_r": 8}), "lora_r") == "no adapter is trained"


def test_axolotl_losses_kernels_and_attention():
    base = {"base_model": "x", "plugins": ["axolotl.integrations.liger.LigerPlugin"], "liger_rope": True}
    found = workload_of(base, liger_fused_linear_cross_entropy=True)
    assert (found.profile, found.loss) == ("liger", "fused-linear")
    assert workload_of(base).loss == "full-logits"
    cut = read({"base_model": "x", "plugins": "a.b.CutCrossEntropyPlugin, c.OtherPlugin", "cut_cross_entropy": True})
    assert cut.workload.loss == "fused-linear"
    assert "c.OtherPlugin" in reason(cut, "plugins")
    chunked = workload_of({"base_model": "x"}, chunked_cross_entropy=True, chunked_cross_entropy_num_chunks=4)
    assert (chunked.loss, chunked.loss_chunks) == ("chunked", 4)
    assert workload_of({"base_model": "x"}, eager_attention=True).attention == "eager"
    assert "xformers" in reason(read({"base_model": "x", "attn_implementation": "xformers"}), "attn_implementation")
    offload = read({"base_model": "x", "gradient_checkpointing": "offload"})
    assert offload.workload.activation_checkpointing == "full"
    assert offload.not_estimated[0].key == "gradient_checkpointing"


def test_axolotl_shares_by_fsdp_deepspeed_and_its_own_keys():
    found = workload_of(
        {"base_model": "x", "fsdp": ["full_shard", "auto_wrap", "offload"]},
        fsdp_config={"fsdp_sharding_strategy": "SHARD_GRAD_OP", "offload_params": True, "backward_prefetch": "PRE"},
        tensor_parallel_size=2,
        context_parallel_size=4,
    ).parallel
    assert (found.zero, found.reshard_after_forward, found.offload) == (3, False, "parameters")
    assert (found.tensor, found.context) == (2, 4)
    with_zero = workload_of({"base_model": "x"}, deepspeed=ZERO_2)
    assert (with_zero.parallel.zero, with_zero.parallel.offload) == (2, "optimizer")
    assert with_zero.profile == "deepspeed"
    assert "a configuration file" in reason(read({"base_model": "x", "deepspeed": "zero2.json"}), "deepspeed")


def test_axolotl_trains_named_parameters():
    found = workload_of({"base_model": "x"}, unfrozen_parameters=["^lm_head.weight$", r"model\.norm"])
    assert found.trainable == ("lm_head.weight", "model.norm")
    other = read({"base_model": "x", "unfrozen_parameters": ["layers.[0-9]+"]})
    assert other.workload.trainable == ()
    assert other.not_estimated[0].key == "unfrozen_parameters"


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
    assert reason(liger, "loss_type") == "Liger computes the loss"
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
    recipe = read(base | {"optim": "ademamix", "max_grad_norm": 0, "torch_compile": True, "neftune_noise_alpha": None})
    assert (recipe.workload.optimizer, recipe.workload.gradient_clipping) == ("adamw", False)
    assert {entry.key for entry in recipe.not_estimated} == {"optim", "torch_compile"}
    assert reason(recipe, "neftune_noise_alpha") == "empty"
    assert workload_of({"per_gpu_train_batch_size": 3, "learning_rate": 1}).micro_batch == 3
    assert workload_of(base, optim="adamw_torch").optimizer_step == "foreach"
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
    assert read({"train_batch_size": 7}).workload.compute == "fp32"


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
    assert "groups of cards" in reason(copies, "parallelism_config.dp_shard_size")
    assert "fp8" in reason(read({"distributed_type": "NO", "mixed_precision": "fp8"}), "mixed_precision")


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


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"base_model": "x", "adapter": "mora"}, "adapter is not estimated, got mora"),
        ({"base_model": "x", "lora_dropout": "much", "adapter": "lora"}, "lora_dropout must be a number"),
        ({"base_model": "x", "micro_batch_size": 0}, "micro_batch_size must be a whole number"),
        ({"base_model": "x", "micro_batch_size": True}, "micro_batch_size must be a whole number"),
        ({"base_model": 3}, "base_model must be a string"),
        ({"base_model": "x", "gradient_checkpointing": "maybe"}, "gradient_checkpointing must be true or false"),
        ({"base_model": "x", "plugins": {"a": 1}}, "plugins must be a list of strings, got an object"),
        ({"base_model": "x", "adapter": "lora", "lora_target_modules": [1]}, "lora_target_modules must be a list"),
        ({"zero_optimization": [2]}, "zero_optimization must be a section"),
        ({"zero_optimization": {"stage": 4}}, "zero_optimization.stage must be a whole number from 0 to 3, got 4"),
        ({"stage": "sft", "finetuning_type": "oft"}, "finetuning_type is not estimated"),
        ({"stage": "sft", "quantization_bit": 3}, "quantization_bit is not estimated"),
        ({"stage": "sft", "quantization_bit": 4, "quantization_method": "hqq"}, "quantization_method is not"),
        ({"use_peft": True, "dtype": "int3"}, "dtype must be one of auto"),
        ({"distributed_type": "FSDP", "fsdp_config": {"sharding_strategy": "x" * 99}}, "…"),
        ({"hello": 1}, "is not a known training file"),
        ({"model_name_or_path": "x"}, "is not a known training file"),
    ],
)
def test_what_is_not_allowed_is_named_with_its_file_and_key(config, said):
    with pytest.raises(RecipeError) as caught:
        read(config)
    assert caught.value.message.startswith("recipe.yml: ")
    assert said in caught.value.message
    assert caught.value.hint


def test_what_training_cannot_be_is_an_error_about_its_key():
    with pytest.raises(
        RecipeError, match="peft_autocast_adapter_dtype: adapters in bf16 cannot be combined with amp-fp16"
    ):
        read({"base_model": "x", "adapter": "lora", "peft_autocast_adapter_dtype": False, "fp16": True})


def test_megatron_without_its_choices_and_offload_in_part():
    plain = workload_of({"distributed_type": "MEGATRON_LM"}, megatron_lm_config={"megatron_lm_tp_degree": 2})
    assert (plain.parallel.sequence, plain.parallel.zero, plain.gradient_clipping) == (False, 0, False)
    zero = {"stage": 3, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "none", "ratio": 0.5}}
    recipe = read({"zero_optimization": zero, "optimizer": {"params": {}}, "fp16": {"enabled": False}})
    assert recipe.workload.parallel.offload == "parameters"
    assert "partial" in reason(recipe, "zero_optimization.offload_optimizer.ratio")
    mixed = read({"zero_optimization": {"offload_param": {"device": "nvme"}, "offload_optimizer": {"device": "cpu"}}})
    assert mixed.workload.parallel.offload == "nvme"


def test_no_clipping_by_a_norm_of_none():
    assert not workload_of({"base_model": "x", "max_grad_norm": 0}).gradient_clipping
    trl = {"use_peft": True, "load_in_8bit": False, "bf16": False, "fp16": True}
    assert workload_of(trl).compute == "amp-fp16"
    assert workload_of({"base_model": "x", "adapter": "lora"}).lora.rank == 8
    assert workload_of({"base_model": "x", "adapter": "qlora", "load_in_4bit": False}).method == "qlora"


def test_whole_numbers_in_other_spellings_and_sizes_of_one():
    assert workload_of({"base_model": "x", "micro_batch_size": 2.0, "sequence_len": " 64 "}).micro_batch == 2
    alone = {"parallelism_config_tp_size": 1, "parallelism_config_dp_shard_size": 1}
    found = workload_of({"distributed_type": "MULTI_GPU", "parallelism_config": alone})
    assert found.parallel.is_plain


def test_peft_adapters():
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": "meta-llama/Llama-3.1-8B",
        "r": 32,
        "lora_alpha": 64,
        "lora_dropout": 0.05,
        "target_modules": ["q_proj", "v_proj"],
        "use_dora": True,
        "bias": "none",
        "modules_to_save": ["lm_head"],
        "rank_pattern": {},
    }
    found = read(config)
    assert (found.format, found.model) == ("peft", "meta-llama/Llama-3.1-8B")
    assert found.workload == Training(
        method="lora", lora=Lora(rank=32, dropout=0.05, targets=("q_proj", "v_proj"), dora=True)
    )
    assert reason(found, "lora_alpha") == NEUTRAL
    assert reason(found, "bias") == reason(found, "rank_pattern") == "switched off"
    assert "fully trained" in reason(found, "modules_to_save")
    bare = read({"peft_type": "LORA", "bias": "all"})
    assert bare.workload.lora == Lora(rank=8, targets="all-linear")
    assert "biases" in reason(bare, "bias")
    assert read({"peft_type": "LORA", "target_modules": "all-linear"}).workload.lora.targets == "all-linear"
    pattern = read({"peft_type": "LORA", "target_modules": r".*\.q_proj"})
    assert pattern.workload.lora.targets == "all-linear"
    assert "a name pattern" in reason(pattern, "target_modules")
    with pytest.raises(RecipeError, match="peft_type is not estimated, got IA3"):
        read({"peft_type": "IA3"})
