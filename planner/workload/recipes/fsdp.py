"""Reader of the FSDP section of accelerate, transformers and axolotl, with or without the key prefix `fsdp_`.

**Source**: accelerate 1.15.0.dev0 `FullyShardedDataParallelPlugin`; transformers 5.23 `TrainingArguments.fsdp`;
axolotl 0.19.0 `FSDPConfig`.
"""

from collections.abc import Iterable
from typing import Final

from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.recipe import split_keys

PREFIX: Final = "fsdp_"
# A strategy by its name or its number: what is shared, and whether layers are freed after their forward pass.
_STRATEGIES: Final = {
    "full_shard": (3, True),
    "shard_grad_op": (3, False),
    "no_shard": (0, True),
    "hybrid_shard": (3, True),
    "hybrid_shard_zero2": (3, False),
}
_NUMBERS: Final = {str(number): name for number, name in enumerate(_STRATEGIES, start=1)}
_NEUTRAL: Final = split_keys(
    """
    auto_wrap_policy transformer_layer_cls_to_wrap transformer_cls_names_to_wrap min_num_params state_dict_type
    final_state_dict_type sync_module_states cpu_ram_efficient_loading use_orig_params version cpu_offload_pin_memory
    limit_all_gathers xla xla_fsdp_settings xla_fsdp_grad_ckpt ignored_modules
    """
)
_OTHERS: Final = {
    "backward_prefetch": "when FSDP prefetches the next layer; the default is assumed",
    "forward_prefetch": "when FSDP prefetches the next layer; the default is assumed",
    "mixed_precision_policy": "FSDP's own precision; the precision of the run is assumed",
    "enable_fsdp_float8_all_gather": "FP8 communication of parameters",
}
_HYBRID: Final = "replicas across groups of GPUs; one group is assumed"


def read_fsdp(section: ConfigReader) -> None:
    """Read the keys of an FSDP section."""
    strategy = section.raw("sharding_strategy")
    if strategy is not None:
        read_strategy(section, "sharding_strategy", str(strategy))
    elif section.field("parallel.zero") is None:
        section.assume("sharding_strategy", "FULL_SHARD", "parallel.zero", 3)
    _read_reshard(section)
    section.set_if_enabled("offload_params", "parallel.offload", "parameters")
    section.set_if_enabled("activation_checkpointing", "activation_checkpointing", "full")
    section.ignore_rest(_NEUTRAL, _OTHERS)


def read_fsdp_option(reader: ConfigReader, words: Iterable[str]) -> None:
    """Read the words in the Trainer's option `fsdp`: a sharding strategy and further flags."""
    for word in words:
        if word == "offload":
            reader.set("fsdp", "parallel.offload", "parameters")
        elif word != "auto_wrap":
            read_strategy(reader, "fsdp", word)


def read_strategy(section: ConfigReader, key: str, written: str) -> None:
    """Read the FSDP sharding strategy that `key` names."""
    name = written.lower()
    name = _NUMBERS.get(name, name)
    if name not in _STRATEGIES:
        section.fail(key, f"must be one of {', '.join(_STRATEGIES)}")
    zero, reshard = _STRATEGIES[name]
    section.set(key, "parallel.zero", zero)
    if not reshard:
        section.set(key, "parallel.reshard_after_forward", reshard)
    if "hybrid" in name:
        section.ignore_unestimated(key, _HYBRID)


def _read_reshard(section: ConfigReader) -> None:
    """Read whether FSDP frees gathered parameters after the forward pass, or a strategy under the same key."""
    value = section.raw("reshard_after_forward")
    if isinstance(value, str) and value.lower() in _STRATEGIES:
        read_strategy(section, "reshard_after_forward", value)
        return
    reshard = section.flag("reshard_after_forward")
    if reshard is not None:
        section.set("reshard_after_forward", "parallel.reshard_after_forward", reshard)
