"""Reader of the YAML files of `accelerate config`: number of GPUs, precision and parallelism.

**Source**: accelerate 1.15.0.dev0 `commands/config/config_args.py` (`ClusterConfig`) and `cluster.py`.
"""

from typing import Final

from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.deepspeed import read_engine, read_offload
from planner.workload.recipes.fsdp import PREFIX, read_fsdp
from planner.workload.recipes.keys import read_clipping
from planner.workload.recipes.recipe import split_keys

_NEUTRAL: Final = split_keys(
    """
    compute_environment debug distributed_type machine_rank num_machines gpu_ids main_process_ip main_process_port
    rdzv_backend same_network main_training_function enable_cpu_affinity tpu_name tpu_zone tpu_use_cluster tpu_use_sudo
    command_file commands tpu_vm tpu_env use_cpu mpirun_config
    """
)
_OTHERS: Final = {
    "downcast_bf16": "TPU number formats",
    "fp8_config": "FP8 compute",
    "dynamo_config": "compilation of the model",
    "dynamo_backend": "compilation of the model",
}
_COMPUTE: Final = {"no": "fp32", "bf16": "amp-bf16", "fp16": "amp-fp16"}
_PARALLEL: Final = {"tp_size": "tensor", "cp_size": "context", "sp_size": "context"}
_MEGATRON: Final = {"tp_degree": "tensor", "pp_degree": "pipeline", "context_parallel_size": "context"}
_PROFILES: Final = {"DEEPSPEED": "deepspeed", "MEGATRON_LM": "megatron"}
_DEEPSPEED_NEUTRAL: Final = split_keys(
    """
    zero3_init_flag zero3_save_16bit_model deepspeed_multinode_launcher deepspeed_hostfile deepspeed_exclusion_filter
    deepspeed_inclusion_filter offload_optimizer_nvme_path offload_param_nvme_path deepspeed_moe_layer_cls_names
    """
)


def read_accelerate(reader: ConfigReader) -> None:
    """Read an accelerate configuration."""
    cards = reader.integer("num_processes", low=-1)
    if cards is not None and cards > 0:
        reader.set_gpu_count("num_processes", cards)
    _read_precision(reader)
    kind = str(reader.raw("distributed_type") or "NO").upper()
    _read_sections(reader, kind)
    reader.ignore_rest(_NEUTRAL, _OTHERS)


def _read_precision(reader: ConfigReader) -> None:
    # YAML takes a bare `no` for false.
    name = reader.raw("mixed_precision")
    word = "no" if name is False else name
    if isinstance(word, str) and word in _COMPUTE:
        reader.set("mixed_precision", "compute", _COMPUTE[word])
    elif word is None:
        reader.assume("mixed_precision", "no", "compute", "fp32")
    else:
        reader.ignore_unestimated("mixed_precision", f"compute in {word}; BF16 is assumed")


def _read_sections(reader: ConfigReader, kind: str) -> None:
    if kind in _PROFILES:
        reader.set("distributed_type", "profile", _PROFILES[kind])
    readers = {
        "FSDP": ("fsdp_config", PREFIX, read_fsdp),
        "DEEPSPEED": ("deepspeed_config", "", _read_deepspeed),
        "MEGATRON_LM": ("megatron_lm_config", "megatron_lm_", _read_megatron),
    }
    for owner, (key, prefix, read) in readers.items():
        section = reader.section(key, prefix) if kind == owner else None
        if section is not None:
            read(section)
        elif reader.has(key):
            reader.ignore(key, f"not used: distributed_type is {kind}")
    section = reader.section("parallelism_config", "parallelism_config_")
    if section is not None:
        _read_parallelism(section)


def _read_deepspeed(section: ConfigReader) -> None:
    file = section.section("deepspeed_config_file") if isinstance(section.raw("deepspeed_config_file"), dict) else None
    if file is not None:
        read_engine(file)
    elif section.has("deepspeed_config_file"):
        section.ignore_unestimated("deepspeed_config_file", "a configuration file outside this folder")
    stage = section.integer("zero_stage", low=0, high=3)
    # Without a file, DeepSpeedPlugin takes stage 2.
    section.set_or_default(
        "zero_stage", "parallel.zero", stage, default=None if section.has("deepspeed_config_file") else 2
    )
    steps = section.integer("gradient_accumulation_steps")
    section.set_or_default("gradient_accumulation_steps", "gradient_accumulation", steps)
    read_clipping(section, "gradient_clipping")
    optimizer, parameters = "offload_optimizer_device", "offload_param_device"
    read_offload(section, (optimizer, section.string(optimizer)), (parameters, section.string(parameters)))
    section.ignore_rest(_DEEPSPEED_NEUTRAL)


def _read_parallelism(section: ConfigReader) -> None:
    for key, name in _PARALLEL.items():
        size = section.integer(key)
        if size is not None and size > 1:
            section.set(key, f"parallel.{name}", size)
    shards, copies = section.integer("dp_shard_size"), section.integer("dp_replicate_size")
    if shards is not None and shards > 1 and (copies or 1) == 1:
        section.set("dp_shard_size", "parallel.zero", 3)
    elif shards is not None and shards > 1:
        section.ignore_unestimated("dp_shard_size", "training states sharded within groups of GPUs")
    section.ignore_rest(
        split_keys(
            """
            dp_replicate_size cp_comm_strategy cp_backend sp_backend sp_attn_implementation sp_seq_length
            sp_seq_length_is_variable
            """
        )
    )


def _read_megatron(section: ConfigReader) -> None:
    for key, name in _MEGATRON.items():
        size = section.integer(key)
        if size is not None:
            section.set(key, f"parallel.{name}", size)
    for key, name in (("sequence_parallelism", "parallel.sequence"), ("use_distributed_optimizer", "parallel.zero")):
        if section.flag(key):
            section.set(key, name, 1 if name.endswith("zero") else True)
    section.set_if_enabled("recompute_activations", "activation_checkpointing", "selective")
    read_clipping(section, "gradient_clipping")
    steps = section.integer("num_micro_batches")
    section.set_or_default("num_micro_batches", "gradient_accumulation", steps)
    section.ignore_rest(())
