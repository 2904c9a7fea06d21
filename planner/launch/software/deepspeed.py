"""Plans as DeepSpeed configurations.

**Source**: DeepSpeed 0.19.8 `runtime/config.py` and `runtime/zero/{config,offload_config}.py`; the launcher is
`deepspeed --num_gpus`.
"""

from typing import Final, get_args

from planner.errors import SpecError
from planner.launch.settings import (
    TAKES_WHAT_IT_NEEDS,
    ConfigFile,
    Job,
    Launcher,
    LaunchFacts,
    Setting,
    accumulation,
    clipping,
)
from planner.launch.software.accelerate import SCRIPT_BASICS, SCRIPT_FIELDS
from planner.workload.alignment import AlignmentMethod
from planner.workload.training import Training

_VERSION: Final = "deepspeed==0.19.8"
_CONFIG: Final = "ds_config.json"
IMAGE: Final = "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-devel"
_SECTIONS: Final = {"amp-bf16": "bf16", "amp-fp16": "fp16"}
_TYPES: Final = {"adamw": "AdamW", "lion": "Lion", "muon": "Muon", "sgd": "SGD"}


def deepspeed_settings(facts: LaunchFacts, workload: Training) -> tuple[Setting, ...]:
    """Return the settings of a DeepSpeed configuration for `workload`.

    `pin_memory`, whose default changed with 0.19, is always written.

    Raises:
        SpecError: If DeepSpeed does not share a training so.
    """
    parallel = workload.parallel
    if parallel.model_shards > 1 or parallel.expert > 1:
        raise SpecError(
            "parallel", "files are written for DeepSpeed's ZeRO only, not for splits of the model", "Share by --zero."
        )
    settings = [
        Setting("train_micro_batch_size_per_gpu", workload.micro_batch, "sequences on each GPU", ("micro_batch",)),
        accumulation(workload),
        Setting(
            "train_batch_size",
            workload.micro_batch * workload.gradient_accumulation * facts.cards,
            "sequences of all GPUs in each optimizer step",
            ("parallel.data", "count"),
        ),
        clipping(workload, "gradient_clipping"),
    ]
    if workload.compute in _SECTIONS:
        key = f"{_SECTIONS[workload.compute]}.enabled"
        settings.append(Setting(key, True, "compute precision, with weights in fp32", ("compute",)))
    if workload.optimizer in _TYPES:
        settings.append(Setting("optimizer.type", _TYPES[workload.optimizer], "optimizer", ("optimizer",)))
        settings.append(Setting("optimizer.params.lr", 1e-5, "learning rate; choose yours"))
    return (*settings, *_zero_settings(workload))


def _zero_settings(workload: Training) -> tuple[Setting, ...]:
    parallel = workload.parallel
    settings = [Setting("zero_optimization.stage", parallel.zero, "what replicas share", ("parallel.zero",))]
    places = {"optimizer": ("offload_optimizer",), "parameters": ("offload_optimizer", "offload_param")}
    for section in places.get(parallel.offload, places["parameters"]) if parallel.offload != "none" else ():
        device = "nvme" if parallel.offload == "nvme" else "cpu"
        key = f"zero_optimization.{section}"
        settings.append(Setting(f"{key}.device", device, "place of these tensors", ("parallel.offload",)))
        settings.append(Setting(f"{key}.pin_memory", True, "RAM that cannot be swapped; the default has changed"))
        if device == "nvme":
            settings.append(Setting(f"{key}.nvme_path", "/local_nvme", "folder on the disk; choose yours"))
    return tuple(settings)


def _write(facts: LaunchFacts) -> Job:
    workload = facts.training
    return Job(
        start=("deepspeed",),
        requirement=_VERSION,
        arguments=(Setting("--num_gpus", facts.cards_per_node, "one process for each GPU", ("count",)),),
        rest=("train.py", "--deepspeed", "--deepspeed_config", _CONFIG),
        configs=(ConfigFile(_CONFIG, "json", deepspeed_settings(facts, workload)),),
        image=IMAGE,
        in_image=False,
        expressed=("profile",),
        named=SCRIPT_BASICS,
        unexpressed={
            **SCRIPT_FIELDS,
            "checkpoint_every": "your script checkpoints its layers",
            **TAKES_WHAT_IT_NEEDS,
        },
    )


DEEPSPEED: Final = Launcher(
    "deepspeed",
    "DeepSpeed",
    "DeepSpeed 0.19.8",
    "training",
    ("deepspeed",),
    _write,
    objectives=get_args(AlignmentMethod),
)
