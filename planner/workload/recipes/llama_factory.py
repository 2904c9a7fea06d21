"""LLaMA-Factory's YAML: the Trainer's arguments and its own about the model, the data and what is trained.

**Source**: LLaMA-Factory 0.9.6.dev0 `hparams/{model_args,finetuning_args,data_args}.py` for keys and defaults, and
`model/adapter.py` (trained parameters become fp32 unless `pure_bf16`).
"""

from typing import Final

from planner.workload.recipes.draft import Draft
from planner.workload.recipes.keys import (
    FULL_SEQUENCES,
    LLAMA_FACTORY_NEUTRAL,
    LLAMA_FACTORY_OTHERS,
    TRAINER_NEUTRAL,
    TRAINER_OTHERS,
    WITHOUT_ADAPTER,
)
from planner.workload.recipes.trainer import read_precision, read_steps

_ATTENTION: Final = {"auto": "sdpa", "disabled": "eager", "sdpa": "sdpa", "fa2": "flash", "fa3": "flash"}
_LORA_KEYS: Final = ("lora_rank", "lora_target", "lora_dropout", "use_dora")
_QUANTISED: Final = {4: "qlora", 8: "lora"}


def read_llama_factory(draft: Draft) -> None:
    """Take all that the file says."""
    draft.names_model("model_name_or_path")
    _read_method(draft)
    _read_precision(draft)
    _read_steps(draft)
    draft.takes("cutoff_len", "sequence_length", draft.whole("cutoff_len"), default=2_048)
    _read_kernels(draft)
    stage = draft.word("stage")
    if stage not in (None, "sft", "pt"):
        draft.skips("stage", f"what {stage} keeps beside the trained model")
    draft.leaves_all(("packing", "neat_packing", "block_diag_attn"), FULL_SEQUENCES)
    draft.rest(LLAMA_FACTORY_NEUTRAL | TRAINER_NEUTRAL, TRAINER_OTHERS | LLAMA_FACTORY_OTHERS)


def _read_method(draft: Draft) -> None:
    kind = draft.word("finetuning_type")
    if kind not in (None, "lora", "full"):
        draft.fail("finetuning_type", "is not estimated", "The kinds lora and full are.")
    if kind == "full":
        draft.sets("finetuning_type", "method", "full")
        draft.leaves_all(_LORA_KEYS, WITHOUT_ADAPTER)
        return
    bits = draft.whole("quantization_bit")
    method = "lora" if bits is None else _QUANTISED.get(bits)
    if method is None:
        draft.fail("quantization_bit", "is not estimated", "4 and 8 bits of bitsandbytes are.")
    draft.takes("finetuning_type", "method", None if kind is None else method, default=method)
    if bits is not None:
        _read_quantisation(draft, bits)
    _read_lora(draft)


def _read_quantisation(draft: Draft, bits: int) -> None:
    library = draft.word("quantization_method")
    if library not in (None, "bnb", "bitsandbytes"):
        draft.fail("quantization_method", "is not estimated", "4 and 8 bits of bitsandbytes are.")
    if bits == 8:
        draft.sets("quantization_bit", "weights", "int8")
        return
    nested = draft.flag("double_quantization")
    draft.notes("quantization_bit", "method")
    if nested is None:
        draft.assumes("double_quantization", True, "weights", "nf4-dq")
    else:
        draft.sets("double_quantization", "weights", "nf4-dq" if nested else "nf4")


def _read_lora(draft: Draft) -> None:
    draft.takes("lora_rank", "lora.rank", draft.whole("lora_rank", high=65_536), default=8)
    draft.takes("lora_dropout", "lora.dropout", draft.number("lora_dropout", high=0.999), default=0.0)
    targets = draft.words("lora_target")
    if targets is None:
        draft.assumes("lora_target", "all", "lora.targets", "all-linear")
    else:
        draft.sets("lora_target", "lora.targets", "all-linear" if "all" in targets else targets)
    draft.switches("use_dora", "lora.dora")


def _read_precision(draft: Draft) -> None:
    """Take how it computes; a frozen network is in 16 bits then, a trained one in fp32 unless `pure_bf16`."""
    if draft.flag("pure_bf16"):
        draft.sets("pure_bf16", "compute", "bf16")
        if draft.setting("method") == "lora":
            draft.sets("pure_bf16", "lora.adapter_dtype", "bf16")
        draft.leaves_all(("bf16", "fp16"), "pure_bf16 decides")
        return
    read_precision(draft)


def _read_steps(draft: Draft) -> None:
    off = draft.flag("disable_gradient_checkpointing")
    if off is not None:
        draft.notes("disable_gradient_checkpointing", "activation_checkpointing")
    read_steps(draft, checkpointing=not off)
    draft.switches("use_galore", "optimizer", "galore-adamw")
    draft.switches("use_muon", "optimizer", "muon")


def _read_kernels(draft: Draft) -> None:
    name = draft.raw("flash_attn")
    if isinstance(name, str) and name in _ATTENTION:
        draft.sets("flash_attn", "attention", _ATTENTION[name])
    elif name is not None:
        draft.skips("flash_attn", "this attention; SDPA is counted")
    for key, profile in (("enable_liger_kernel", "liger"), ("use_unsloth", "unsloth")):
        draft.switches(key, "profile", profile)
