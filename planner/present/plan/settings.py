"""The fields of a plan in words, for sentences on what differs between two."""

from typing import Any, Final

from planner.hardware.catalog import HardwareCatalog
from planner.present import format as fmt
from planner.present.plan.parallel import OFFLOAD_TITLES
from planner.present.plan.workload import METHOD_TITLES, OPTIMIZER_TITLES, compute_phrase
from planner.workload.software.registry import SOFTWARE

SETTING_TITLES: Final = {
    "model": "Model",
    "gpu": "Card",
    "count": "Cards",
    "task": "Task",
    "method": "Method",
    "weights": "Weights",
    "compute": "Computed in",
    "lora.rank": "Rank",
    "lora.targets": "Adapted layers",
    "lora.adapter_dtype": "Adapters in",
    "lora.dropout": "Dropout of the adapters",
    "lora.dora": "DoRA",
    "trainable": "Trained parameters",
    "optimizer": "Optimizer",
    "optimizer_step": "Optimizer step",
    "gradient_clipping": "Gradient clipping",
    "micro_batch": "Sequences per step",
    "gradient_accumulation": "Times accumulated",
    "sequence_length": "Sequence length",
    "activation_checkpointing": "Checkpointing",
    "checkpoint_every": "Layers between checkpoints",
    "attention": "Attention",
    "loss": "Loss",
    "loss_chunks": "Chunks of the loss",
    "profile": "Software",
    "batch": "Sequences at once",
    "context_length": "Context length",
    "prompt_length": "Prompt length",
    "kv_cache": "KV cache",
    "prompt_logits": "Logits of the prompt",
    "gpu_layers": "Layers on the card",
    "parallel.data": "Replicas",
    "parallel.zero": "ZeRO stage",
    "parallel.tensor": "Tensor parallel",
    "parallel.sequence": "Sequence parallel",
    "parallel.pipeline": "Pipeline stages",
    "parallel.context": "Context parallel",
    "parallel.expert": "Expert parallel",
    "parallel.offload": "Offload",
    "parallel.pipeline_layers": "Layers of the stages",
    "other_processes_bytes": "Held by other processes",
    "corrections": "Corrections by logs",
}
_WORDS: Final[dict[str, dict[Any, str]]] = {
    "method": METHOD_TITLES,
    "optimizer": OPTIMIZER_TITLES,
    "parallel.offload": OFFLOAD_TITLES,
}
_OPEN: Final = "left open"


def setting_title(field: str) -> str:
    """Return what the field is called: `Sequences per step`, or for rare ones its name, `engine.n_ubatch`."""
    return SETTING_TITLES.get(field, field)


def setting_words(field: str, value: bool | int | float | str | None, hardware: HardwareCatalog) -> str:
    """Return the value of a field of the plan as it is read: `2,048`, `yes`, `AdamW, 8-bit`, `GeForce RTX 4090`."""
    if value is None or value == "":
        return "all" if field == "gpu_layers" else "none" if field in ("gpu", "lora.targets") else _OPEN
    if isinstance(value, bool):
        return fmt.yes_no(value)
    if field.endswith("_bytes"):
        return fmt.size(int(value))
    if isinstance(value, int | float):
        return fmt.plain(value) if isinstance(value, float) else fmt.integer(value)
    if field == "gpu":
        return _cards(value, hardware)
    if field == "compute":
        return compute_phrase(value)
    if field == "profile":
        return SOFTWARE[str(value)].title
    return _WORDS.get(field, {}).get(value, value)


def _cards(text: str, hardware: HardwareCatalog) -> str:
    """Return the names of `tesla-t4`, or of `1 × rtx-4090 + 2 × tesla-t4`."""
    kinds = (kind.rpartition(" × ") for kind in text.split(" + "))
    return " + ".join(f"{count}{times}{hardware.gpu(gpu_id).name}" for count, times, gpu_id in kinds)
