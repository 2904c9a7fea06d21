"""Plans as configurations of `trl sft`, `trl dpo` and `trl grpo`.

**Source**: TRL 1.16.0 `trainer/{base,sft,dpo,grpo,model}_config.py`, `scripts/*.py`, `cli/accelerate_config.py`.
"""

from collections.abc import Iterator
from typing import Final, get_args

from planner.errors import SpecError
from planner.launch.settings import ConfigFile, Job, Launcher, LaunchFacts, Setting
from planner.launch.software.deepspeed import IMAGE
from planner.launch.software.trainer import (
    ATTENTIONS,
    UNEXPRESSED,
    AdapterKeys,
    lora_of,
    peft_settings,
    refuse_unwritten,
    sharing_settings,
    step_settings,
    target_names,
)
from planner.workload.alignment import AlignmentMethod
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.training import Training

_TITLE: Final = "TRL"
_COMMANDS: Final = {
    "none": ("sft", "trl-lib/Capybara"),
    "dpo": ("dpo", "trl-lib/ultrafeedback_binarized"),
    "grpo": ("grpo", "trl-lib/DeepMath-103K"),
}
_UNEXPRESSED: Final = {
    "sequence_length": "prompts are as long as those of the data",
    "alignment.completion_length": "the data decides which tokens of a sequence are compared",
    "alignment.engine_cards": "start `trl vllm-serve` on them",
    "alignment.engine_memory": "no engine is on the GPUs that train",
    "alignment.score_batch": "TRL scores as many sequences at once as it trains",
    "alignment.reward_parameters": "the reward model that is named decides",
}
_ADAPTER_KEYS: Final = AdapterKeys("use_dora", "use_bnb_nested_quant")
_LOADED: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_LOSSES: Final = {"full-logits": "nll", "chunked": "chunked_nll"}
_CHUNK_TOKENS: Final = 256


def _write(facts: LaunchFacts) -> Job:
    workload = facts.training
    refuse_unwritten(workload, _TITLE)
    command, data = _COMMANDS[_objective(workload)]
    config = f"{command}.yaml"
    settings = (
        Setting("model_name_or_path", facts.model, "model", ("model",)),
        Setting("dataset_name", data, "data; choose yours"),
        Setting("output_dir", "out", "folder of checkpoints"),
        *step_settings(workload),
        *_objective_settings(workload),
        Setting(
            "gradient_checkpointing",
            workload.activation_checkpointing == "full",
            "activation checkpointing, which is on by default",
            ("activation_checkpointing",),
        ),
        *_precision(workload),
        *_method(workload),
        Setting("attn_implementation", ATTENTIONS[workload.attention], "attention", ("attention",)),
        *(_loss(workload) if command == "sft" else _kernels(workload)),
        *sharing_settings(facts, workload, _TITLE),
    )
    return Job(
        start=("trl", command),
        requirement=_requirement(workload),
        arguments=(
            Setting("--config", config, "training of the plan"),
            Setting("--num_processes", facts.cards, "one process for each GPU", ("count", "parallel.data")),
        ),
        configs=(ConfigFile(config, "yaml", settings),),
        image=IMAGE,
        in_image=False,
        unexpressed=UNEXPRESSED | _UNEXPRESSED,
    )


def _objective(workload: Training) -> AlignmentMethod:
    """Return the objective of `workload`, if TRL has it with this reference and these logits."""
    alignment, objective = workload.alignment, workload.alignment.method
    if objective == "ppo":
        hint = "Plan GRPO, or use verl or OpenRLHF, whose settings docs/alignment.md lists."
        raise SpecError("alignment.method", "TRL 1.16 has no PPO any more", hint)
    if objective == "none":
        return objective
    if workload.loss != "chunked":
        reason = "TRL 1.16 computes log-probabilities in tiles, not from all logits at once"
        raise SpecError("loss", reason, "Plan with --loss chunked, its default.")
    if workload.adapts and alignment.reference == "kept":
        reason = "TRL turns the adapters off for the reference and keeps no copy"
        raise SpecError("alignment.reference", reason, "Plan with --reference adapter-off.")
    if objective == "dpo" and alignment.reference == "none":
        raise SpecError("alignment.reference", "TRL's DPO compares with a reference", "Choose kept or precomputed.")
    return objective


def _objective_settings(workload: Training) -> Iterator[Setting]:
    """Yield the settings of the objective: lengths, groups, reference, reward and engine."""
    alignment, length = workload.alignment, workload.sequence_length
    if alignment.method != "grpo":
        yield Setting("max_length", length, "sequence length", ("sequence_length",))
    if alignment.method == "dpo":
        before = alignment.reference == "precomputed"
        fields = ("alignment.method", "alignment.reference")
        yield Setting("precompute_ref_log_probs", before, "reference, kept unless computed first", fields)
    if alignment.method != "grpo":
        return
    completion, group = alignment.completion_length, alignment.group
    yield Setting("max_completion_length", completion, "completions", ("alignment.completion_length",))
    yield Setting("num_generations", group, "completions of each prompt", ("alignment.group", "alignment.method"))
    beta = 0.0 if alignment.reference == "none" else 0.04
    yield Setting("beta", beta, "penalty of the distance from the reference; 0 loads none", ("alignment.reference",))
    if alignment.reward == "model":
        yield Setting("reward_model_name_or_path", "out-reward", "reward model; choose yours", ("alignment.reward",))
    else:
        yield Setting("reward_funcs", ("accuracy_reward",), "reward functions; choose yours", ("alignment.reward",))
    yield Setting("use_vllm", alignment.engine != "none", "vLLM generates", ("alignment.engine",))
    if alignment.engine == "none":
        return
    shared = alignment.shares_card
    yield Setting("vllm_mode", "colocate" if shared else "server", "where vLLM runs", ("alignment.engine",))
    if shared:
        yield Setting(
            "vllm_gpu_memory_utilization",
            alignment.engine_memory,
            "vLLM's share of each GPU; the default was 0.9 before TRL 0.18",
            ("alignment.engine_memory",),
        )
        yield Setting("vllm_max_model_length", length, "prompt and completion", ("sequence_length",))
        asleep = alignment.engine == "same-cards-asleep"
        yield Setting("vllm_enable_sleep_mode", asleep, "vLLM frees its memory while training", ("alignment.engine",))


def _kernels(workload: Training) -> tuple[Setting, ...]:
    """Return the settings of fused kernels, and how log-probabilities are computed, which TRL decides."""
    fused = workload.profile == "liger"
    return (Setting("use_liger_kernel", fused, "Liger's kernels; log-probabilities in tiles", ("profile", "loss")),)


def _requirement(workload: Training) -> str:
    by_bitsandbytes = OPTIMIZERS[workload.optimizer].library == "bitsandbytes"
    quantizes = by_bitsandbytes or (workload.weights or "").startswith(("nf4", "int8"))
    needed = {
        "deepspeed": workload.profile == "deepspeed",
        "liger": workload.profile == "liger",
        "peft": workload.adapts,
        "quantization": quantizes,
        "vllm": workload.alignment.engine != "none",
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
    targets = Setting("lora_target_modules", target_names(lora_of(workload)), "layers with adapters")
    return (
        Setting("use_peft", True, "adapters are trained", ("method",)),
        *peft_settings(workload, _ADAPTER_KEYS, targets),
    )


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


TRL: Final = Launcher(
    "trl",
    _TITLE,
    "TRL 1.16.0",
    "training",
    ("hf", "liger", "deepspeed"),
    _write,
    objectives=get_args(AlignmentMethod),
)
