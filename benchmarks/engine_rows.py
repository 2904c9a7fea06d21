"""Published measurements of vLLM and llama.cpp, as runs of the estimator.

Figures that the logs print separately (weights, cache, buffers, profiled peak) are compared with the same part of the
estimate; totals are compared with the sum of the parts.
"""

import re
from typing import Final, NamedTuple

from planner.memory.estimate import fullest_timeline
from planner.memory.phases import Snapshot
from planner.memory.software.vllm.setup import CardClass, CardSetup
from planner.models.architecture import Architecture
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

_COPIES: Final = 4
_FLOAT: Final = 4
ENGINES: Final = ("vllm", "llmd", "llcpp", "ikllama", "llamafile")
_NOT_OURS: Final = {
    "vllm-014": "the vision tower's profile of 128 images (V0 engine)",
    "llmd-016": "a vision tower is profiled, too, whose activations are not estimated",
    "ikllama-079": "imatrix, which keeps more outputs than a server",
    "ikllama-083": "a file whose mixture of types beside IQ4_XS is not printed",
    "ikllama-082": "a build from before fused_moe, whose twin (084) is covered",
}


_SMALL: Final = CardSetup(CardClass.OTHER)


class EngineRun(NamedTuple):
    """A run of vLLM or llama.cpp, the class of its card, and the measured terms."""

    workload: Inference
    of_card: CardSetup
    terms: tuple[str, ...]


def not_covered(row_id: str, technique: str) -> str | None:
    """Return the reason why a row of an engine is not covered, or None."""
    if row_id in _NOT_OURS:
        return _NOT_OURS[row_id]
    if re.search(r"mla_attn=[1-9]|tensor overrides=yes", technique) and "compute buffer" in technique:
        return "ik_llama.cpp's own latent attention, or experts on the host"
    if row_id.startswith("vllm") and "profile run" in technique:
        return "a profile of vLLM of 2024 (V0)"
    return "tensor parallelism" if "TP=2" in technique or "TP=4" in technique else None


def activation_run(row_id: str, technique: str, length: str, other: str) -> EngineRun:
    """Return the run for a row with a compute buffer or a profiled peak."""
    terms = ("activations", "logits")
    if row_id.startswith("llmd"):
        workload = Inference(profile="vllm", engine={"version": "0.11"}, context_length=int(length))
        return EngineRun(workload, CardSetup(CardClass.LARGE), terms)
    return EngineRun(_llama_cpp(technique, length, other, logits=True), _SMALL, terms)


def total_run(technique: str, length: str, other: str, weights: str) -> EngineRun:
    """Return the llama.cpp run for a row with the sum of its buffers on the card."""
    workload = _llama_cpp(technique, length, other, logits="2023" not in technique)
    return EngineRun(workload.evolve(weights=weights), _SMALL, ("weights", "kv_cache", "activations"))


def _llama_cpp(technique: str, length: str, other: str, *, logits: bool) -> Inference:
    """Return one slot of llama.cpp; before llama-server limited them, there was room for the logits of all tokens.

    Until March 2024 `n_batch` was the physical batch, which has been `n_ubatch` since (ggml-org/llama.cpp#6017).
    """
    found = re.search(r"n_ubatch=(\d+)", other) or re.search(r"n_batch=(\d+)", other)
    micro_batch = int(found[1]) if found else 512
    settings = {"slots": 1, "n_ubatch": micro_batch} | ({"n_outputs_max": micro_batch} if logits else {})
    fused = "flash_attn=1" in technique
    return Inference(
        profile="llama.cpp",
        weights="F16",
        engine=settings,
        context_length=int(length),
        attention="sdpa" if fused else "eager",
    )


def measured_bytes(architecture: Architecture, run: EngineRun) -> int:
    """Return the largest sum of the run's terms over the snapshots of the run."""
    snapshots = fullest_timeline(architecture, with_defaults(run.workload, architecture, 1), run.of_card)
    return max(_sum(snapshot, run.terms) for snapshot in snapshots.snapshots)


def copied_bytes(architecture: Architecture, technique: str, run: EngineRun) -> int:
    """Return what llama.cpp's scheduler copies on each card to overlap several micro-batches over cards.

    **Formula**: 3 more masks (context · u · 4 bytes) and 4 inputs of the card's layers (u · h · 4 bytes).

    **Source**: ggml/src/ggml-backend.cpp `ggml_backend_sched_split_graph` (`GGML_SCHED_MAX_COPIES` 4: a graph's own
    input is its first copy, another card's output is copied as often as there are copies).
    """
    if "pipeline parallel copies" not in technique:
        return 0
    settings = run.workload.engine
    tokens, context = settings.n_ubatch, run.workload.context_length or 0
    return _FLOAT * tokens * ((_COPIES - 1) * context + _COPIES * architecture.hidden)


def _sum(snapshot: Snapshot, names: tuple[str, ...]) -> int:
    return sum(term.bytes for term in snapshot.terms if term.name in names)
