"""The YAML that `accelerate config` writes: how many cards, and how they share the work.

**Source**: accelerate 1.15.0.dev0 `commands/config/config_args.py` (`ClusterConfig`) and `cluster.py`.
"""

from typing import Final

from planner.workload.recipes.deepspeed import read_devices, read_engine
from planner.workload.recipes.draft import Draft
from planner.workload.recipes.fsdp import PREFIX, read_fsdp
from planner.workload.recipes.keys import read_clipping
from planner.workload.recipes.recipe import keys_of

_NEUTRAL: Final = keys_of(
    """
    compute_environment debug distributed_type machine_rank num_machines gpu_ids main_process_ip main_process_port
    rdzv_backend same_network main_training_function enable_cpu_affinity tpu_name tpu_zone tpu_use_cluster tpu_use_sudo
    command_file commands tpu_vm tpu_env use_cpu mpirun_config
    """
)
_OTHERS: Final = {
    "downcast_bf16": "numbers of a TPU",
    "fp8_config": "computing in FP8",
    "dynamo_config": "a compiled network",
    "dynamo_backend": "a compiled network",
}
_COMPUTE: Final = {"no": "fp32", "bf16": "amp-bf16", "fp16": "amp-fp16"}
_PARALLEL: Final = {"tp_size": "tensor", "cp_size": "context", "sp_size": "context"}
_MEGATRON: Final = {"tp_degree": "tensor", "pp_degree": "pipeline", "context_parallel_size": "context"}
_PROFILES: Final = {"DEEPSPEED": "deepspeed", "MEGATRON_LM": "megatron"}
_DEEPSPEED_NEUTRAL: Final = keys_of(
    """
    zero3_init_flag zero3_save_16bit_model deepspeed_multinode_launcher deepspeed_hostfile deepspeed_exclusion_filter
    deepspeed_inclusion_filter offload_optimizer_nvme_path offload_param_nvme_path deepspeed_moe_layer_cls_names
    """
)


def read_accelerate(draft: Draft) -> None:
    """Take all that the file says."""
    cards = draft.whole("num_processes", low=-1)
    if cards is not None and cards > 0:
        draft.counts_cards("num_processes", cards)
    _read_precision(draft)
    kind = str(draft.raw("distributed_type") or "NO").upper()
    _read_sections(draft, kind)
    draft.rest(_NEUTRAL, _OTHERS)


def _read_precision(draft: Draft) -> None:
    # YAML takes a bare `no` for false.
    name = draft.raw("mixed_precision")
    word = "no" if name is False else name
    if isinstance(word, str) and word in _COMPUTE:
        draft.sets("mixed_precision", "compute", _COMPUTE[word])
    elif word is None:
        draft.assumes("mixed_precision", "no", "compute", "fp32")
    else:
        draft.skips("mixed_precision", f"computing in {word}; BF16 is counted")


def _read_sections(draft: Draft, kind: str) -> None:
    if kind in _PROFILES:
        draft.sets("distributed_type", "profile", _PROFILES[kind])
    readers = {
        "FSDP": ("fsdp_config", PREFIX, read_fsdp),
        "DEEPSPEED": ("deepspeed_config", "", _read_deepspeed),
        "MEGATRON_LM": ("megatron_lm_config", "megatron_lm_", _read_megatron),
    }
    for owner, (key, prefix, read) in readers.items():
        section = draft.part(key, prefix) if kind == owner else None
        if section is not None:
            read(section)
        elif draft.has(key):
            draft.leaves(key, f"not used: distributed_type is {kind}")
    section = draft.part("parallelism_config", "parallelism_config_")
    if section is not None:
        _read_parallelism(section)


def _read_deepspeed(section: Draft) -> None:
    file = section.part("deepspeed_config_file") if isinstance(section.raw("deepspeed_config_file"), dict) else None
    if file is not None:
        read_engine(file)
    elif section.has("deepspeed_config_file"):
        section.skips("deepspeed_config_file", "what another file says, which is not beside this one")
    stage = section.whole("zero_stage", low=0, high=3)
    # Without a file, DeepSpeedPlugin takes stage 2.
    section.takes("zero_stage", "parallel.zero", stage, default=None if section.has("deepspeed_config_file") else 2)
    steps = section.whole("gradient_accumulation_steps")
    section.takes("gradient_accumulation_steps", "gradient_accumulation", steps)
    read_clipping(section, "gradient_clipping")
    optimizer, parameters = "offload_optimizer_device", "offload_param_device"
    read_devices(section, (optimizer, section.word(optimizer)), (parameters, section.word(parameters)))
    section.rest(_DEEPSPEED_NEUTRAL)


def _read_parallelism(section: Draft) -> None:
    for key, name in _PARALLEL.items():
        size = section.whole(key)
        if size is not None and size > 1:
            section.sets(key, f"parallel.{name}", size)
    shards, copies = section.whole("dp_shard_size"), section.whole("dp_replicate_size")
    if shards is not None and shards > 1 and (copies or 1) == 1:
        section.sets("dp_shard_size", "parallel.zero", 3)
    elif shards is not None and shards > 1:
        section.skips("dp_shard_size", "states that groups of cards share")
    section.rest(
        keys_of(
            """
            dp_replicate_size cp_comm_strategy cp_backend sp_backend sp_attn_implementation sp_seq_length
            sp_seq_length_is_variable
            """
        )
    )


def _read_megatron(section: Draft) -> None:
    for key, name in _MEGATRON.items():
        size = section.whole(key)
        if size is not None:
            section.sets(key, f"parallel.{name}", size)
    for key, name in (("sequence_parallelism", "parallel.sequence"), ("use_distributed_optimizer", "parallel.zero")):
        if section.flag(key):
            section.sets(key, name, 1 if name.endswith("zero") else True)
    section.switches("recompute_activations", "activation_checkpointing", "selective")
    read_clipping(section, "gradient_clipping")
    steps = section.whole("num_micro_batches")
    section.takes("num_micro_batches", "gradient_accumulation", steps)
    section.rest(())
