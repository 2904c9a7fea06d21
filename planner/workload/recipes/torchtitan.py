"""Reader of torchtitan's command lines: step, precision, loss and degrees of parallelism.

**Source**: torchtitan 0.3.0 `config/{configs,manager}.py` and `models/{llama3,qwen3,gpt_oss}/config_registry.py`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from planner.workload.choices import Checkpointing, Compute
from planner.workload.optimizers import OptimizerStep
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.recipe import split_keys
from planner.workload.recipes.servers import parse_options


class TitanConfig(NamedTuple):
    """A configuration of torchtitan for a model: where it is, and its own settings of a step."""

    module: str
    name: str
    local_batch_size: int
    seq_len: int
    checkpointing: Checkpointing
    tensor: int = 1


CONFIGS: Final = {
    "meta-llama/Llama-3.1-8B": TitanConfig("llama3", "llama3_8b", 1, 8192, "selective"),
    "meta-llama/Llama-3.1-70B": TitanConfig("llama3", "llama3_70b", 8, 8192, "full", tensor=8),
    "Qwen/Qwen3-0.6B": TitanConfig("qwen3", "qwen3_0_6b", 4, 4096, "selective"),
    "Qwen/Qwen3-1.7B": TitanConfig("qwen3", "qwen3_1_7b", 4, 4096, "selective"),
    "Qwen/Qwen3-14B": TitanConfig("qwen3", "qwen3_14b", 4, 4096, "full"),
    "Qwen/Qwen3-32B": TitanConfig("qwen3", "qwen3_32b", 2, 4096, "full"),
    "Qwen/Qwen3-30B-A3B": TitanConfig("qwen3", "qwen3_30b_a3b", 2, 4096, "full"),
    "openai/gpt-oss-20b": TitanConfig("gpt_oss", "gpt_oss_20b", 1, 8192, "full"),
    "openai/gpt-oss-120b": TitanConfig("gpt_oss", "gpt_oss_120b", 1, 8192, "full"),
}
"""Configurations that train in 16 or 32 bits with a loss in chunks, by model; others are for tests or in fewer bits."""
COMPUTE: Final[dict[tuple[Compute, str | None], tuple[str, str]]] = {
    ("amp-bf16", "fp32"): ("float32", "bfloat16"),
    ("bf16", "bf16"): ("bfloat16", "bfloat16"),
    ("fp32", "fp32"): ("float32", "float32"),
}
"""Formats of parameters and of computing as torchtitan names them, by ours."""
IMPLEMENTATIONS: Final[dict[OptimizerStep, str]] = {"fused": "fused", "foreach": "foreach", "loop": "for-loop"}
"""Names of the optimizer's steps."""
CHUNKS: Final = 8
"""Chunks of the loss, unless a number is given."""
POLICY: Final = "activation_checkpoint"
POLICIES: Final[dict[Checkpointing, str]] = {name: f"{POLICY}:{name}" for name in ("none", "selective", "full")}
"""Last words of a command, which choose the activation checkpointing."""
_UNKNOWN: Final = TitanConfig("", "", 8, 2048, "selective")
_NO: Final = "no_"
_DEGREES: Final = {
    "data_parallel_replicate_degree": "data",
    "tensor_parallel_degree": "tensor",
    "pipeline_parallel_degree": "pipeline",
    "context_parallel_degree": "context",
    "expert_parallel_degree": "expert",
}
_NEUTRAL: Final = split_keys(
    """
    module config hf_assets_path dump_folder nproc_per_node nnodes standalone rdzv_backend rdzv_endpoint
    training.steps training.gc_freq training.mixed_precision_reduce checkpoint.enable checkpoint.initial_load_in_hf
    checkpoint.interval checkpoint.folder dataloader.dataset metrics.log_freq debug.seed
    parallelism.pipeline_parallel_first_stage_less_layers parallelism.pipeline_parallel_last_stage_less_layers
    """
)
_OTHERS: Final = {
    "compile.enable": "compilation of the model",
    "parallelism.module_fqns_per_model_part": "the layers of each pipeline stage",
    "parallelism.enable_fsdp_symm_mem": "symmetric memory",
}


def torchtitan_options(words: tuple[str, ...]) -> dict[str, object]:
    """Return the options among the words after `torchtitan.train` by their names, with underscores for hyphens.

    A switch that begins with `no` has the value False under its own name. The policy of activation checkpointing, a
    word of its own at the end, has a key of its own, and the model stands in place of its configuration.
    """
    policies = [word.replace("-", "_").partition(":")[2] for word in words if _is_policy(word)]
    options: dict[str, object] = {}
    for key, value in parse_options(tuple(word for word in words if not _is_policy(word))).items():
        section, dot, name = key.removeprefix("--").replace("-", "_").rpartition(".")
        is_off = name.startswith(_NO) and value is True
        options[f"{section}{dot}{name.removeprefix(_NO) if is_off else name}"] = not is_off and value
    if policies:
        options[POLICY] = policies[-1]
    models = {config.name: model for model, config in CONFIGS.items()}
    return {key: models.get(str(value), value) if key == "config" else value for key, value in options.items()}


def _is_policy(word: str) -> bool:
    return word.replace("-", "_").startswith(f"{POLICY}:")


def read_torchtitan(reader: ConfigReader) -> None:
    """Read the options of torchtitan's training; what they leave out is as in the model's configuration."""
    reader.read_model("config")
    own = CONFIGS.get(reader.string("config") or "", _UNKNOWN)
    reader.assume("module", "torchtitan's own models", "profile", "hf")
    reader.assume("optimizer.param_groups", "AdamW", "optimizer", "adamw")
    _read_word(reader, "optimizer.implementation", "optimizer_step", IMPLEMENTATIONS, "fused")
    _read_sharing(reader, own)
    _read_step(reader, own)
    _read_precision(reader)
    _read_word(reader, POLICY, "activation_checkpointing", {name: name for name in POLICIES}, own.checkpointing)
    if reader.flag("training.disable_cuda_graphs"):
        reader.ignore("training.disable_cuda_graphs", "as in the estimate")
    else:
        reader.ignore_unestimated("training.disable_cuda_graphs", "CUDA graphs, which are on by default")
    reader.ignore_rest(_NEUTRAL, _OTHERS)


def _read_word(reader: ConfigReader, key: str, field: str, ours: Mapping[Any, str], default: str) -> None:
    """Set `field` to our name for the word at `key`, or to `default` without one."""
    names = {theirs: name for name, theirs in ours.items()}
    word = reader.string(key)
    if word is not None and word not in names:
        reader.ignore_unestimated(key, f"{word[:40]}; the default is assumed")
        word = None
    reader.set_or_default(key, field, names.get(word or ""), default)


def _read_sharing(reader: ConfigReader, own: TitanConfig) -> None:
    """Read the degrees of parallelism, whose product is the number of GPUs if all of them are known."""
    cards = 1
    for name, field in _DEGREES.items():
        key, default = f"parallelism.{name}", own.tensor if field == "tensor" else 1
        degree = reader.integer(key)
        if degree is not None or default > 1:
            reader.set_or_default(key, f"parallel.{field}", degree, default)
        cards *= 1 if field == "expert" else degree or default
    key = "parallelism.data_parallel_shard_degree"
    shards, copies = reader.integer(key, low=-1), reader.integer("parallelism.data_parallel_replicate_degree")
    if shards == 1:
        reader.ignore(key, "replicas hold the whole model")
        reader.set_known_count(cards)
    elif (copies or 1) > 1:
        reader.ignore_unestimated(key, "training states sharded within groups of GPUs")
    else:
        reader.set_or_default(key, "parallel.zero", None if shards is None else 3, 3)
        if (shards or -1) > 1:
            reader.set(key, "parallel.data", shards)
            reader.set_known_count(cards * (shards or 1))
    resharded = reader.string("parallelism.fsdp_reshard_after_forward")
    if resharded is not None:
        reader.set("parallelism.fsdp_reshard_after_forward", "parallel.reshard_after_forward", resharded != "never")
    key = "parallelism.enable_sequence_parallel"
    if reader.field("parallel.tensor") not in (None, 1):
        reader.set_or_default(key, "parallel.sequence", reader.flag(key), True)
    reader.set_if_enabled("training.enable_cpu_offload", "parallel.offload", "parameters")
    key = "parallelism.pipeline_parallel_schedule"
    schedule = reader.string(key)
    if schedule == "1F1B":
        reader.ignore(key, "as in the estimate")
    elif schedule is not None:
        reader.ignore_unestimated(key, f"the schedule {schedule[:40]}; 1F1B is assumed")


def _read_step(reader: ConfigReader, own: TitanConfig) -> None:
    """Read the batch and the loss; without a pipeline, the local batch is one forward pass."""
    local, part = "training.local_batch_size", "parallelism.pipeline_parallel_microbatch_size"
    given, whole = reader.integer(local), reader.integer("training.global_batch_size")
    sequences, replicas = given or own.local_batch_size, reader.field("parallel.data")
    steps = 1
    if reader.field("parallel.pipeline") in (None, 1):
        reader.set_or_default(local, "micro_batch", given, sequences)
    else:
        micro = reader.integer(part)
        reader.set_or_default(part, "micro_batch", micro, 1)
        steps = max(sequences // (micro or 1), 1)
        reader.set_or_default(local, "gradient_accumulation", None if given is None else steps, steps)
    if whole is not None and isinstance(replicas, int):
        rounds = max(whole // (sequences * replicas), 1)
        reader.set("training.global_batch_size", "gradient_accumulation", rounds * steps)
    reader.set_or_default("training.seq_len", "sequence_length", reader.integer("training.seq_len"), own.seq_len)
    clipping = reader.number("training.max_norm")
    reader.set_or_default("training.max_norm", "gradient_clipping", None if clipping is None else True, True)
    reader.assume("loss", "in chunks", "loss", "chunked")
    reader.set_or_default("loss.num_chunks", "loss_chunks", reader.integer("loss.num_chunks"), CHUNKS)


def _read_precision(reader: ConfigReader) -> None:
    held_key, key = "training.dtype", "training.mixed_precision_param"
    held, computed = reader.string(held_key) or "float32", reader.string(key) or "bfloat16"
    ours = {theirs: names for names, theirs in COMPUTE.items()}.get((held, computed))
    if ours is None:
        reader.fail(held_key if reader.has(held_key) else key, "goes with no computing that is estimated")
    for name, theirs, field, value in ((held_key, held, "weights", ours[1]), (key, computed, "compute", ours[0])):
        if reader.has(name):
            reader.set(name, field, value)
        else:
            reader.assume(name, theirs, field, value)
