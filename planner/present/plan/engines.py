"""What is said of the engine that runs a model."""

from planner.memory.result import MemoryResult
from planner.present import format as fmt
from planner.workload.software.registry import DEFAULT, SOFTWARE, serving
from planner.workload.workload import Inference


def host_note(memory: MemoryResult) -> tuple[str, ...]:
    """Return a sentence on what stays in RAM or on disk, where something is kept there."""
    if memory.disk_bytes:
        return (
            f"Beside the cards: {fmt.size(memory.disk_bytes)} on NVMe. How much RAM its buffers take is not known.",
        )
    return (f"Beside the card: {fmt.size(memory.host_bytes)} of RAM.",) if memory.host_bytes else ()


def engine_phrase(workload: Inference) -> str:
    """Return `inference`, and in which engine unless that is Hugging Face transformers: `inference in vLLM`."""
    if workload.profile in (None, DEFAULT):
        return "inference"
    return f"inference in {SOFTWARE[workload.profile].title}"


def has_usual_cache(workload: Inference) -> bool:
    """Return whether the cache is in the 16 bits that the engine uses unless it is told otherwise."""
    return workload.kv_cache == serving(workload.profile).cache_names.get("bf16", "bf16")
