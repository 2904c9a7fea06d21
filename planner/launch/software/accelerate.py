"""Plans as configuration files of `accelerate launch`: DDP, FSDP2 and DeepSpeed.

**Source**: accelerate 1.15.0 `commands/config/config_args.py` (`ClusterConfig`, which refuses unknown keys),
`cluster.py`, `utils/dataclasses.py` (`FullyShardedDataParallelPlugin`).
"""

from typing import Final, get_args

from planner.errors import SpecError
from planner.launch.settings import (
    TAKES_WHAT_IT_NEEDS,
    ConfigFile,
    Job,
    Launcher,
    LaunchFacts,
    RawWord,
    Setting,
    accumulation,
    clipping,
    with_prefix,
)
from planner.workload.alignment import AlignmentMethod
from planner.workload.training import Training

VERSION: Final = "accelerate 1.15.0"
CONFIG: Final = "accelerate.yaml"
MASTER: Final = RawWord('"$MASTER_ADDR"')
_PORT: Final = 29500
_MIXED: Final = {"amp-bf16": "bf16", "amp-fp16": "fp16", "fp32": "no"}
_SCRIPT: Final = "your script sets it"
RENDEZVOUS: Final = (
    Setting("--rdzv_backend", "c10d", "the nodes number themselves"),
    Setting("--main_process_ip", MASTER, "first node"),
    Setting("--main_process_port", _PORT, "port of the first node"),
)
"""Arguments by which the nodes of a training find each other."""
RESHARDING: Final = {True: "parameters are freed after the forward pass", False: "parameters are kept"}
"""Comments on FSDP's parameters between the passes, by whether they are sharded again."""
OFFLOADING: Final = {True: "parameters in RAM", False: "parameters stay on the GPU"}
_OFFLOADS: Final = {"optimizer": ("cpu", "none"), "parameters": ("cpu", "cpu"), "nvme": ("nvme", "nvme")}
_DEGREES: Final = {"tensor": "tp_size", "context": "cp_size"}
SCRIPT_FIELDS: Final = dict.fromkeys(
    (
        "model", "method", "weights", "lora.rank", "lora.targets", "lora.adapter_dtype", "lora.dropout", "lora.dora",
        "trainable", "optimizer", "optimizer_step", "micro_batch", "sequence_length", "attention",
        "loss", "loss_chunks", "image_size",
        "gradient_accumulation", "gradient_clipping", "activation_checkpointing", "compute",
    ),
    _SCRIPT,
)  # fmt: skip
"""Fields that the user's own script sets, since accelerate configures how a script is started."""
SCRIPT_BASICS: Final = ("method", "weights", "optimizer", "micro_batch", "sequence_length")
"""Those of them that are named even at their default, because a script has other defaults."""


def _write(facts: LaunchFacts) -> Job:
    workload = facts.training
    return Job(
        start=("accelerate", "launch"),
        requirement="accelerate==1.15.0",
        arguments=(Setting("--config_file", CONFIG, "number of GPUs, precision and how they share the training"),),
        rest=("train.py",),
        configs=(ConfigFile(CONFIG, "yaml", accelerate_settings(facts, workload)),),
        image="pytorch/pytorch:2.9.1-cuda12.8-cudnn9-devel",
        in_image=False,
        rendezvous=RENDEZVOUS,
        named=SCRIPT_BASICS,
        unexpressed={
            **SCRIPT_FIELDS,
            "profile": "your script applies its kernels",
            "checkpoint_every": "accelerate wraps every layer",
            "parallel.gradient_as_bucket_view": "set DistributedDataParallelKwargs in your script",
            **TAKES_WHAT_IT_NEEDS,
        },
    )


def accelerate_settings(facts: LaunchFacts, workload: Training) -> tuple[Setting, ...]:
    """Return the settings of an accelerate configuration for `workload`.

    Raises:
        SpecError: If the plan shares the training in a way that accelerate does not have.
    """
    parallel = workload.parallel
    kind, sharing = _sharing(facts, workload)
    settings = [
        Setting("compute_environment", "LOCAL_MACHINE", "no cloud service"),
        Setting("debug", False, "default"),
        Setting(
            "distributed_type",
            kind,
            _kind_comment(kind, workload),
            (*(("profile",) if kind == "DEEPSPEED" else ()), "parallel.zero", "parallel.data"),
        ),
        Setting("use_cpu", False, "train on GPUs"),
        Setting("num_machines", facts.nodes, "nodes", ("count",)),
        Setting("machine_rank", 0, "the launcher numbers the nodes"),
        Setting("num_processes", facts.cards, "one process for each GPU of all nodes", ("count",)),
        Setting("main_training_function", "main", "default"),
        Setting("rdzv_backend", "static" if facts.nodes == 1 else "c10d", "how nodes find each other"),
        Setting("same_network", True, "default"),
    ]
    if workload.compute in _MIXED:
        settings.append(Setting("mixed_precision", _MIXED[workload.compute], "compute precision", ("compute",)))
    else:
        settings.append(Setting("mixed_precision", "no", f"{workload.compute}: your script loads the model so"))
    if parallel.pipeline > 1 or parallel.expert > 1 or parallel.sequence:
        raise SpecError(
            "parallel", "accelerate has no pipeline, sequence or expert parallelism of its own", "Share by --zero."
        )
    degrees = [(name, key) for name, key in _DEGREES.items() if getattr(parallel, name) > 1]
    settings += [
        Setting(f"parallelism_config.parallelism_config_{key}", getattr(parallel, name), f"{name} parallelism",
                (f"parallel.{name}",))
        for name, key in degrees
    ]  # fmt: skip
    if degrees and kind == "FSDP":
        replicas = parallel.data or 1
        settings.append(
            Setting("parallelism_config.parallelism_config_dp_shard_size", replicas, "replicas share their states",
                    ("parallel.zero", "parallel.data"))
        )  # fmt: skip
    return (*settings, *sharing)


def _sharing(facts: LaunchFacts, workload: Training) -> tuple[str, tuple[Setting, ...]]:
    """Return accelerate's kind of distribution, and the settings of its section."""
    parallel = workload.parallel
    if workload.profile == "deepspeed":
        return "DEEPSPEED", _deepspeed_section(workload)
    if parallel.zero in (1, 2):
        raise SpecError(
            "parallel.zero",
            f"accelerate has ZeRO-{parallel.zero} in DeepSpeed only",
            "Plan with --zero 3 (FSDP2), or with --profile deepspeed.",
        )
    if parallel.offload in ("optimizer", "nvme"):
        raise SpecError(
            "parallel.offload",
            f"FSDP2 does not offload to {'disk' if parallel.offload == 'nvme' else 'RAM the optimizer states alone'}",
            "Plan with --offload parameters, or with --profile deepspeed.",
        )
    if parallel.zero == 3:
        return "FSDP", _fsdp_section(workload)
    return ("MULTI_GPU" if facts.cards > 1 else "NO"), ()


def _kind_comment(kind: str, workload: Training) -> str:
    kinds = {
        "DEEPSPEED": "DeepSpeed",
        "FSDP": "parameters, gradients and optimizer states shared by all replicas (FSDP)",
        "MULTI_GPU": "each GPU holds the whole model (DDP)",
        "NO": "one GPU",
    }
    return f"{kinds[kind]}, ZeRO-{workload.parallel.zero}" if kind == "DEEPSPEED" else kinds[kind]


def _fsdp_section(workload: Training) -> tuple[Setting, ...]:
    """Return the section of FSDP, version 2: accelerate's default is still version 1."""
    parallel, full = workload.parallel, workload.activation_checkpointing == "full"
    freed, offloads = parallel.reshard_after_forward, parallel.offload == "parameters"
    recomputed = "recompute every layer; keep the Trainer's gradient_checkpointing off"
    checkpointed = ("activation_checkpointing",) if workload.activation_checkpointing != "selective" else ()
    rows = (
        Setting("version", 2, "FSDP2 (the default is version 1)", ("parallel.zero",)),
        Setting("reshard_after_forward", freed, RESHARDING[freed], ("parallel.reshard_after_forward",)),
        Setting("offload_params", offloads, OFFLOADING[offloads], ("parallel.offload",)),
        Setting("activation_checkpointing", full, recomputed if full else "activations are kept", checkpointed),
        Setting("auto_wrap_policy", "TRANSFORMER_BASED_WRAP", "one unit for each layer"),
        Setting("state_dict_type", "SHARDED_STATE_DICT", "each GPU saves its part"),
        Setting("cpu_ram_efficient_loading", True, "one process reads the weights"),
    )
    return with_prefix("fsdp_config.fsdp_", rows)


def _deepspeed_section(workload: Training) -> tuple[Setting, ...]:
    parallel = workload.parallel
    states, parameters = _OFFLOADS.get(parallel.offload, ("none", "none"))
    rows = (
        Setting("zero_stage", parallel.zero, "what replicas share", ("parallel.zero",)),
        accumulation(workload),
        clipping(workload, "gradient_clipping"),
        Setting("offload_optimizer_device", states, "place of the optimizer states", ("parallel.offload",)),
        Setting("offload_param_device", parameters, "place of the parameters", ("parallel.offload",)),
        Setting("zero3_init_flag", parallel.zero == 3, "the model is made in parts"),
        Setting("zero3_save_16bit_model", parallel.zero == 3, "parts are gathered to save them"),
    )
    return with_prefix("deepspeed_config.", rows)


ACCELERATE: Final = Launcher(
    "accelerate",
    "accelerate",
    VERSION,
    "training",
    ("hf", "liger", "deepspeed"),
    _write,
    objectives=get_args(AlignmentMethod),
)
