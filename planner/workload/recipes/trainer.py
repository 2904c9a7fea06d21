"""The arguments of transformers' Trainer as JSON or YAML, and what TRL's command line has beside them.

**Source**: transformers 5.23 `TrainingArguments`; TRL 1.10.0.dev0 `trainer/{base_config,sft_config,model_config}.py`
and `sft_trainer.py` (logits of 256 tokens at once); PEFT 0.20.1.dev0
`TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING`.
"""

from typing import Final

from planner.workload.recipes.deepspeed import read_started_engine
from planner.workload.recipes.draft import Draft
from planner.workload.recipes.fsdp import PREFIX, read_fsdp, read_words
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
from planner.workload.software.registry import DEFAULT, trainer

_LORA_KEYS: Final = ("lora_r", "lora_dropout", "lora_target_modules", "use_dora")
_LOADED: Final = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
_PEFT_TARGETS: Final = ("q_proj", "v_proj")
"""PEFT's own choice for llama, mistral, gemma, qwen and most other decoders."""
_CHUNK_TOKENS: Final = 256
_TRL_LENGTH: Final = 1_024


def read_training_arguments(draft: Draft) -> None:
    """Take the arguments of a Trainer; what it trains is not in them."""
    read_precision(draft)
    read_steps(draft, checkpointing=False)
    draft.rest(TRAINER_NEUTRAL, TRAINER_OTHERS)


def read_trl(draft: Draft) -> None:
    """Take the arguments of TRL's command line: those of the Trainer, of supervised fine-tuning and of the model."""
    draft.names_model("model_name_or_path")
    _read_trl_method(draft)
    _read_trl_precision(draft)
    read_steps(draft, checkpointing=True)
    draft.takes("max_length", "sequence_length", draft.whole("max_length"), default=_TRL_LENGTH)
    read_attention(draft, "attn_implementation")
    _read_loss(draft)
    draft.leaves_all(("packing", "padding_free"), FULL_SEQUENCES)
    draft.rest(TRAINER_NEUTRAL | TRL_NEUTRAL, TRAINER_OTHERS | TRL_OTHERS)


def read_steps(draft: Draft, *, checkpointing: bool) -> None:
    """Take batch, optimizer, clipping, checkpointing and sharing; `checkpointing` is the program's default."""
    key = "per_device_train_batch_size"
    if not draft.has(key) and draft.has("per_gpu_train_batch_size"):
        key = "per_gpu_train_batch_size"
    draft.takes(key, "micro_batch", draft.whole(key), default=8)
    steps = draft.whole("gradient_accumulation_steps")
    draft.takes("gradient_accumulation_steps", "gradient_accumulation", steps, default=1)
    read_optimizer(draft, "optim", "adamw_torch_fused")
    read_clipping(draft, "max_grad_norm", default=1.0)
    _read_checkpointing(draft, checkpointing)
    draft.switches("use_liger_kernel", "profile", "liger")
    _read_sharing(draft)


def read_precision(draft: Draft) -> None:
    """Take how the Trainer computes: under autocast, or in the format of the parameters, which is fp32 unless told."""
    if draft.flag("bf16"):
        draft.sets("bf16", "compute", "amp-bf16")
    elif draft.flag("fp16"):
        draft.sets("fp16", "compute", "amp-fp16")
    elif draft.flag("tf32"):
        draft.sets("tf32", "compute", "tf32")
    elif draft.has("bf16"):
        draft.takes("bf16", "compute", None if draft.flag("bf16") is None else "fp32")
    else:
        draft.assumes("bf16", False, "compute", "fp32")
    draft.flag("tf32")


def _read_checkpointing(draft: Draft, default: bool) -> None:
    key = "activation_checkpointing" if draft.has("activation_checkpointing") else "gradient_checkpointing"
    kept = draft.flag(key)
    if kept is not None:
        draft.sets(key, "activation_checkpointing", "full" if kept else "none")
    else:
        draft.assumes(key, default, "activation_checkpointing", "full" if default else "none")


def _read_sharing(draft: Draft) -> None:
    read_started_engine(draft)
    if isinstance(draft.raw("fsdp"), bool):
        words: tuple[str, ...] = ("full_shard",) if draft.flag("fsdp") else ()
    else:
        words = draft.words("fsdp") or ()
    read_words(draft, words)
    section = draft.part("fsdp_config", PREFIX) if isinstance(draft.raw("fsdp_config"), dict) else None
    if section is not None and words:
        read_fsdp(section)
    elif draft.has("fsdp_config"):
        draft.leaves("fsdp_config", "not used: fsdp is off")


def _read_trl_method(draft: Draft) -> None:
    if not draft.flag("use_peft"):
        draft.takes("use_peft", "method", "full" if draft.has("use_peft") else None, default="full")
        draft.leaves_all(_LORA_KEYS, WITHOUT_ADAPTER)
        return
    in_4_bits = draft.flag("load_in_4bit")
    draft.sets("use_peft", "method", "qlora" if in_4_bits else "lora")
    if in_4_bits:
        _read_nf4(draft)
    elif draft.flag("load_in_8bit"):
        draft.sets("load_in_8bit", "weights", "int8")
    draft.takes("lora_r", "lora.rank", draft.whole("lora_r", high=65_536), default=16)
    draft.takes("lora_dropout", "lora.dropout", draft.number("lora_dropout", high=0.999), default=0.05)
    targets = draft.words("lora_target_modules")
    if targets is None:
        draft.assumes("lora_target_modules", "PEFT's for most decoders", "lora.targets", _PEFT_TARGETS)
    else:
        draft.sets("lora_target_modules", "lora.targets", targets)
    draft.switches("use_dora", "lora.dora")


def _read_nf4(draft: Draft) -> None:
    nested = bool(draft.flag("use_bnb_nested_quant"))
    key = "use_bnb_nested_quant" if draft.has("use_bnb_nested_quant") else "load_in_4bit"
    draft.sets(key, "weights", "nf4-dq" if nested else "nf4")
    if draft.word("bnb_4bit_quant_type") not in (None, "nf4"):
        draft.skips("bnb_4bit_quant_type", "FP4; NF4 is counted")


def _read_trl_precision(draft: Draft) -> None:
    """Take autocast, which TRL switches on by itself, and the format that parameters are loaded in: fp32."""
    if draft.flag("bf16") is None and not draft.flag("fp16"):
        draft.assumes("bf16", True, "compute", "amp-bf16")
    else:
        read_precision(draft)
    if draft.setting("weights") is not None:
        return
    key = "torch_dtype" if draft.has("torch_dtype") else "dtype"
    name = draft.raw(key)
    if isinstance(name, str) and name in _LOADED:
        draft.sets(key, "weights", _LOADED[name])
    elif name == "auto":
        draft.leaves(key, "auto: the format of the checkpoint; ours for this way to compute is counted")
    elif name is None:
        draft.assumes("dtype", "float32", "weights", "fp32")
    else:
        draft.fail(key, f"is none of auto, {', '.join(_LOADED)}")


def _read_loss(draft: Draft) -> None:
    """Take the loss: TRL makes the logits of 256 tokens at once, Liger none."""
    name = draft.word("loss_type")
    fused = trainer(str(draft.setting("profile") or DEFAULT)).loss == "fused-linear"
    if fused and name is not None:
        draft.leaves("loss_type", "Liger computes the loss")
    if fused:
        return
    if name not in (None, "chunked_nll", "nll"):
        draft.skips("loss_type", f"the loss {name}; that of full logits is counted")
        return
    if name == "nll":
        draft.sets("loss_type", "loss", "full-logits")
        return
    if name is None:
        draft.assumes("loss_type", "chunked_nll", "loss", "chunked")
    else:
        draft.sets("loss_type", "loss", "chunked")
    length, batch = draft.setting("sequence_length"), draft.setting("micro_batch")
    tokens = (length if isinstance(length, int) else 1) * (batch if isinstance(batch, int) else 1)
    chunks = min(100_000, -(-tokens // _CHUNK_TOKENS))
    draft.assumes("loss_type", f"{_CHUNK_TOKENS} tokens at once", "loss_chunks", chunks)
