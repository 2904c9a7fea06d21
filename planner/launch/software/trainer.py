"""Settings that TRL, axolotl and LLaMA-Factory share, as arguments of transformers' Trainer.

**Source**: transformers 5.23 `TrainingArguments`; the readers in `planner.workload.recipes` are their inverse.
"""

from typing import Final, NamedTuple

from planner.errors import SpecError
from planner.launch.settings import TAKES_WHAT_IT_NEEDS, LaunchFacts, Setting, accumulation, clipping, with_prefix
from planner.launch.software.accelerate import OFFLOADING, RESHARDING
from planner.launch.software.deepspeed import deepspeed_settings
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.recipes.keys import OPTIMIZER_NAMES
from planner.workload.training import Lora, Training

ATTENTIONS: Final = {"eager": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}
UNEXPRESSED: Final = {
    **TAKES_WHAT_IT_NEEDS,
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
        accumulation(workload),
        Setting("optim", optimizer_name(workload), "optimizer and its step", ("optimizer", "optimizer_step")),
        clipping(workload, "max_grad_norm"),
    )


def sharing_settings(facts: LaunchFacts, workload: Training, title: str) -> tuple[Setting, ...]:
    """Return the sections on FSDP or DeepSpeed, none for replicas.

    Raises:
        SpecError: If the program does not share a training so.
    """
    parallel = workload.parallel
    if workload.profile == "deepspeed":
        # The Trainer makes the optimizer, and hands its own numbers on.
        own = (
            one for one in deepspeed_settings(facts, workload) if not one.key.startswith(("optimizer.", "train_batch"))
        )
        profile = Setting("deepspeed.steps_per_print", 10, "the section makes it DeepSpeed's", ("profile",))
        return (*with_prefix("deepspeed.", own), profile)
    if parallel.zero == 0:
        return ()
    if parallel.zero != 3 or parallel.offload in ("optimizer", "nvme"):
        raise SpecError(
            "parallel", f"{title} shares so in DeepSpeed only", "Plan with --zero 3, or with --profile deepspeed."
        )
    rows = (
        Setting("version", 2, "FSDP2"),
        Setting(
            "reshard_after_forward",
            parallel.reshard_after_forward,
            RESHARDING[True],
            ("parallel.reshard_after_forward",),
        ),
        Setting("offload_params", parallel.offload == "parameters", OFFLOADING[True], ("parallel.offload",)),
        Setting("auto_wrap_policy", "TRANSFORMER_BASED_WRAP", "one unit for each layer"),
    )
    return (
        Setting("fsdp", ("full_shard", "auto_wrap"), "replicas share all states (FSDP)", ("parallel.zero",)),
        *with_prefix("fsdp_config.fsdp_", rows),
    )


class AdapterKeys(NamedTuple):
    """A program's keys for adapters and for quantized frozen weights; those of the bits have the value beside them."""

    dora: str
    nested: str
    rank: str = "lora_r"
    has_alpha: bool = True
    four_bits: tuple[str, bool | int] = ("load_in_4bit", True)
    eight_bits: tuple[str, bool | int] = ("load_in_8bit", True)


def peft_settings(workload: Training, keys: AdapterKeys, targets: Setting, *own: Setting) -> tuple[Setting, ...]:
    """Return the settings of adapters and of the frozen weights; `own` are further ones of the program."""
    lora, weights = lora_of(workload), workload.weights or ""
    alpha = Setting("lora_alpha", 2 * lora.rank, "scale of the adapters; choose yours")
    settings = [
        Setting(keys.rank, lora.rank, "rank of the adapters", ("lora.rank",)),
        *((alpha,) if keys.has_alpha else ()),
        Setting("lora_dropout", lora.dropout, "dropout of the adapters", ("lora.dropout",)),
        targets._replace(fields=("lora.targets",)),
        *((Setting(keys.dora, True, "weight-decomposed adapters", ("lora.dora",)),) if lora.dora else ()),
        *own,
    ]
    if weights.startswith("nf4"):
        settings.append(Setting(*keys.four_bits, "frozen weights in NF4", ("method", "weights")))
        settings.append(Setting(keys.nested, weights.endswith("dq"), "scales quantized again", ("weights",)))
    elif weights == "int8":
        settings.append(Setting(*keys.eight_bits, "frozen weights in INT8", ("weights",)))
    return tuple(settings)


def lora_of(workload: Training) -> Lora:
    """Return the plan's adapters, with their defaults."""
    return workload.lora or Lora()


def target_names(lora: Lora) -> tuple[str, ...]:
    """Return the names of the layers with adapters."""
    return ("all-linear",) if lora.targets == "all-linear" else tuple(lora.targets)
