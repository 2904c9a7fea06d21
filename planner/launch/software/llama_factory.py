"""Plans as configurations of LLaMA-Factory.

**Source**: LLaMA-Factory 0.9.5 `hparams/{model_args,finetuning_args,data_args}.py` and `launcher.py`.
"""

from typing import Final

from planner.errors import SpecError
from planner.launch.settings import ConfigFile, Job, Launcher, LaunchFacts, Setting
from planner.launch.software.trainer import (
    UNEXPRESSED,
    AdapterKeys,
    lora_of,
    peft_settings,
    refuse_unwritten,
    sharing_settings,
    step_settings,
)
from planner.workload.training import Training

_CONFIG: Final = "llama_factory.yaml"
_TITLE: Final = "LLaMA-Factory"
_ATTENTIONS: Final = {"eager": "disabled", "sdpa": "sdpa", "flash": "fa2"}
_BITS: Final = "quantization_bit"
_ADAPTER_KEYS: Final = AdapterKeys(
    "use_dora", "double_quantization", "lora_rank", has_alpha=False, four_bits=(_BITS, 4), eight_bits=(_BITS, 8)
)
_PRECISIONS: Final = {"amp-bf16": "bf16", "amp-fp16": "fp16", "bf16": "pure_bf16", "tf32": "tf32"}


def _write(facts: LaunchFacts) -> Job:
    workload = facts.training
    refuse_unwritten(workload, _TITLE)
    settings = (
        Setting("model_name_or_path", facts.model, "model", ("model",)),
        Setting("stage", "sft", "supervised fine-tuning"),
        Setting("do_train", True, "train"),
        Setting("dataset", "alpaca_en_demo", "data; choose yours"),
        Setting("template", "default", "prompt template; choose that of the model"),
        Setting("output_dir", "out", "folder of checkpoints"),
        *step_settings(workload),
        Setting("cutoff_len", workload.sequence_length, "sequence length", ("sequence_length",)),
        Setting(
            "disable_gradient_checkpointing",
            workload.activation_checkpointing == "none",
            "activation checkpointing, which is on by default",
            ("activation_checkpointing",),
        ),
        Setting(
            "gradient_checkpointing",
            workload.activation_checkpointing == "full",
            "activation checkpointing, for the Trainer",
            ("activation_checkpointing",),
        ),
        *_precision(workload),
        *_method(workload),
        Setting("flash_attn", _ATTENTIONS[workload.attention], "attention", ("attention",)),
        *_kernels(workload),
        *sharing_settings(facts, workload, _TITLE),
    )
    return Job(
        start=("llamafactory-cli", "train", _CONFIG),
        requirement="llamafactory==0.9.5",
        environment=(
            Setting("FORCE_TORCHRUN", "1", "one process for each GPU"),
            Setting("NPROC_PER_NODE", str(facts.cards_per_node), "GPUs of this node", ("count", "parallel.data")),
        ),
        configs=(ConfigFile(_CONFIG, "yaml", settings),),
        image="hiyouga/llamafactory:0.9.5",
        unexpressed={**UNEXPRESSED, "weights": "LLaMA-Factory chooses it by the precision"},
    )


def _precision(workload: Training) -> tuple[Setting, ...]:
    if workload.compute not in (*_PRECISIONS, "fp32"):
        raise SpecError("compute", f"LLaMA-Factory does not compute in {workload.compute}", "Choose amp-bf16.")
    chosen = _PRECISIONS.get(workload.compute)
    if chosen is None:
        return (Setting("bf16", False, "compute precision: fp32", ("compute",)),)
    return (Setting(chosen, True, "compute precision", ("compute",)),)


def _method(workload: Training) -> tuple[Setting, ...]:
    if not workload.adapts:
        return (Setting("finetuning_type", "full", "all parameters are trained", ("method",)),)
    lora = lora_of(workload)
    targets = "all" if lora.targets == "all-linear" else ",".join(lora.targets)
    return (
        Setting("finetuning_type", "lora", "adapters are trained", ("method",)),
        *peft_settings(workload, _ADAPTER_KEYS, Setting("lora_target", targets, "layers with adapters")),
    )


def _kernels(workload: Training) -> tuple[Setting, ...]:
    if workload.profile == "liger":
        return (Setting("enable_liger_kernel", True, "Liger's kernels and fused loss", ("profile", "loss")),)
    if workload.profile == "unsloth":
        return (Setting("use_unsloth", True, "Unsloth's kernels and fused loss", ("profile", "loss")),)
    if workload.loss != "full-logits":
        raise SpecError("loss", f"LLaMA-Factory has no {workload.loss} loss of its own", "Choose full-logits.")
    return (Setting("enable_liger_kernel", False, "loss from full logits", ("loss",)),)


LLAMA_FACTORY: Final = Launcher(
    "llama-factory",
    _TITLE,
    "LLaMA-Factory 0.9.5",
    "training",
    ("hf", "liger", "unsloth", "deepspeed"),
    _write,
)
