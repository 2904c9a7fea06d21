"""Readers of the arguments of transformers' Trainer, as JSON or YAML, and of TRL's additional arguments.

**Source**: transformers 5.23 `TrainingArguments`; TRL 1.10.0.dev0 `trainer/{base_config,sft_config,model_config}.py`
and `sft_trainer.py` (logits of 256 tokens at once); PEFT 0.20.1.dev0
`TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING`.
"""

from typing import Final

from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.deepspeed import read_embedded_deepspeed
from planner.workload.recipes.fsdp import PREFIX, read_fsdp, read_fsdp_option
from planner.workload.recipes.keys import (
    FULL_SEQUENCES,
    TRAINER_NEUTRAL,
    TRAINER_OTHERS,
    TRL_NEUTRAL,
    TRL_OTHERS,
    WITHOUT_ADAPTER,
    read_attention,
    read_clipping,
    read_optimizer,
)
from planner.workload.software.registry import DEFAULT, training_support

_LORA_KEYS: Final = ("lora_r", "lora_dropout", "lora_target_modules", "use_dora")
_LOADED: Final = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
_PEFT_TARGETS: Final = ("q_proj", "v_proj")
"""LoRA target modules that PEFT chooses by default for llama, mistral, gemma, qwen and most other decoders."""
_CHUNK_TOKENS: Final = 256
_GRPO_KEYS: Final = ("num_generations", "max_completion_length", "use_vllm")
_DPO_KEYS: Final = ("precompute_ref_log_probs", "beta")
_TRL_LENGTH: Final = 1_024


def read_training_arguments(reader: ConfigReader) -> None:
    """Read the arguments of transformers' Trainer, which do not include the training method."""
    read_precision(reader)
    read_steps(reader, checkpointing=False)
    reader.ignore_rest(TRAINER_NEUTRAL, TRAINER_OTHERS)


def read_trl(reader: ConfigReader) -> None:
    """Read TRL's command-line arguments: the Trainer's, and arguments for supervised fine-tuning and the model."""
    reader.read_model("model_name_or_path")
    _read_trl_method(reader)
    _read_trl_precision(reader)
    read_steps(reader, checkpointing=True)
    read_attention(reader)
    if any(map(reader.has, _GRPO_KEYS)):
        _read_grpo(reader)
    else:
        reader.set_or_default("max_length", "sequence_length", reader.integer("max_length"), default=_TRL_LENGTH)
        if any(map(reader.has, _DPO_KEYS)):
            _read_dpo(reader)
        else:
            _read_loss(reader)
    reader.ignore_all(("packing", "padding_free"), FULL_SEQUENCES)
    reader.ignore_rest(TRAINER_NEUTRAL | TRL_NEUTRAL, TRAINER_OTHERS | TRL_OTHERS)


def read_steps(reader: ConfigReader, *, checkpointing: bool) -> None:
    """Read batch, optimizer, clipping, checkpointing and parallelism; `checkpointing` is the program's default."""
    key = "per_device_train_batch_size"
    if not reader.has(key) and reader.has("per_gpu_train_batch_size"):
        key = "per_gpu_train_batch_size"
    reader.set_or_default(key, "micro_batch", reader.integer(key), default=8)
    steps = reader.integer("gradient_accumulation_steps")
    reader.set_or_default("gradient_accumulation_steps", "gradient_accumulation", steps, default=1)
    read_optimizer(reader, "optim", "adamw_torch_fused")
    read_clipping(reader, "max_grad_norm", default=1.0)
    _read_checkpointing(reader, checkpointing)
    reader.set_if_enabled("use_liger_kernel", "profile", "liger")
    _read_parallelism(reader)


def read_precision(reader: ConfigReader) -> None:
    """Read the Trainer's precision: autocast, or the parameter format, by default fp32."""
    if reader.flag("bf16"):
        reader.set("bf16", "compute", "amp-bf16")
    elif reader.flag("fp16"):
        reader.set("fp16", "compute", "amp-fp16")
    elif reader.flag("tf32"):
        reader.set("tf32", "compute", "tf32")
    elif reader.has("bf16"):
        reader.set_or_default("bf16", "compute", None if reader.flag("bf16") is None else "fp32")
    else:
        reader.assume("bf16", False, "compute", "fp32")
    reader.flag("tf32")


def _read_checkpointing(reader: ConfigReader, default: bool) -> None:
    """Read activation checkpointing, or assume the program's `default`."""
    key = "activation_checkpointing" if reader.has("activation_checkpointing") else "gradient_checkpointing"
    enabled = reader.flag(key)
    if enabled is not None:
        reader.set(key, "activation_checkpointing", "full" if enabled else "none")
    else:
        reader.assume(key, default, "activation_checkpointing", "full" if default else "none")


def _read_parallelism(reader: ConfigReader) -> None:
    read_embedded_deepspeed(reader)
    if isinstance(reader.raw("fsdp"), bool):
        words: tuple[str, ...] = ("full_shard",) if reader.flag("fsdp") else ()
    else:
        words = reader.strings("fsdp") or ()
    read_fsdp_option(reader, words)
    section = reader.section("fsdp_config", PREFIX) if isinstance(reader.raw("fsdp_config"), dict) else None
    if section is not None and words:
        read_fsdp(section)
    elif reader.has("fsdp_config"):
        reader.ignore("fsdp_config", "not used: fsdp is off")


def _read_trl_method(reader: ConfigReader) -> None:
    if not reader.flag("use_peft"):
        reader.set_or_default("use_peft", "method", "full" if reader.has("use_peft") else None, default="full")
        reader.ignore_all(_LORA_KEYS, WITHOUT_ADAPTER)
        return
    in_4_bits = reader.flag("load_in_4bit")
    reader.set("use_peft", "method", "qlora" if in_4_bits else "lora")
    if in_4_bits:
        _read_nf4(reader)
    elif reader.flag("load_in_8bit"):
        reader.set("load_in_8bit", "weights", "int8")
    reader.set_or_default("lora_r", "lora.rank", reader.integer("lora_r", high=65_536), default=16)
    reader.set_or_default("lora_dropout", "lora.dropout", reader.number("lora_dropout", high=0.999), default=0.05)
    targets = reader.strings("lora_target_modules")
    if targets is None:
        reader.assume("lora_target_modules", "PEFT's default for most decoders", "lora.targets", _PEFT_TARGETS)
    else:
        reader.set("lora_target_modules", "lora.targets", targets)
    reader.set_if_enabled("use_dora", "lora.dora")


def _read_nf4(reader: ConfigReader) -> None:
    """Read whether NF4 weights are double-quantized, from TRL's arguments."""
    nested = bool(reader.flag("use_bnb_nested_quant"))
    key = "use_bnb_nested_quant" if reader.has("use_bnb_nested_quant") else "load_in_4bit"
    reader.set(key, "weights", "nf4-dq" if nested else "nf4")
    if reader.string("bnb_4bit_quant_type") not in (None, "nf4"):
        reader.ignore_unestimated("bnb_4bit_quant_type", "FP4; NF4 is assumed")


def _read_trl_precision(reader: ConfigReader) -> None:
    """Read TRL's precision: autocast, which is on by default, and the format of loaded parameters, by default fp32."""
    if reader.flag("bf16") is None and not reader.flag("fp16"):
        reader.assume("bf16", True, "compute", "amp-bf16")
    else:
        read_precision(reader)
    if reader.field("weights") is not None:
        return
    key = "torch_dtype" if reader.has("torch_dtype") else "dtype"
    name = reader.raw(key)
    if isinstance(name, str) and name in _LOADED:
        reader.set(key, "weights", _LOADED[name])
    elif name == "auto":
        reader.ignore(key, "auto: the format of the checkpoint; the default for this precision is assumed")
    elif name is None:
        reader.assume("dtype", "float32", "weights", "fp32")
    else:
        reader.fail(key, f"must be one of auto, {', '.join(_LOADED)}")


def _read_dpo(reader: ConfigReader) -> None:
    """Read the reference of `trl dpo`: kept or with adapters off, unless it is computed before training."""
    before = bool(reader.flag("precompute_ref_log_probs"))
    reader.set(next(filter(reader.has, _DPO_KEYS)), "alignment.method", "dpo")
    if before:
        reader.set("precompute_ref_log_probs", "alignment.reference", "precomputed")
    reader.ignore_all(("beta", "loss_type"), "weights of the loss")


def _read_grpo(reader: ConfigReader) -> None:
    """Read groups, lengths, reference, reward and engine of `trl grpo`.

    **Source**: TRL 1.16 trainer/grpo_config.py: 8 completions of 512 tokens, beta 0.0, vLLM colocated with a fraction
    of 0.3.
    """
    group = reader.integer("num_generations")
    reader.set_or_default("num_generations", "alignment.group", group, default=8)
    reader.set(next(filter(reader.has, _GRPO_KEYS)), "alignment.method", "grpo")
    completion = reader.integer("max_completion_length")
    reader.set_or_default("max_completion_length", "alignment.completion_length", completion, default=512)
    if length := reader.integer("vllm_max_model_length"):
        reader.set("vllm_max_model_length", "sequence_length", length)
    if reader.number("beta"):
        adapts = reader.field("method") in ("lora", "qlora")
        reader.set("beta", "alignment.reference", "adapter-off" if adapts else "kept")
    if reader.has("reward_model_name_or_path"):
        reader.set("reward_model_name_or_path", "alignment.reward", "model")
    if reader.flag("use_vllm"):
        shared = reader.string("vllm_mode") in (None, "colocate")
        asleep = shared and bool(reader.flag("vllm_enable_sleep_mode"))
        reader.set(
            "use_vllm", "alignment.engine", "same-cards-asleep" if asleep else "same-cards" if shared else "other-cards"
        )
        if shared:
            share = reader.number("vllm_gpu_memory_utilization")
            reader.set_or_default("vllm_gpu_memory_utilization", "alignment.engine_memory", share, default=0.3)
    reader.ignore_all(("reward_funcs", "vllm_mode", "vllm_enable_sleep_mode", "beta"), "no effect on memory")


def _read_loss(reader: ConfigReader) -> None:
    """Read TRL's loss: by default logits of 256 tokens at a time; with Liger, no stored logits."""
    name = reader.string("loss_type")
    fused = training_support(str(reader.field("profile") or DEFAULT)).loss == "fused-linear"
    if fused and name is not None:
        reader.ignore("loss_type", "the loss is Liger's")
    if fused:
        return
    if name not in (None, "chunked_nll", "nll"):
        reader.ignore_unestimated("loss_type", f"the loss {name}; full logits are assumed")
        return
    if name == "nll":
        reader.set("loss_type", "loss", "full-logits")
        return
    if name is None:
        reader.assume("loss_type", "chunked_nll", "loss", "chunked")
    else:
        reader.set("loss_type", "loss", "chunked")
    length, batch = reader.field("sequence_length"), reader.field("micro_batch")
    tokens = (length if isinstance(length, int) else 1) * (batch if isinstance(batch, int) else 1)
    chunks = min(100_000, -(-tokens // _CHUNK_TOKENS))
    reader.assume("loss_type", f"{_CHUNK_TOKENS} tokens at a time", "loss_chunks", chunks)
