"""Reader of axolotl's YAML files.

**Source**: axolotl 0.19.0 `utils/schemas/{config,training,peft,model,fsdp}.py` for keys and defaults,
`utils/config/__init__.py` (`resolve_dtype`: parameters are loaded in 16 bits where it computes so) and
`loaders/model.py` (`_set_quantization_config`: NF4 with double quantization).
"""

import re
from typing import Final

from planner.workload.recipes.config_reader import AUTO, ConfigReader
from planner.workload.recipes.deepspeed import read_embedded_deepspeed
from planner.workload.recipes.fsdp import PREFIX, read_fsdp, read_fsdp_option
from planner.workload.recipes.keys import (
    AXOLOTL_NEUTRAL,
    AXOLOTL_OTHERS,
    FULL_SEQUENCES,
    WITHOUT_ADAPTER,
    read_attention,
    read_clipping,
    read_optimizer,
)

_ATTENTION_FLAGS: Final = {
    "flash_attention": "flash",
    "sdp_attention": "sdpa",
    "eager_attention": "eager",
}
_PACKING: Final = ("sample_packing", "pad_to_sequence_len", "batch_flattening")
_LIGER: Final = "liger.LigerPlugin"
_CUT: Final = "CutCrossEntropyPlugin"
_PLAIN_NAME: Final = re.compile(r"\^?((?:\w|\\?\.)+)\$?")


def read_axolotl(reader: ConfigReader) -> None:
    """Read an axolotl configuration."""
    reader.read_model("base_model")
    _read_method(reader)
    _read_precision(reader)
    reader.set_or_default("micro_batch_size", "micro_batch", reader.integer("micro_batch_size"), default=1)
    reader.set_or_default("sequence_len", "sequence_length", reader.integer("sequence_len"), default=512)
    steps = reader.integer("gradient_accumulation_steps")
    reader.set_or_default("gradient_accumulation_steps", "gradient_accumulation", steps, default=1)
    read_optimizer(reader, "optimizer", "adamw_torch_fused")
    read_clipping(reader, "max_grad_norm", default=1.0)
    _read_checkpointing(reader)
    _read_attention(reader)
    _read_loss(reader)
    _read_trainable(reader)
    _read_cards(reader)
    reader.ignore_all(_PACKING, FULL_SEQUENCES)
    reader.ignore_rest(AXOLOTL_NEUTRAL, AXOLOTL_OTHERS)


def _read_method(reader: ConfigReader) -> None:
    adapter = reader.string("adapter")
    if adapter not in (None, "lora", "qlora"):
        reader.fail("adapter", "is not estimated", "Only the adapters lora and qlora are supported.")
    in_4_bits, in_8_bits = reader.flag("load_in_4bit"), reader.flag("load_in_8bit")
    if adapter is None:
        reader.assume("adapter", "none", "method", "full")
        reader.ignore_all(
            ("lora_r", "lora_dropout", "lora_target_modules", "lora_target_linear", "peft_use_dora"), WITHOUT_ADAPTER
        )
        return
    quantised = adapter == "qlora" or bool(in_4_bits)
    reader.set("adapter", "method", "qlora" if quantised else "lora")
    if quantised:
        _read_nf4(reader)
    elif in_8_bits:
        reader.set("load_in_8bit", "weights", "int8")
    _read_lora(reader)


def _read_nf4(reader: ConfigReader) -> None:
    """Read NF4 settings: double quantization unless `bnb_config_kwargs` switches it off."""
    section = reader.section("bnb_config_kwargs")
    nested = None if section is None else section.flag("bnb_4bit_use_double_quant")
    if section is not None:
        section.set_or_default(
            "bnb_4bit_use_double_quant", "weights", None if nested is None else f"nf4{'-dq' * nested}"
        )
        section.ignore_rest(
            ("llm_int8_threshold", "bnb_4bit_quant_storage"), {"bnb_4bit_quant_type": "FP4; NF4 is assumed"}
        )
    if nested is None:
        reader.assume("bnb_4bit_use_double_quant", True, "weights", "nf4-dq")
    if reader.flag("load_in_4bit"):
        reader.record_read("load_in_4bit", "method")


def _read_lora(reader: ConfigReader) -> None:
    rank = reader.integer("lora_r", high=65_536)
    # PEFT's own rank where axolotl hands none on.
    reader.set_or_default("lora_r", "lora.rank", rank, default=8)
    reader.set_or_default("lora_dropout", "lora.dropout", reader.number("lora_dropout", high=0.999), default=0.0)
    names = reader.strings("lora_target_modules")
    if reader.flag("lora_target_linear"):
        reader.set("lora_target_linear", "lora.targets", "all-linear")
    elif names:
        reader.set("lora_target_modules", "lora.targets", names)
    reader.set_if_enabled("peft_use_dora", "lora.dora")
    if reader.flag("peft_autocast_adapter_dtype") is False:
        reader.set("peft_autocast_adapter_dtype", "lora.adapter_dtype", "bf16")


def _read_precision(reader: ConfigReader) -> None:
    """Read the compute precision and the weight format in an axolotl file.

    `bf16` is `auto` unless it is set, whatever other precision is: then axolotl computes by autocast to bf16, and so it
    does with `bfloat16`. It refuses `bf16: full`.

    **Source**: axolotl 0.19.0, run: `validate_config`, `resolve_dtype` and `_configure_precision_settings`.
    """
    tf32 = reader.raw("tf32") is True
    bf16, plain = reader.raw("bf16"), reader.field("method") == "qlora" or reader.field("weights") is not None
    if bf16 == "full":
        reader.ignore_unestimated("bf16", "full, which axolotl refuses; auto is assumed")
        bf16 = None
    if reader.flag("fp16") and bf16 in (None, False, AUTO):
        precision = ("fp16", "amp-fp16", "fp16")
    elif bf16 == AUTO or (bf16 and reader.flag("bf16")):
        precision = ("bf16", "amp-bf16", "bf16")
    elif bf16 is None:
        reader.assume("bf16", AUTO, "compute", "amp-bf16")
        reader.ignore_all(("bfloat16", "float16", "float32"), "bf16 is auto unless it is set")
        if not plain:
            reader.assume("bf16", AUTO, "weights", "bf16")
        return
    elif reader.flag("bfloat16"):
        precision = ("bfloat16", "amp-bf16", "bf16")
    elif reader.flag("float16"):
        precision = ("float16", "fp16", "fp16")
    else:
        precision = (
            "tf32" if tf32 else "float32" if reader.has("float32") else "bf16",
            "tf32" if tf32 else "fp32",
            "fp32",
        )
    key, compute, weights = precision
    reader.set(key, "compute", compute)
    if not plain:
        reader.set(key, "weights", weights)


def _read_checkpointing(reader: ConfigReader) -> None:
    value = reader.raw("gradient_checkpointing")
    if value in ("offload", "offload_disk"):
        reader.set("gradient_checkpointing", "activation_checkpointing", "full")
        reader.ignore_unestimated("gradient_checkpointing", "offloaded checkpoints; they count as on the GPU")
        return
    enabled = reader.flag("gradient_checkpointing")
    if enabled is None:
        reader.assume("gradient_checkpointing", False, "activation_checkpointing", "none")
    else:
        reader.set("gradient_checkpointing", "activation_checkpointing", "full" if enabled else "none")


def _read_attention(reader: ConfigReader) -> None:
    read_attention(reader)
    for key, attention in _ATTENTION_FLAGS.items():
        reader.set_if_enabled(key, "attention", attention)


def _read_loss(reader: ConfigReader) -> None:
    """Read how an axolotl file computes the loss: by Liger, by cut cross-entropy, or from full logits."""
    plugins = reader.strings("plugins") or ()
    liger, cut = (any(plugin.endswith(name) for plugin in plugins) for name in (_LIGER, _CUT))
    if liger:
        reader.set("plugins", "profile", "liger")
        fused = reader.flag("liger_fused_linear_cross_entropy")
        key = "liger_fused_linear_cross_entropy" if fused is not None else "plugins"
        reader.set(key, "loss", "fused-linear" if fused else "full-logits")
    if cut and reader.flag("cut_cross_entropy") is not False:
        reader.set("plugins", "loss", "fused-linear")
    for plugin in plugins:
        if not plugin.endswith((_LIGER, _CUT)):
            reader.ignore_unestimated("plugins", f"the plugin {plugin[:60]}")
    if reader.flag("chunked_cross_entropy"):
        reader.set("chunked_cross_entropy", "loss", "chunked")
        chunks = reader.integer("chunked_cross_entropy_num_chunks", high=100_000)
        reader.set_or_default("chunked_cross_entropy_num_chunks", "loss_chunks", chunks, default=8)


def _read_trainable(reader: ConfigReader) -> None:
    """Read patterns of trained parameters if they are plain names; regular expressions are not supported."""
    patterns = reader.strings("unfrozen_parameters")
    if not patterns:
        return
    matches = [_PLAIN_NAME.fullmatch(pattern) for pattern in patterns]
    names = tuple(match[1].replace("\\", "") for match in matches if match is not None)
    if len(names) == len(patterns) and reader.field("method") == "full":
        reader.set("unfrozen_parameters", "trainable", names)
    else:
        reader.ignore_unestimated(
            "unfrozen_parameters",
            "regular expressions, or patterns with an adapter; all parameters are counted as trained",
        )


def _read_cards(reader: ConfigReader) -> None:
    """Read DeepSpeed, FSDP and the number of cards in an axolotl file."""
    read_embedded_deepspeed(reader)
    read_fsdp_option(reader, reader.strings("fsdp") or ())
    section = reader.section("fsdp_config", PREFIX)
    if section is not None:
        read_fsdp(section)
    for key, name in (
        ("tensor_parallel_size", "tensor"),
        ("context_parallel_size", "context"),
        ("sequence_parallel_degree", "context"),
    ):
        size = reader.integer(key)
        if size is not None and size > 1:
            reader.set(key, f"parallel.{name}", size)
