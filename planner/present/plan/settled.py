"""What moved along with an answer, in a sentence."""

from typing import Final

from planner.present import format as fmt
from planner.present.plan.workload import compute_phrase
from planner.workload.workload import Workload

_TITLES: Final = {
    "activation_checkpointing": "checkpointing",
    "checkpoint_every": "layers between checkpoints",
    "compute": "precision",
    "gpu_layers": "layers on the card",
    "gpus": "cards of several kinds",
    "kv_cache": "KV cache",
    "lora.adapter_dtype": "adapters",
    "lora.dora": "DoRA",
    "lora.targets": "targets",
    "optimizer_step": "step",
    "parallel.context": "context parallel",
    "parallel.data": "replicas",
    "parallel.expert": "expert parallel",
    "parallel.interleave": "schedule",
    "parallel.pipeline": "pipeline stages",
    "parallel.pipeline_layers": "layers of the stages",
    "parallel.sequence": "sequence parallel",
    "parallel.tensor": "tensor parallel",
    "parallel.zero": "ZeRO stage",
    "profile": "software",
    "trainable": "what is trained",
    "weights": "parameters",
}
_OPEN: Final = "as usual"


def moved_sentence(moved: tuple[str, ...], workload: Workload) -> str:
    """Return `Also changed: precision to bf16 autocast, step as usual.`, empty where nothing moved."""
    if not moved:
        return ""
    return f"Also changed: {', '.join(f'{_title(name)} {_words(name, workload)}' for name in moved)}."


def _title(name: str) -> str:
    return _TITLES.get(name) or name.rpartition(".")[2].replace("_", " ")


def _words(name: str, workload: Workload) -> str:
    outer, _, inner = name.partition(".")
    held: object = getattr(workload, outer)
    value = getattr(held, inner, None) if inner else held
    if name == "compute":
        return f"to {compute_phrase(str(value))}"
    if value is None or value == ():
        return _OPEN
    if isinstance(value, bool):
        return f"to {fmt.yes_no(value)}"
    if isinstance(value, int):
        return f"to {fmt.integer(value)}"
    return f"to {' '.join(map(str, value)) if isinstance(value, tuple) else value}"
