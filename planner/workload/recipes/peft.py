"""Reader of PEFT's `adapter_config.json`, which describes adapters but not their training.

**Source**: PEFT 0.21 `tuners/lora/config.py` (`LoraConfig`) for keys and defaults.
"""

from typing import Final

from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.recipe import split_keys

_NEUTRAL: Final = split_keys(
    """
    lora_alpha use_rslora fan_in_fan_out inference_mode init_lora_weights task_type revision auto_mapping
    alpha_pattern eva_config corda_config loftq_config lora_bias ensure_weight_tying peft_version
    """
)
_OTHERS: Final = {
    "bias": "biases that are trained besides the adapters",
    "modules_to_save": "modules that are fully trained besides the adapters",
    "rank_pattern": "different ranks for some layers",
    "layers_to_transform": "adapters on some layers only",
    "layers_pattern": "adapters on some layers only",
    "exclude_modules": "excluded layers",
    "layer_replication": "replicated layers",
    "trainable_token_indices": "individually trained tokens",
    "target_parameters": "adapters on parameters outside linear layers",
    "use_qalora": "quantized adapters",
    "qalora_group_size": "quantized adapters",
    "megatron_config": "adapters on Megatron's parallel layers",
    "megatron_core": "adapters on Megatron's parallel layers",
    "runtime_config": "adapters offloaded to RAM",
    "arrow_config": "routing between adapters",
}
_ALL: Final = "all-linear"


def read_peft(reader: ConfigReader) -> None:
    """Read a PEFT adapter configuration."""
    reader.read_model("base_model_name_or_path")
    if reader.string("peft_type") != "LORA":
        reader.fail("peft_type", "is not estimated", "Only adapters of type LORA are supported.")
    reader.set("peft_type", "method", "lora")
    reader.set_or_default("r", "lora.rank", reader.integer("r", high=65_536), default=8)
    reader.set_or_default("lora_dropout", "lora.dropout", reader.number("lora_dropout", high=0.999), default=0.0)
    _read_targets(reader)
    reader.set_if_enabled("use_dora", "lora.dora")
    # PEFT writes the switched-off `bias` as a word.
    if reader.string("bias") == "none":
        reader.ignore("bias", "switched off")
    reader.ignore_rest(_NEUTRAL, _OTHERS)


def _read_targets(reader: ConfigReader) -> None:
    named = reader.raw("target_modules")
    if named is None:
        reader.assume("target_modules", "the defaults for the model", "lora.targets", _ALL)
    elif isinstance(named, str) and named != _ALL:
        reader.ignore_unestimated("target_modules", "a pattern of module names; all linear layers are assumed")
        reader.assume("target_modules", _ALL, "lora.targets", _ALL)
    else:
        reader.set("target_modules", "lora.targets", _ALL if named == _ALL else reader.strings("target_modules"))
