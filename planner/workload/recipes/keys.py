"""Training-file keys without effect on memory, and names of optimizers and attention implementations."""

from typing import Final

from planner.workload.choices import Attention
from planner.workload.optimizers import Optimizer, OptimizerStep
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.recipe import split_keys

TRAINER_NEUTRAL: Final = split_keys(
    """
    output_dir overwrite_output_dir num_train_epochs max_steps learning_rate lr_scheduler_type lr_scheduler_kwargs
    warmup_steps warmup_ratio optim_args weight_decay adam_beta1 adam_beta2 adam_epsilon average_tokens_across_devices
    label_smoothing_factor bf16_full_eval fp16_full_eval gradient_checkpointing_kwargs activation_checkpointing_kwargs
    use_cache torch_empty_cache_steps logging_strategy logging_steps logging_first_step log_on_each_node logging_dir
    logging_nan_inf_filter include_num_input_tokens_seen include_tokens_per_second log_level log_level_replica
    disable_tqdm report_to run_name project trackio_space_id trackio_bucket_id trackio_static_space_id eval_strategy
    evaluation_strategy eval_steps eval_delay per_device_eval_batch_size per_gpu_eval_batch_size prediction_loss_only
    eval_on_start eval_do_concat_batches eval_use_gather_object eval_accumulation_steps include_for_metrics
    batch_eval_metrics save_only_model save_strategy save_steps save_on_each_node save_total_limit save_safetensors
    enable_jit_checkpoint push_to_hub hub_token hub_private_repo hub_model_id hub_strategy hub_always_push hub_revision
    push_to_hub_model_id push_to_hub_organization push_to_hub_token load_best_model_at_end metric_for_best_model
    greater_is_better ignore_data_skip restore_callback_states_from_checkpoint full_determinism seed data_seed use_cpu
    no_cuda use_mps_device jit_mode_eval use_ipex half_precision_backend fp16_opt_level fp16_backend
    accelerator_config dataloader_drop_last dataloader_num_workers dataloader_pin_memory dataloader_persistent_workers
    dataloader_prefetch_factor dataloader_multiprocessing_context dataloader_in_order remove_unused_columns label_names
    train_sampling_strategy group_by_length length_column_name ddp_find_unused_parameters ddp_broadcast_buffers
    ddp_static_graph ddp_backend ddp_timeout debug skip_memory_metrics do_train do_eval do_predict
    resume_from_checkpoint local_rank past_index tpu_num_cores tpu_metrics_debug mp_parameters ray_scope torchdynamo
    include_inputs_for_metrics eval_do_concat_batches split_batches dispatch_batches use_legacy_prediction_loop
    fsdp_min_num_params fsdp_transformer_layer_cls_to_wrap liger_kernel_config torch_compile_backend torch_compile_mode
    """
)
"""Fields of transformers' `TrainingArguments` in version 5.23, and some from version 4."""

TRAINER_OTHERS: Final = {
    "torch_compile": "compilation of the model",
    "neftune_noise_alpha": "noise on the embeddings (NEFTune)",
    "auto_find_batch_size": "automatic reduction of the batch size",
    "ddp_bucket_cap_mb": "the size of DistributedDataParallel's buckets; the default is assumed",
    "parallelism_config": "parallelism in a separate section",
    "optim_target_modules": "the layers that the optimizer projects; the default ones are assumed",
}

TRL_NEUTRAL: Final = split_keys(
    """
    dataset_name dataset_config dataset_train_split dataset_test_split dataset_streaming ignore_bias_buffers datasets
    streaming test_split_size model_revision lora_alpha lora_task_type use_rslora bnb_4bit_quant_storage
    trust_remote_code chat_template_path dataset_text_field dataset_kwargs dataset_num_proc eos_token pad_token
    truncation_mode shuffle_dataset packing_strategy pad_to_multiple_of eval_packing completion_only_loss
    assistant_only_loss router_aux_loss_coef env
    """
)
"""Keys of TRL's `SFTConfig`, `ModelConfig` and script arguments."""

TRL_OTHERS: Final = {
    "model_init_kwargs": "arguments for loading the model",
    "activation_offloading": "activation offload; activations are counted on the GPU",
    "lora_target_parameters": "adapters on parameters outside linear layers",
    "lora_modules_to_save": "modules that are fully trained besides the adapters",
    "num_generations": "generation during training",
    "max_completion_length": "generation during training",
    "beta": "a reference model besides the trained one",
    "ref_model_init_kwargs": "a reference model besides the trained one",
    "precompute_ref_log_probs": "a reference model besides the trained one",
}

AXOLOTL_NEUTRAL: Final = split_keys(
    """
    strict resume_from_checkpoint auto_resume_from_checkpoints mean_resizing_embeddings trainer_cls num_labels datasets
    test_datasets shuffle_merged_datasets shuffle_before_merging_datasets dataset_prepared_path dataset_shard_num
    dataset_shard_idx skip_prepare_dataset num_dataset_shards_to_save pretraining_dataset dataset_processes
    dataset_num_proc dataset_exact_deduplication dataset_keep_in_memory dataloader_pin_memory dataloader_num_workers
    dataloader_prefetch_factor dataloader_drop_last accelerator_config remove_unused_columns push_dataset_to_hub
    hf_use_auth_token device device_map local_rank ddp seed ddp_timeout ddp_broadcast_buffers
    ddp_find_unused_parameters do_causal_lm_eval eval_causal_lm_metrics do_bench_eval bench_dataset bench_split
    metric_for_best_model greater_is_better loss_watchdog_threshold loss_watchdog_patience gc_steps
    torch_empty_cache_steps gc_collect_steps gradient_checkpointing_kwargs excess_length_strategy eval_sequence_len
    min_sample_len max_prompt_len sample_packing_group_size sample_packing_bin_size sample_packing_sequentially
    sample_packing_mp_start_method eval_sample_packing pad_to_multiple_of curriculum_sampling multipack_real_batches
    pretrain_multipack_buffer_size pretrain_multipack_attn pretraining_sample_concatenation streaming
    streaming_multipack_buffer_size flex_attn_compile_kwargs fsdp_version fsdp_final_state_dict_type val_set_size
    heads_k_stride ring_attn_func special_tokens tokens added_tokens_overrides torch_compile_backend torch_compile_mode
    torch_compile_options max_steps warmup_steps warmup_ratio eval_steps evals_per_epoch eval_strategy save_steps
    saves_per_epoch save_strategy save_total_limit save_first_step logging_steps early_stopping_patience
    load_best_model_at_end save_only_model use_tensorboard profiler_steps profiler_steps_start include_tkps
    include_tokens_per_second low_cpu_mem_usage max_memory gpu_memory_limit chat_template chat_template_jinja
    chat_template_kwargs eot_tokens default_system_message fix_untrained_tokens is_preprocess preprocess_iterable
    total_num_tokens total_supervised_tokens sample_packing_eff_est axolotl_config_path is_falcon_derived_model
    is_llama_derived_model is_mistral_derived_model is_qwen_derived_model generate_samples num_generation_samples
    generation_max_new_tokens generation_temperature generation_top_p generation_top_k generation_prompt_ratio
    generation_do_sample capabilities env_capabilities rope_scaling base_model_config cls_model_config
    tokenizer_config tokenizer_use_fast tokenizer_legacy tokenizer_use_mistral_common tokenizer_type processor_type
    processor_kwargs tokenizer_save_jinja_files trust_remote_code experimental_skip_move_to_device model_type
    type_of_model revision_of_model output_dir hub_model_id hub_strategy hub_revision save_safetensors lora_model_dir
    lora_alpha lora_fan_in_fan_out lora_alpha_pattern peft_use_rslora peft_init_lora_weights loftq_config peft
    peft_ensure_weight_tying qlora_sharded_model_loading loraplus_lr_ratio loraplus_lr_embedding merge_lora merge_method
    eval_batch_size train_on_inputs group_by_length learning_rate embedding_lr embedding_lr_scale weight_decay
    optim_args torchdistx_path lr_scheduler lr_scheduler_kwargs lr_quadratic_warmup cosine_min_lr_ratio
    cosine_constant_lr_ratio lr_div_factor lr_groups adam_epsilon adam_epsilon2 adam_beta1 adam_beta2 adam_beta3
    num_epochs jagged_restart_steps jagged_restart_warmup_steps jagged_restart_anneal_steps use_mlflow
    mlflow_tracking_uri mlflow_experiment_name mlflow_run_name hf_mlflow_log_artifacts use_wandb wandb_name
    wandb_run_id wandb_mode wandb_project wandb_entity wandb_watch wandb_log_model use_comet comet_api_key
    comet_workspace comet_project_name comet_experiment_key comet_mode comet_online comet_experiment_config
    use_otel_metrics otel_metrics_host otel_metrics_port use_trackio trackio_project_name trackio_run_name
    trackio_space_id dynamic_checkpoint noisy_embedding_alpha evaluation_strategy eval_table_size eval_max_new_tokens
    liger_use_token_scaling use_swanlab swanlab_project swanlab_experiment_name swanlab_description swanlab_mode
    swanlab_log_completions use_eaft eaft_alpha eaft_k rl_beta orpo_alpha simpo_gamma cpo_alpha kto_desirable_weight
    kto_undesirable_weight lisa_step_interval lisa_layers_attribute use_ray ray_run_name ray_num_workers
    resources_per_worker relora_prune_ratio relora_prune_method relora_cpu_offload model_quantization_config_kwargs
    qgalore_rank qgalore_scale use_onebitllms
    """
)
"""Keys of axolotl's schemas."""

_REFERENCE: Final = "a reference or reward model besides the trained one"
_LIGER: Final = "individual Liger kernels; those of its profile are assumed"
AXOLOTL_OTHERS: Final = {
    "rl": _REFERENCE,
    "trl": _REFERENCE,
    "vllm": "generation during training",
    "ebft": "generation during training",
    "reward_model": _REFERENCE,
    "process_reward_model": _REFERENCE,
    "qat": "quantization-aware training",
    "quantization": "quantization-aware training",
    "fp8": "FP8 compute",
    "fp8_enable_fsdp_float8_all_gather": "FP8 communication of parameters",
    "batch_size": "the global batch size; micro-batch size and accumulation steps are used",
    "auto_find_batch_size": "automatic reduction of the batch size",
    "world_size": "the number of GPUs of the run; set it in the plan",
    "resize_token_embeddings_to_32x": "an extended vocabulary",
    "embeddings_skip_upcast": "embeddings kept in 16 bits",
    "shrink_embeddings": "a reduced vocabulary",
    "ddp_bucket_cap_mb": "the size of DistributedDataParallel's buckets; the default is assumed",
    "selective_checkpointing": "a custom selection of recomputed operations",
    "activation_offloading": "activation offload; activations are counted on the GPU",
    "layer_offloading": "layer offload; layers are counted on the GPU",
    "freeze_mm_modules": "frozen parts of a multimodal model",
    "xformers_attention": "xFormers attention; SDPA is assumed",
    "flex_attention": "FlexAttention; SDPA is assumed",
    "sage_attention": "SageAttention; SDPA is assumed",
    "s2_attention": "shifted sparse attention",
    "flash_attn_cross_entropy": "additional fused kernels of flash-attn",
    "flash_attn_rms_norm": "additional fused kernels of flash-attn",
    "flash_attn_fuse_mlp": "additional fused kernels of flash-attn",
    "lora_mlp_kernel": "axolotl's fused kernels for adapters",
    "lora_qkv_kernel": "axolotl's fused kernels for adapters",
    "lora_o_kernel": "axolotl's fused kernels for adapters",
    "lora_embedding_kernel": "axolotl's fused kernels for adapters",
    "use_kernels": "other kernels",
    "experts_implementation": "other kernels",
    "quantize_moe_experts": "separately quantized experts",
    "tiled_mlp": "tiled feed-forward blocks",
    "deepcompile": "compilation of the model",
    "torch_compile": "compilation of the model",
    "dp_shard_size": "training states sharded within groups of GPUs; set the parallelism in the plan",
    "dp_replicate_size": "training states sharded within groups of GPUs; set the parallelism in the plan",
    "fp32_norms": "norms kept in fp32",
    "neftune_noise_alpha": "noise on the embeddings (NEFTune)",
    "expert_parallel_size": "expert parallelism; set it in the plan",
    "fused_attn_kernel": "other kernels",
    "llama4_linearized_experts": "linearized experts",
    "reinit_weights": "a modified model",
    "gptq": "adapters on a model in GPTQ",
    "model_quantization_config": "weights in another format",
    "relora": "adapters merged during training",
    "lora_modules_to_save": "modules that are fully trained besides the adapters",
    "lora_target_parameters": "adapters on parameters outside linear layers",
    "lora_rank_pattern": "adapters with different ranks",
    "peft_layers_to_transform": "adapters in some layers only",
    "peft_layers_pattern": "adapters in some layers only",
    "peft_layer_replication": "replicated layers",
    "peft_trainable_token_indices": "tokens that are trained besides the adapters",
    "lora_on_cpu": "adapters kept in RAM",
    "overrides_of_model_config": "a modified model",
    "overrides_of_model_kwargs": "a modified model",
    "max_packed_sequence_len": "an outdated key; use sequence_len",
    "optim_target_modules": "the layers that the optimizer projects; the default ones are assumed",
    "lisa_n_layers": "layers that are trained in turns (LISA)",
    "liger_rope": _LIGER,
    "liger_rms_norm": _LIGER,
    "liger_rms_norm_gated": _LIGER,
    "liger_layer_norm": _LIGER,
    "liger_swiglu": _LIGER,
    "liger_glu_activation": _LIGER,
    "liger_cross_entropy": _LIGER,
}

LLAMA_FACTORY_NEUTRAL: Final = split_keys(
    """
    adapter_name_or_path adapter_folder cache_dir use_fast_tokenizer split_special_tokens model_revision
    low_cpu_mem_usage use_reentrant_gc train_from_scratch infer_backend offload_folder use_kv_cache infer_dtype
    hf_hub_token ms_hub_token om_hub_token print_param_status trust_remote_code quantization_device_map
    image_max_pixels image_min_pixels image_do_pan_and_scan crop_to_patches video_max_pixels video_min_pixels video_fps
    video_maxlen use_audio_in_video audio_sampling_rate stage do_train lora_alpha loraplus_lr_ratio
    loraplus_lr_embedding use_rslora pissa_init pissa_iter pissa_convert create_new_adapter template dataset
    eval_dataset dataset_dir media_dir train_on_prompt mask_history streaming buffer_size mix_strategy interleave_probs
    overwrite_cache preprocessing_batch_size preprocessing_num_workers max_samples eval_num_beams
    ignore_pad_token_for_loss val_size eval_on_each_dataset tool_format default_system enable_thinking
    preserve_thinking tokenized_path data_shared_file_system compute_accuracy disable_shuffling early_stopping_steps
    plot_loss include_effective_tokens_per_second ray_num_workers ray_init_kwargs master_addr master_port use_swanlab
    swanlab_project swanlab_workspace swanlab_run_name swanlab_mode swanlab_api_key swanlab_logdir galore_target
    galore_rank galore_update_interval galore_scale galore_proj_type model_max_length moe_aux_loss_coef pref_beta
    pref_loss predict_with_generate freeze_trainable_layers freeze_trainable_modules ray_run_name ray_storage_path
    resources_per_worker placement_strategy
    """
)
"""Keys of LLaMA-Factory's arguments, besides those of transformers."""

LLAMA_FACTORY_OTHERS: Final = {
    "resize_vocab": "an extended vocabulary",
    "add_tokens": "an extended vocabulary",
    "add_special_tokens": "an extended vocabulary",
    "rope_scaling": "extended positions",
    "shift_attn": "shifted sparse attention",
    "mixture_of_depths": "mixture of depths",
    "use_unsloth_gc": "checkpoints kept in RAM; they are counted on the GPU",
    "upcast_layernorm": "norms kept in fp32",
    "upcast_lmhead_output": "logits converted to fp32",
    "additional_target": "modules that are fully trained besides the adapters",
    "use_llama_pro": "added blocks",
    "use_apollo": "the optimizer APOLLO; AdamW is assumed",
    "use_badam": "the optimizer BAdam; AdamW is assumed",
    "use_adam_mini": "the optimizer Adam-mini; AdamW is assumed",
    "use_mca": "Megatron-Core",
    "use_megatron_bridge": "Megatron-Core",
    "use_hyper_parallel": "another kind of parallelism",
    "use_kt": "layers that run on the CPU",
    "ref_model": _REFERENCE,
    "reward_model": _REFERENCE,
    "galore_layerwise": "layer-wise GaLore updates",
    "freeze_vision_tower": "frozen parts of a multimodal model",
    "freeze_multi_modal_projector": "frozen parts of a multimodal model",
    "freeze_language_model": "frozen parts of a multimodal model",
    "fp8": "FP8 compute",
    "use_v1_kernels": "other kernels",
}


OPTIMIZER_NAMES: Final[dict[str, tuple[Optimizer, OptimizerStep | None]]] = {
    "adamw_torch": ("adamw", "foreach"),
    "adamw_torch_fused": ("adamw", None),
    "adamw_8bit": ("adamw-8bit", None),
    "adamw_bnb_8bit": ("adamw-8bit", None),
    "paged_adamw_8bit": ("paged-adamw-8bit", None),
    "paged_adamw_32bit": ("paged-adamw-32bit", None),
    "adafactor": ("adafactor-transformers", None),
    "adagrad": ("adagrad", None),
    "rmsprop": ("rmsprop", None),
    "sgd": ("sgd", None),
    "lion_32bit": ("lion", None),
    "lion_8bit": ("lion-8bit", None),
    "paged_lion_32bit": ("paged-lion", None),
    "paged_lion_8bit": ("paged-lion-8bit", None),
    "ademamix": ("ademamix", None),
    "ademamix_8bit": ("ademamix-8bit", None),
    "paged_ademamix_32bit": ("paged-ademamix", None),
    "paged_ademamix_8bit": ("paged-ademamix-8bit", None),
    "schedule_free_adamw": ("schedule-free-adamw", None),
    "galore_adamw": ("galore-adamw", None),
    "muon": ("muon", None),
}
"""Optimizers by their transformers names, with the step implementation if it differs from our default.

**Source**: `OptimizerNames` and `Trainer.get_optimizer_cls_and_kwargs` of transformers 5.23; `adamw_torch` is
`torch.optim.AdamW` without `fused`, which takes its foreach step on a GPU. `muon` is axolotl's.
"""

ATTENTION_NAMES: Final[dict[str, Attention]] = {
    "eager": "eager",
    "sdpa": "sdpa",
    "flash_attention_2": "flash",
    "flash_attention_3": "flash",
    "kernels-community/flash-attn2": "flash",
    "kernels-community/flash-attn3": "flash",
    "kernels-community/vllm-flash-attn3": "flash",
}
"""Attention implementations by their `attn_implementation` names in transformers."""

WITHOUT_ADAPTER: Final = "no adapter is trained"
FULL_SEQUENCES: Final = "sequences are estimated at full length"


def read_optimizer(reader: ConfigReader, key: str, default: str) -> None:
    """Read the optimizer from `key`, or assume the program's `default`."""
    name = reader.string(key)
    optimizer_and_step = OPTIMIZER_NAMES.get(name or default)
    if optimizer_and_step is None:
        reader.ignore_unestimated(key, f"the optimizer {name}; AdamW is assumed")
        return
    optimizer, step = optimizer_and_step
    if name is None:
        reader.assume(key, default, "optimizer", optimizer)
    else:
        reader.set(key, "optimizer", optimizer)
    if name is not None and step is not None:
        reader.set(key, "optimizer_step", step)


def read_attention(reader: ConfigReader) -> None:
    """Read the attention implementation; the default of transformers is SDPA."""
    key = "attn_implementation"
    name = reader.string(key)
    if name is None:
        return
    if name in ATTENTION_NAMES:
        reader.set(key, "attention", ATTENTION_NAMES[name])
    else:
        reader.ignore_unestimated(key, f"the attention {name}; SDPA is assumed")


def read_clipping(reader: ConfigReader, key: str, default: float | None = None) -> None:
    """Read gradient clipping from `key`, or assume the program's `default` norm; a norm of 0 switches it off."""
    norm = reader.number(key)
    if norm is not None:
        reader.set(key, "gradient_clipping", norm > 0)
    elif default is not None:
        reader.assume(key, default, "gradient_clipping", True)
