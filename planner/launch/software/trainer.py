"""Settings that TRL, axolotl and LLaMA-Factory share, as arguments of transformers' Trainer.

**Source**: transformers 5.23 `TrainingArguments`; the readers in `planner.workload.recipes` are their inverse.
"""

from collections.abc import Mapping
from typing import Final

from planner.errors import SpecError
from planner.launch.settings import LaunchFacts, Setting
from planner.launch.software.deepspeed import deepspeed_settings
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.recipes.keys import OPTIMIZER_NAMES
from planner.workload.training import Lora, Training

ATTENTIONS: Final = {"eager": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}
UNEXPRESSED: Final = {
    "other_processes_bytes": "training takes what it needs, whatever else is on the GPU",
    "checkpoint_every": "every layer is checkpointed",
    "trainable": "name the trained parameters in the program's own patterns",
    "parallel.gradient_as_bucket_view": "the Trainer decides",
}
"""Fields that no argument of the Trainer expresses, with the reason."""


def optimizer_name(workload: Training) -> str:
    """Return the Trainer's name of the plan's optimizer and its step.

    Raises:
        SpecError: If it has none.
    """
    names = {(ours, step): theirs for theirs, (ours, step) in OPTIMIZER_NAMES.items()}
    default = OPTIMIZERS[workload.optimizer].steps[0]
    found = names.get((workload.optimizer, workload.optimizer_step)) or (
        names.get((workload.optimizer, None)) if workload.optimizer_step in (None, default) else None
    )
    if found is None:
        known = dict.fromkeys(ours for ours, _ in OPTIMIZER_NAMES.values())
        raise SpecError(
            "optimizer", f"the Trainer has no {workload.optimizer} with this step", f"It has {', '.join(known)}."
        )
    return found


def refuse_unwritten(workload: Training, title: str) -> None:
    """Refuse what no argument of the Trainer can say and what would change the memory.

    Raises:
        SpecError: If the plan has such a field.
    """
    parallel = workload.parallel
    if parallel.model_shards > 1 or parallel.expert > 1:
        raise SpecError("parallel", f"no splits of the model are written for {title}", "Share by --zero.")
    if workload.activation_checkpointing == "selective":
        raise SpecError("activation_checkpointing", f"{title} checkpoints all layers or none", "Choose full or none.")
    if workload.method == "full" and workload.trainable:
        raise SpecError("trainable", f"no patterns are written for {title}", "Train all parameters, or adapters.")


def step_settings(workload: Training) -> tuple[Setting, ...]:
    """Return the arguments of a step: batch, optimizer and clipping."""
    return (
        Setting("per_device_train_batch_size", workload.micro_batch, "sequences on each GPU", ("micro_batch",)),
        Setting(
            "gradient_accumulation_steps",
            workload.gradient_accumulation,
            "forward passes before each optimizer step",
            ("gradient_accumulation",),
        ),
        Setting("optim", optimizer_name(workload), "optimizer and its step", ("optimizer", "optimizer_step")),
        clipping(workload),
    )


def clipping(workload: Training) -> Setting:
    """Return the argument of gradient clipping, whose default is to clip."""
    norm = 1.0 if workload.gradient_clipping else 0.0
    return Setting("max_grad_norm", norm, "largest norm of the gradients; 0 clips none", ("gradient_clipping",))


def sharing_settings(facts: LaunchFacts, workload: Training, title: str) -> tuple[Setting, ...]:
    """Return the sections on FSDP or DeepSpeed, none for replicas.

    Raises:
        SpecError: If the program does not share a training so.
    """
    parallel = workload.parallel
    if workload.profile == "deepspeed":
        nested = deepspeed_settings(facts, workload)
        # The Trainer makes the optimizer, and hands its own numbers on.
        profile = Setting("deepspeed.steps_per_print", 10, "the section makes it DeepSpeed's", ("profile",))
        kept = (one for one in nested if not one.key.startswith(("optimizer.", "train_batch")))
        return (*(one._replace(key=f"deepspeed.{one.key}") for one in kept), profile)
    if parallel.zero == 0:
        return ()
    if parallel.zero != 3 or parallel.offload in ("optimizer", "nvme"):
        raise SpecError(
            "parallel", f"{title} shares so in DeepSpeed only", "Plan with --zero 3, or with --profile deepspeed."
        )
    rows: Mapping[str, tuple[bool | str | int, str, tuple[str, ...]]] = {
        "reshard_after_forward": (
            parallel.reshard_after_forward,
            "parameters are freed after the forward pass",
            ("parallel.reshard_after_forward",),
        ),
        "offload_params": (parallel.offload == "parameters", "parameters in RAM", ("parallel.offload",)),
        "auto_wrap_policy": ("TRANSFORMER_BASED_WRAP", "one unit for each layer", ()),
    }
    return (
        Setting("fsdp", ("full_shard", "auto_wrap"), "replicas share all states (FSDP)", ("parallel.zero",)),
        Setting("fsdp_config.fsdp_version", 2, "FSDP2"),
        *(Setting(f"fsdp_config.fsdp_{key}", value, comment, fields) for key, (value, comment, fields) in rows.items()),
    )


def lora_of(workload: Training) -> Lora:
    """Return the plan's adapters, with their defaults."""
    return workload.lora or Lora()


def target_names(lora: Lora) -> tuple[str, ...]:
    """Return the names of the layers with adapters."""
    return ("all-linear",) if lora.targets == "all-linear" else tuple(lora.targets)
