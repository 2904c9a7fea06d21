"""PEFT's `adapter_config.json`: which adapters were made for which model, and nothing of how they were trained.

**Source**: PEFT 0.21 `tuners/lora/config.py` (`LoraConfig`) for keys and defaults.
"""

from typing import Final

from planner.workload.recipes.draft import Draft
from planner.workload.recipes.recipe import keys_of

_NEUTRAL: Final = keys_of(
    """
    lora_alpha use_rslora fan_in_fan_out inference_mode init_lora_weights task_type revision auto_mapping
    alpha_pattern eva_config corda_config loftq_config lora_bias ensure_weight_tying peft_version
    """
)
_OTHERS: Final = {
    "bias": "biases that are trained beside the adapters",
    "modules_to_save": "modules that are trained whole beside the adapters",
    "rank_pattern": "ranks of their own for some layers",
    "layers_to_transform": "adapters on some layers only",
    "layers_pattern": "adapters on some layers only",
    "exclude_modules": "layers that are left out",
    "layer_replication": "layers that stand several times",
    "trainable_token_indices": "single tokens that are trained",
    "target_parameters": "adapters on parameters that are no linear layer's",
    "use_qalora": "quantised adapters",
    "qalora_group_size": "quantised adapters",
    "megatron_config": "adapters on Megatron's parallel layers",
    "megatron_core": "adapters on Megatron's parallel layers",
    "runtime_config": "adapters that move to RAM",
    "arrow_config": "adapters that are routed to",
}
_ALL: Final = "all-linear"


def read_peft(draft: Draft) -> None:
    """Take all that the file says."""
    draft.names_model("base_model_name_or_path")
    if draft.word("peft_type") != "LORA":
        draft.fail("peft_type", "is not estimated", "Adapters of the type LORA are.")
    draft.sets("peft_type", "method", "lora")
    draft.takes("r", "lora.rank", draft.whole("r", high=65_536), default=8)
    draft.takes("lora_dropout", "lora.dropout", draft.number("lora_dropout", high=0.999), default=0.0)
    _read_targets(draft)
    draft.switches("use_dora", "lora.dora")
    # PEFT writes the switched-off `bias` as a word.
    if draft.word("bias") == "none":
        draft.leaves("bias", "switched off")
    draft.rest(_NEUTRAL, _OTHERS)


def _read_targets(draft: Draft) -> None:
    named = draft.raw("target_modules")
    if named is None:
        draft.assumes("target_modules", "those usual for the model", "lora.targets", _ALL)
    elif isinstance(named, str) and named != _ALL:
        draft.skips("target_modules", "a pattern of names; all linear layers are counted")
        draft.assumes("target_modules", _ALL, "lora.targets", _ALL)
    else:
        draft.sets("target_modules", "lora.targets", _ALL if named == _ALL else draft.words("target_modules"))
