"""Plans as configurations of `trl sft`.

**Source**: TRL 1.16.0 `trainer/{base_config,sft_config,model_config}.py` and `cli/accelerate_config.py`.
"""

from typing import Final

from planner.errors import SpecError
from planner.launch.settings import ConfigFile, Job, Launcher, LaunchFacts, Setting
from planner.launch.software.deepspeed import IMAGE
from planner.launch.software.trainer import (
    ATTENTIONS,
    UNEXPRESSED,
    lora_of,
    refuse_unwritten,
    sharing_settings,
    step_settings,
    target_names,
)
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.training import Training

_CONFIG: Final = "sft.yaml"
_TITLE: Final = "TRL"
_LOADED: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_LOSSES: Final = {"full-logits": "nll", "chunked": "chunked_nll"}
_CHUNK_TOKENS: Final = 256


def _write(facts: LaunchFacts) -> Job:
    workload = facts.workload
    assert isinstance(workload, Training)
    refuse_unwritten(workload, _TITLE)
    settings = (
        Setting("model_name_or_path", facts.model, "model", ("model",)),
        Setting("dataset_name", "trl-lib/Capybara", "data; choose yours"),
        Setting("output_dir", "out", "folder of checkpoints"),
        *step_settings(workload),
        Setting("max_length", workload.sequence_length, "sequence length", ("sequence_length",)),
        Setting(
            "gradient_checkpointing",
            workload.activation_checkpointing == "full",
            "activation checkpointing, which is on by default",
            ("activation_checkpointing",),
        ),
        *_precision(workload),
        *_method(workload),
        Setting("attn_implementation", ATTENTIONS[workload.attention], "attention", ("attention",)),
        *_loss(workload),
        *sharing_settings(facts, workload, _TITLE),
    )
    return Job(
        start=("trl", "sft"),
        requirement=_requirement(workload),
        arguments=(
            Setting("--config", _CONFIG, "training of the plan"),
            Setting("--num_processes", facts.cards, "one process for each GPU", ("count", "parallel.data")),
        ),
        configs=(ConfigFile(_CONFIG, "yaml", settings),),
        image=IMAGE,
        in_image=False,
        unexpressed=UNEXPRESSED,
    )


def _requirement(workload: Training) -> str:
    """Return TRL with the extras that the plan needs."""
    by_bitsandbytes = OPTIMIZERS[workload.optimizer].library == "bitsandbytes"
    quantizes = by_bitsandbytes or (workload.weights or "").startswith(("nf4", "int8"))
    needed = {
        "deepspeed": workload.profile == "deepspeed",
        "liger": workload.profile == "liger",
        "peft": workload.adapts,
        "quantization": quantizes,
    }
    extras = ",".join(name for name, is_needed in needed.items() if is_needed)
    return f"trl[{extras}]==1.16.0" if extras else "trl==1.16.0"


def _precision(workload: Training) -> tuple[Setting, ...]:
    compute = workload.compute
    if compute not in ("amp-bf16", "amp-fp16", "fp32", "tf32"):
        raise SpecError("compute", f"TRL computes by autocast or in fp32, not in {compute}", "Choose amp-bf16.")
    rows = [
        Setting("bf16", compute == "amp-bf16", "compute precision; autocast to bf16 is the default", ("compute",)),
    ]
    if compute in ("amp-fp16", "tf32"):
        rows.append(Setting(compute.removeprefix("amp-"), True, "compute precision", ("compute",)))
    if workload.weights in _LOADED:
        rows.append(Setting("dtype", _LOADED[workload.weights], "format of the loaded weights", ("weights",)))
    return tuple(rows)


def _method(workload: Training) -> tuple[Setting, ...]:
    if not workload.adapts:
        return (Setting("use_peft", False, "all parameters are trained", ("method",)),)
    lora = lora_of(workload)
    rows = [
        Setting("use_peft", True, "adapters are trained", ("method",)),
        Setting("lora_r", lora.rank, "rank of the adapters", ("lora.rank",)),
        Setting("lora_alpha", 2 * lora.rank, "scale of the adapters; choose yours"),
        Setting("lora_dropout", lora.dropout, "dropout of the adapters", ("lora.dropout",)),
        Setting("lora_target_modules", target_names(lora), "layers with adapters", ("lora.targets",)),
    ]
    if lora.dora:
        rows.append(Setting("use_dora", True, "weight-decomposed adapters", ("lora.dora",)))
    weights = workload.weights or ""
    if weights.startswith("nf4"):
        rows.append(Setting("load_in_4bit", True, "frozen weights in NF4", ("method", "weights")))
        rows.append(Setting("use_bnb_nested_quant", weights.endswith("dq"), "scales quantized again", ("weights",)))
    elif weights == "int8":
        rows.append(Setting("load_in_8bit", True, "frozen weights in INT8", ("weights",)))
    return tuple(rows)


def _loss(workload: Training) -> tuple[Setting, ...]:
    if workload.profile == "liger":
        return (Setting("use_liger_kernel", True, "Liger's kernels and fused loss", ("profile", "loss")),)
    tokens = (workload.sequence_length or 1) * workload.micro_batch
    if workload.loss not in _LOSSES or (
        workload.loss == "chunked" and workload.loss_chunks != -(-tokens // _CHUNK_TOKENS)
    ):
        hint = f"Choose full-logits, or chunked with {-(-tokens // _CHUNK_TOKENS)} loss_chunks."
        raise SpecError("loss", f"TRL has no {workload.loss} loss in {workload.loss_chunks} chunks", hint)
    return (Setting("loss_type", _LOSSES[workload.loss], "loss", ("loss", "loss_chunks")),)


TRL: Final = Launcher("trl", _TITLE, "TRL 1.16.0", "training", ("hf", "liger", "deepspeed"), lambda plan: plan, _write)
