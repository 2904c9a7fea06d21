"""Reader of LLaMA-Factory's YAML files: the Trainer's arguments, and further ones for model, data and method.

**Source**: LLaMA-Factory 0.9.6.dev0 `hparams/{model_args,finetuning_args,data_args}.py` for keys and defaults, and
`model/adapter.py` (trained parameters become fp32 unless `pure_bf16`).
"""

from typing import Final

from planner.workload.recipes.config_reader import ConfigReader
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


def read_llama_factory(reader: ConfigReader) -> None:
    """Read a LLaMA-Factory configuration."""
    reader.read_model("model_name_or_path")
    _read_method(reader)
    _read_precision(reader)
    _read_steps(reader)
    reader.set_or_default("cutoff_len", "sequence_length", reader.integer("cutoff_len"), default=2_048)
    _read_kernels(reader)
    stage = reader.string("stage")
    if stage not in (None, "sft", "pt"):
        reader.ignore_unestimated("stage", f"the additional memory of stage {stage}")
    reader.ignore_all(("packing", "neat_packing", "block_diag_attn"), FULL_SEQUENCES)
    reader.ignore_rest(LLAMA_FACTORY_NEUTRAL | TRAINER_NEUTRAL, TRAINER_OTHERS | LLAMA_FACTORY_OTHERS)


def _read_method(reader: ConfigReader) -> None:
    """Read the training method, full or LoRA, and the quantization of the base model."""
    kind = reader.string("finetuning_type")
    if kind not in (None, "lora", "full"):
        reader.fail("finetuning_type", "is not estimated", "Only lora and full are supported.")
    if kind == "full":
        reader.set("finetuning_type", "method", "full")
        reader.ignore_all(_LORA_KEYS, WITHOUT_ADAPTER)
        return
    bits = reader.integer("quantization_bit")
    method = "lora" if bits is None else _QUANTISED.get(bits)
    if method is None:
        reader.fail("quantization_bit", "is not estimated", "Only 4 and 8 bits of bitsandbytes are supported.")
    reader.set_or_default("finetuning_type", "method", None if kind is None else method, default=method)
    if bits is not None:
        _read_quantisation(reader, bits)
    _read_lora(reader)


def _read_quantisation(reader: ConfigReader, bits: int) -> None:
    """Read the format of a base model that bitsandbytes quantizes to `bits` bits."""
    library = reader.string("quantization_method")
    if library not in (None, "bnb", "bitsandbytes"):
        reader.fail("quantization_method", "is not estimated", "Only 4 and 8 bits of bitsandbytes are supported.")
    if bits == 8:
        reader.set("quantization_bit", "weights", "int8")
        return
    nested = reader.flag("double_quantization")
    reader.record_read("quantization_bit", "method")
    if nested is None:
        reader.assume("double_quantization", True, "weights", "nf4-dq")
    else:
        reader.set("double_quantization", "weights", "nf4-dq" if nested else "nf4")


def _read_lora(reader: ConfigReader) -> None:
    reader.set_or_default("lora_rank", "lora.rank", reader.integer("lora_rank", high=65_536), default=8)
    reader.set_or_default("lora_dropout", "lora.dropout", reader.number("lora_dropout", high=0.999), default=0.0)
    targets = reader.strings("lora_target")
    if targets is None:
        reader.assume("lora_target", "all", "lora.targets", "all-linear")
    else:
        reader.set("lora_target", "lora.targets", "all-linear" if "all" in targets else targets)
    reader.set_if_enabled("use_dora", "lora.dora")


def _read_precision(reader: ConfigReader) -> None:
    """Read the precision; trained parameters are in fp32 unless `pure_bf16` is set, frozen parameters in 16 bits."""
    if reader.flag("pure_bf16"):
        reader.set("pure_bf16", "compute", "bf16")
        if reader.field("method") == "lora":
            reader.set("pure_bf16", "lora.adapter_dtype", "bf16")
        reader.ignore_all(("bf16", "fp16"), "pure_bf16 applies instead of this key")
        return
    read_precision(reader)


def _read_steps(reader: ConfigReader) -> None:
    """Read the Trainer's keys on batch, optimizer, checkpointing and parallelism, with LLaMA-Factory's defaults."""
    off = reader.flag("disable_gradient_checkpointing")
    if off is not None:
        reader.record_read("disable_gradient_checkpointing", "activation_checkpointing")
    read_steps(reader, checkpointing=not off)
    reader.set_if_enabled("use_galore", "optimizer", "galore-adamw")
    reader.set_if_enabled("use_muon", "optimizer", "muon")


def _read_kernels(reader: ConfigReader) -> None:
    name = reader.raw("flash_attn")
    if isinstance(name, str) and name in _ATTENTION:
        reader.set("flash_attn", "attention", _ATTENTION[name])
    elif name is not None:
        reader.ignore_unestimated("flash_attn", "this attention implementation; SDPA is assumed")
    for key, profile in (("enable_liger_kernel", "liger"), ("use_unsloth", "unsloth")):
        reader.set_if_enabled(key, "profile", profile)
