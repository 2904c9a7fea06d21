"""Plans as configurations of axolotl.

**Source**: axolotl 0.19.0 `utils/schemas/{config,training,peft,model,fsdp}.py` and `cli/main.py`.
"""

from typing import Final

from planner.errors import SpecError
from planner.launch.settings import ConfigFile, Job, Launcher, LaunchFacts, Setting, accumulation, clipping
from planner.launch.software.trainer import (
    ATTENTIONS,
    UNEXPRESSED,
    AdapterKeys,
    lora_of,
    optimizer_name,
    peft_settings,
    refuse_unwritten,
    sharing_settings,
    target_names,
)
from planner.workload.training import Training

_CONFIG: Final = "axolotl.yaml"
_TITLE: Final = "axolotl"
_PRECISIONS: Final[dict[str, tuple[tuple[str, bool | str], ...]]] = {
    "amp-bf16": (("bf16", True),),
    "amp-fp16": (("bf16", False), ("fp16", True)),
    "fp32": (("bf16", False), ("float32", True)),
    "tf32": (("bf16", False), ("tf32", True)),
}
_ADAPTER_KEYS: Final = AdapterKeys("peft_use_dora", "bnb_config_kwargs.bnb_4bit_use_double_quant")
_LOADED: Final = {"amp-bf16": "bf16", "amp-fp16": "fp16", "fp32": "fp32", "tf32": "fp32"}


def _write(facts: LaunchFacts) -> Job:
    workload = facts.training
    refuse_unwritten(workload, _TITLE)
    if workload.compute not in _PRECISIONS:
        raise SpecError("compute", f"axolotl does not compute in {workload.compute}", "Choose amp-bf16.")
    loaded = _LOADED[workload.compute]
    if not workload.adapts and workload.weights != loaded:
        raise SpecError(
            "weights", f"axolotl loads a fully trained model in {loaded} here", f"Plan with --weights {loaded}."
        )
    own = ("weights",) if workload.weights == loaded else ()
    settings = (
        Setting("base_model", facts.model, "model", ("model",)),
        Setting("datasets", ({"path": "tatsu-lab/alpaca", "type": "alpaca"},), "data; choose yours"),
        Setting("output_dir", "out", "folder of checkpoints"),
        Setting("learning_rate", 2e-4 if workload.adapts else 1e-5, "learning rate; choose yours"),
        Setting("micro_batch_size", workload.micro_batch, "sequences on each GPU", ("micro_batch",)),
        accumulation(workload),
        Setting("sequence_len", workload.sequence_length, "sequence length", ("sequence_length",)),
        Setting("optimizer", optimizer_name(workload), "optimizer and its step", ("optimizer", "optimizer_step")),
        clipping(workload, "max_grad_norm"),
        *(
            Setting(key, value, "compute precision, and format of the loaded weights", ("compute", *own))
            for key, value in _PRECISIONS[workload.compute]
        ),
        Setting(
            "gradient_checkpointing",
            workload.activation_checkpointing == "full",
            "activation checkpointing",
            ("activation_checkpointing",),
        ),
        Setting("attn_implementation", ATTENTIONS[workload.attention], "attention", ("attention",)),
        *_adapters(workload),
        *_loss(workload),
        *sharing_settings(facts, workload, _TITLE),
    )
    return Job(
        start=("axolotl", "train", _CONFIG),
        requirement="axolotl==0.19.0",
        arguments=(Setting("--launcher", "accelerate", "one process for each GPU"),),
        rest=("--", "--num_processes", str(facts.cards)),
        configs=(ConfigFile(_CONFIG, "yaml", settings),),
        image="axolotlai/axolotl:0.19.0",
        expressed=("parallel.data",),
        unexpressed={**UNEXPRESSED, "weights": "axolotl loads in the compute precision"},
    )


def _adapters(workload: Training) -> tuple[Setting, ...]:
    if not workload.adapts:
        return ()
    lora = lora_of(workload)
    kind = "qlora" if (workload.weights or "").startswith("nf4") else "lora"
    targets = Setting("lora_target_modules", target_names(lora), "layers with adapters")
    if lora.targets == "all-linear":
        targets = Setting("lora_target_linear", True, "adapters on all linear layers")
    narrow = Setting("peft_autocast_adapter_dtype", False, "adapters in 16 bits", ("lora.adapter_dtype",))
    return (
        Setting("adapter", kind, "adapters are trained", ("method",)),
        *peft_settings(workload, _ADAPTER_KEYS, targets, *((narrow,) if lora.adapter_dtype == "bf16" else ())),
    )


def _loss(workload: Training) -> tuple[Setting, ...]:
    if workload.profile == "liger":
        return (
            Setting("plugins", ("axolotl.integrations.liger.LigerPlugin",), "Liger's kernels", ("profile",)),
            Setting("liger_fused_linear_cross_entropy", workload.loss == "fused-linear", "loss", ("loss",)),
        )
    if workload.loss == "chunked":
        return (
            Setting("chunked_cross_entropy", True, "loss", ("loss",)),
            Setting("chunked_cross_entropy_num_chunks", workload.loss_chunks, "parts of the loss", ("loss_chunks",)),
        )
    if workload.loss == "fused-linear":
        plugin = "axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"
        return (Setting("plugins", (plugin,), "loss without stored logits", ("loss",)),)
    return (Setting("chunked_cross_entropy", False, "loss from full logits", ("loss",)),)


AXOLOTL: Final = Launcher("axolotl", _TITLE, "axolotl 0.19.0", "training", ("hf", "liger", "deepspeed"), _write)
