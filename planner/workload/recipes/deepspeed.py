"""Reader of DeepSpeed's JSON files: batch, precision, optimizer and ZeRO.

**Source**: DeepSpeed 0.16.5, docs/_pages/config-json.md and `deepspeed/runtime/zero/config.py`.
"""

from typing import Final

from planner.workload.optimizers import Optimizer
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.keys import read_clipping
from planner.workload.recipes.recipe import split_keys

_OPTIMIZERS: Final[dict[str, Optimizer]] = {
    "adam": "adamw",
    "adamw": "adamw",
    "lion": "lion",
    "muon": "muon",
    "sgd": "sgd",
}
_NEUTRAL: Final = split_keys(
    """
    scheduler steps_per_print wall_clock_breakdown dump_state prescale_gradients gradient_predivide_factor
    sparse_gradients memory_breakdown seed disable_allgather comms_logger tensorboard wandb comet csv_monitor
    flops_profiler dataloader_drop_last data_types checkpoint zero_allow_untested_optimizer zero_force_ds_cpu_optimizer
    use_node_local_storage load_universal_checkpoint elasticity autotuning aio timers
    """
)
_OTHERS: Final = {
    "activation_checkpointing": "DeepSpeed's own activation checkpointing, which only model code can call",
    "communication_data_type": "the communication data type",
    "seq_parallel_communication_data_type": "the communication data type",
    "compression_training": "compression during training",
    "curriculum_learning": "curriculum learning",
    "data_efficiency": "data efficiency methods",
    "sparse_attention": "sparse attention",
    "pipeline": "stages of DeepSpeed's own pipelines",
    "tensor_parallel": "DeepSpeed's own tensor parallelism",
    "amp": "NVIDIA Apex",
    "compile": "compilation of the model",
    "fp8": "FP8 compute",
    "torch_autocast": "autocast inside DeepSpeed",
    "hybrid_engine": "generation during training",
}
_ZERO_NEUTRAL: Final = split_keys(
    """
    overlap_comm contiguous_gradients reduce_scatter allgather_partitions round_robin_gradients ignore_unused_parameters
    stage3_gather_16bit_weights_on_model_save stage3_gather_fp16_weights_on_model_save
    gather_16bit_weights_on_model_save load_from_fp32_weights elastic_checkpoint legacy_stage1
    stage3_module_granularity_threshold log_trace_cache_warnings
    mics_hierarchical_params_gather
    """
)
_BUCKETS: Final = "the sizes of ZeRO's buckets; defaults are assumed"
_ZERO_OTHERS: Final = {
    "allgather_bucket_size": _BUCKETS,
    "reduce_bucket_size": _BUCKETS,
    "stage3_prefetch_bucket_size": _BUCKETS,
    "stage3_param_persistence_threshold": _BUCKETS,
    "stage3_max_live_parameters": _BUCKETS,
    "stage3_max_reuse_distance": _BUCKETS,
    "sub_group_size": _BUCKETS,
    "max_live_parameters": _BUCKETS,
    "max_reuse_distance": _BUCKETS,
    "zero_hpz_partition_size": "a second copy of the parameters in each node",
    "zero_quantized_weights": "quantized communication of parameters",
    "zero_quantized_nontrainable_weights": "quantized communication of parameters",
    "zero_quantized_gradients": "quantized communication of gradients",
    "mics_shard_size": "training states sharded within groups of GPUs",
    "leaf_module": "modules whose parameters are gathered together",
}
_PRECISION_NEUTRAL: Final = split_keys(
    """
    loss_scale loss_scale_window initial_scale_power hysteresis min_loss_scale auto_cast consecutive_hysteresis
    check_overflow
    """
)
_PRECISION_OTHERS: Final = {
    "fp16_master_weights_and_grads": "master weights in 16 bits",
    "bf16_master_weights_and_grads": "master weights in 16 bits",
    "bf16_optimizer_states": "optimizer states in 16 bits",
    "immediate_grad_update": "immediate accumulation of gradients",
}
_OFFLOAD_NEUTRAL: Final = split_keys(
    "device nvme_path pin_memory buffer_count buffer_size fast_init max_in_cpu pipeline_read pipeline_write"
)
_DEVICES: Final = ("cpu", "nvme")


def read_deepspeed(reader: ConfigReader) -> None:
    """Read a DeepSpeed configuration file."""
    micro = reader.integer("train_micro_batch_size_per_gpu")
    steps = reader.integer("gradient_accumulation_steps")
    reader.set_or_default("train_micro_batch_size_per_gpu", "micro_batch", micro)
    reader.set_or_default("gradient_accumulation_steps", "gradient_accumulation", steps)
    _read_cards(reader, micro, steps)
    _read_precision(reader)
    reader.assume("engine", "DeepSpeed", "profile", "deepspeed")
    read_engine(reader)


def read_embedded_deepspeed(reader: ConfigReader) -> None:
    """Read the DeepSpeed section of another program's file."""
    written = reader.raw("deepspeed")
    zero = reader.section("deepspeed") if isinstance(written, dict) else None
    if zero is not None:
        reader.set("deepspeed", "profile", "deepspeed")
        read_engine(zero)
    elif written:
        reader.ignore_unestimated("deepspeed", "a configuration file outside this folder")


def read_engine(reader: ConfigReader) -> None:
    """Read optimizer, gradient clipping and ZeRO, which also apply if another program starts DeepSpeed."""
    read_clipping(reader, "gradient_clipping")
    _read_optimizer(reader)
    zero = reader.section("zero_optimization")
    if zero is not None:
        _read_zero(zero)
    for key in ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size", "bf16", "fp16"):
        reader.raw(key)
    reader.ignore_rest(_NEUTRAL, _OTHERS)


def read_offload(reader: ConfigReader, optimizer: tuple[str, str | None], parameters: tuple[str, str | None]) -> None:
    """Read the offload device of optimizer states and of parameters, each given as a key and its value."""
    devices = {key: device for key, device in (optimizer, parameters) if device in _DEVICES}
    for key, device in devices.items():
        offload = "nvme" if "nvme" in devices.values() else "parameters" if parameters[0] in devices else "optimizer"
        reader.set(key, "parallel.offload", offload)
        if offload == "nvme" and device != "nvme":
            reader.ignore_unestimated(key, "training states in RAM and on NVMe; all of them count as on NVMe")


def _read_cards(reader: ConfigReader, micro: int | None, steps: int | None) -> None:
    total = reader.integer("train_batch_size")
    if total is None:
        return
    each = (micro or 0) * (steps or 1)
    if each and total % each == 0:
        reader.set_gpu_count("train_batch_size", total // each)
    else:
        reader.ignore("train_batch_size", "the micro-batch size and the accumulation steps apply instead of this key")


def _read_precision(reader: ConfigReader) -> None:
    for key, compute in (("bf16", "amp-bf16"), ("bfloat16", "amp-bf16"), ("fp16", "amp-fp16")):
        section = reader.section(key)
        if section is not None:
            section.set_if_enabled("enabled", "compute", compute)
            section.ignore_rest(_PRECISION_NEUTRAL, _PRECISION_OTHERS)
    if reader.field("compute") is None and not (reader.has("bf16") or reader.has("fp16")):
        reader.assume("bf16.enabled", False, "compute", "fp32")


def _read_optimizer(reader: ConfigReader) -> None:
    section = reader.section("optimizer")
    if section is None:
        return
    name = section.string("type")
    if name is not None and name.lower() in _OPTIMIZERS:
        section.set("type", "optimizer", _OPTIMIZERS[name.lower()])
    elif name is not None:
        section.ignore_unestimated("type", f"the optimizer {name}; AdamW is assumed")
    section.ignore_rest(("params", "legacy_fusion"))


def _read_zero(zero: ConfigReader) -> None:
    stage = zero.integer("stage", low=0, high=3)
    zero.set_or_default("stage", "parallel.zero", stage, default=0)
    devices: list[tuple[str, str | None]] = []
    for key in ("offload_optimizer", "offload_param"):
        section = zero.section(key)
        device = None if section is None else section.string("device")
        devices.append((key, device))
        if section is not None:
            section.ignore_rest(_OFFLOAD_NEUTRAL, {"ratio": "partial offload of training states"})
    if devices[0][1] is None and not zero.has("offload_optimizer") and zero.flag("cpu_offload"):
        devices[0] = ("cpu_offload", "cpu")
    read_offload(zero, devices[0], devices[1])
    zero.ignore_rest(_ZERO_NEUTRAL, _ZERO_OTHERS)
