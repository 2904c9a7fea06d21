"""axolotl's YAML.

**Source**: axolotl 0.18.0 `utils/schemas/{config,training,peft,model,fsdp}.py` for keys and defaults,
`utils/config/__init__.py` (`resolve_dtype`: parameters are loaded in 16 bits where it computes so) and
`loaders/model.py` (`_set_quantization_config`: NF4 with double quantisation).
"""

import re
from typing import Final

from planner.workload.recipes.deepspeed import read_started_engine
from planner.workload.recipes.draft import AUTO, Draft
from planner.workload.recipes.fsdp import PREFIX, read_fsdp, read_words
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


def read_axolotl(draft: Draft) -> None:
    """Take all that the file says."""
    draft.names_model("base_model")
    _read_method(draft)
    _read_precision(draft)
    draft.takes("micro_batch_size", "micro_batch", draft.whole("micro_batch_size"), default=1)
    draft.takes("sequence_len", "sequence_length", draft.whole("sequence_len"), default=512)
    steps = draft.whole("gradient_accumulation_steps")
    draft.takes("gradient_accumulation_steps", "gradient_accumulation", steps, default=1)
    read_optimizer(draft, "optimizer", "adamw_torch_fused")
    read_clipping(draft, "max_grad_norm", default=1.0)
    _read_checkpointing(draft)
    _read_attention(draft)
    _read_loss(draft)
    _read_trainable(draft)
    _read_cards(draft)
    draft.leaves_all(_PACKING, FULL_SEQUENCES)
    draft.rest(AXOLOTL_NEUTRAL, AXOLOTL_OTHERS)


def _read_method(draft: Draft) -> None:
    adapter = draft.word("adapter")
    if adapter not in (None, "lora", "qlora"):
        draft.fail("adapter", "is not estimated", "Adapters of the kinds lora and qlora are.")
    in_4_bits, in_8_bits = draft.flag("load_in_4bit"), draft.flag("load_in_8bit")
    if adapter is None:
        draft.assumes("adapter", "none", "method", "full")
        draft.leaves_all(
            ("lora_r", "lora_dropout", "lora_target_modules", "lora_target_linear", "peft_use_dora"), WITHOUT_ADAPTER
        )
        return
    quantised = adapter == "qlora" or bool(in_4_bits)
    draft.sets("adapter", "method", "qlora" if quantised else "lora")
    if quantised:
        _read_nf4(draft)
    elif in_8_bits:
        draft.sets("load_in_8bit", "weights", "int8")
    _read_lora(draft)


def _read_nf4(draft: Draft) -> None:
    """Take NF4 with double quantisation, unless `bnb_config_kwargs` says otherwise."""
    section = draft.part("bnb_config_kwargs")
    nested = None if section is None else section.flag("bnb_4bit_use_double_quant")
    if section is not None:
        section.takes("bnb_4bit_use_double_quant", "weights", None if nested is None else f"nf4{'-dq' * nested}")
        section.rest(("llm_int8_threshold", "bnb_4bit_quant_storage"), {"bnb_4bit_quant_type": "FP4; NF4 is counted"})
    if nested is None:
        draft.assumes("bnb_4bit_use_double_quant", True, "weights", "nf4-dq")
    if draft.flag("load_in_4bit"):
        draft.notes("load_in_4bit", "method")


def _read_lora(draft: Draft) -> None:
    rank = draft.whole("lora_r", high=65_536)
    # PEFT's own rank where axolotl hands none on.
    draft.takes("lora_r", "lora.rank", rank, default=8)
    draft.takes("lora_dropout", "lora.dropout", draft.number("lora_dropout", high=0.999), default=0.0)
    names = draft.words("lora_target_modules")
    if draft.flag("lora_target_linear"):
        draft.sets("lora_target_linear", "lora.targets", "all-linear")
    elif names:
        draft.sets("lora_target_modules", "lora.targets", names)
    draft.switches("peft_use_dora", "lora.dora")
    if draft.flag("peft_autocast_adapter_dtype") is False:
        draft.sets("peft_autocast_adapter_dtype", "lora.adapter_dtype", "bf16")


def _read_precision(draft: Draft) -> None:
    draft.raw("tf32")
    bf16, plain = draft.raw("bf16"), draft.setting("method") == "qlora" or draft.setting("weights") is not None
    if draft.flag("fp16") and bf16 in (None, False, AUTO):
        found = ("fp16", "amp-fp16", "fp16")
    elif draft.flag("bfloat16"):
        found = ("bfloat16", "bf16", "bf16")
    elif draft.flag("float16"):
        found = ("float16", "fp16", "fp16")
    elif bf16 == "full":
        found = ("bf16", "bf16", "bf16")
    elif bf16 == AUTO or draft.flag("bf16"):
        found = ("bf16", "amp-bf16", "bf16")
    elif bf16 is None and not draft.flag("float32"):
        draft.assumes("bf16", AUTO, "compute", "amp-bf16")
        if not plain:
            draft.assumes("bf16", AUTO, "weights", "bf16")
        return
    else:
        tf32 = draft.raw("tf32") is True
        found = ("tf32" if tf32 else "float32" if draft.has("float32") else "bf16", "tf32" if tf32 else "fp32", "fp32")
    key, compute, weights = found
    draft.sets(key, "compute", compute)
    if not plain:
        draft.sets(key, "weights", weights)


def _read_checkpointing(draft: Draft) -> None:
    value = draft.raw("gradient_checkpointing")
    if value in ("offload", "offload_disk"):
        draft.sets("gradient_checkpointing", "activation_checkpointing", "full")
        draft.skips("gradient_checkpointing", "kept inputs that lie outside the card; they are counted on it")
        return
    kept = draft.flag("gradient_checkpointing")
    if kept is None:
        draft.assumes("gradient_checkpointing", False, "activation_checkpointing", "none")
    else:
        draft.sets("gradient_checkpointing", "activation_checkpointing", "full" if kept else "none")


def _read_attention(draft: Draft) -> None:
    read_attention(draft, "attn_implementation")
    for key, attention in _ATTENTION_FLAGS.items():
        draft.switches(key, "attention", attention)


def _read_loss(draft: Draft) -> None:
    plugins = draft.words("plugins") or ()
    liger, cut = (any(plugin.endswith(name) for plugin in plugins) for name in (_LIGER, _CUT))
    if liger:
        draft.sets("plugins", "profile", "liger")
        fused = draft.flag("liger_fused_linear_cross_entropy")
        key = "liger_fused_linear_cross_entropy" if fused is not None else "plugins"
        draft.sets(key, "loss", "fused-linear" if fused else "full-logits")
    if cut and draft.flag("cut_cross_entropy") is not False:
        draft.sets("plugins", "loss", "fused-linear")
    for plugin in plugins:
        if not plugin.endswith((_LIGER, _CUT)):
            draft.skips("plugins", f"the plugin {plugin[:60]}")
    if draft.flag("chunked_cross_entropy"):
        draft.sets("chunked_cross_entropy", "loss", "chunked")
        chunks = draft.whole("chunked_cross_entropy_num_chunks", high=100_000)
        draft.takes("chunked_cross_entropy_num_chunks", "loss_chunks", chunks, default=8)


def _read_trainable(draft: Draft) -> None:
    """Take patterns that are plain names: ours are no regular expressions."""
    patterns = draft.words("unfrozen_parameters")
    if not patterns:
        return
    found = [_PLAIN_NAME.fullmatch(pattern) for pattern in patterns]
    names = tuple(match[1].replace("\\", "") for match in found if match is not None)
    if len(names) == len(patterns) and draft.setting("method") == "full":
        draft.sets("unfrozen_parameters", "trainable", names)
    else:
        draft.skips("unfrozen_parameters", "regular expressions, or beside an adapter; all is counted as trained")


def _read_cards(draft: Draft) -> None:
    read_started_engine(draft)
    read_words(draft, draft.words("fsdp") or ())
    section = draft.part("fsdp_config", PREFIX)
    if section is not None:
        read_fsdp(section)
    for key, name in (
        ("tensor_parallel_size", "tensor"),
        ("context_parallel_size", "context"),
        ("sequence_parallel_degree", "context"),
    ):
        size = draft.whole(key)
        if size is not None and size > 1:
            draft.sets(key, f"parallel.{name}", size)
