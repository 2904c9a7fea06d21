"""Measured loops of a forward pass and the derivative of the sum of all logits, without a loss or a step.

**Source**: huggingface/optimum `tests/benchmark/benchmark_bettertransformer_training_minimal.py`, from which the
scripts of the pull requests come: `outputs = model(**inputs)`, `outputs.logits.sum().backward()`.
"""

from planner.memory.estimate import fullest_timeline
from planner.memory.overhead import cublas_workspace_bytes, fixed_overhead, framework_overhead
from planner.memory.phases import Snapshot
from planner.models.architecture import Architecture
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

_FLOAT = 4


def peak_without_loss(architecture: Architecture, workload: Training, *, returns_cache: bool) -> int:
    """Return the peak memory of such a loop, including cuBLAS workspaces.

    What a pass returned is alive until the next one has returned: the logits, and where the version did, with
    `returns_cache`, its keys and values.
    """
    peak = 0
    timeline = fullest_timeline(architecture, with_defaults(workload, architecture, 1))
    for snapshot in timeline.snapshots:
        if snapshot.name == "loss":
            continue
        alive = snapshot.total + (_cache_bytes(architecture, workload, snapshot) if returns_cache else 0)
        if any(term.name == "activations" for term in snapshot.terms):
            alive += _wide_query_bytes(architecture, workload)
        logits = next((term for term in snapshot.written() if term.name == "logits"), None)
        if logits and logits.bytes and snapshot.name == "forward":
            outputs, width = (int(symbol.value) for symbol in logits.symbols if symbol.name in ("T", "V"))
            alive += 2 * outputs * width * _size(workload) - logits.bytes
        peak = max(peak, alive)
    overhead = framework_overhead(fixed_overhead(None), timeline.dynamic, 0, unsplit_bytes=timeline.unsplit_bytes)
    return peak + overhead.unsplit + 2 * cublas_workspace_bytes(None)


def _cache_bytes(architecture: Architecture, workload: Training, snapshot: Snapshot) -> int:
    """Return the size of the keys and values that networks returned during training before transformers had caches.

    They are views of the projection of queries, keys and values, and keep it: the previous pass's until the forward
    pass is through, then this one's until the end. It is among the activations, unless eager attention has copied it
    to multiply the heads of several sequences at once, or the backward pass has freed its layers. GPT-NeoX's keys are
    no view: its tables of positions are in fp32 and make them fp32, beside the copy that attention reads.

    **Source**: transformers 4.41 `GPT2Attention.forward` (`present = (key, value)`, `use_cache` by default), 4.43
    `GPTNeoXAttention._attn_projections_and_rope` (`torch.cat` of halves in fp32 and fp16), and `torch.matmul`, which
    folds batch and heads into one dimension.
    """
    layers = architecture.main.layer_count
    elements = workload.micro_batch * (workload.sequence_length or 0) * architecture.hidden
    of_a_layer = elements * 3 * _size(workload)
    own = of_a_layer * layers if workload.attention == "eager" and workload.micro_batch > 1 else 0
    if architecture.model_type == "gpt_neox":
        own = elements * _FLOAT * layers
        of_a_layer += elements * _FLOAT
    if snapshot.name == "forward":
        return of_a_layer * layers + own
    if "last layer" in snapshot.explanation or "head" in snapshot.explanation:
        return own
    kept = any(term.name == "activations" for term in snapshot.terms) and not own
    return of_a_layer * (layers - 1 if kept else layers) if snapshot.name == "backward" else 0


def _wide_query_bytes(architecture: Architecture, workload: Training) -> int:
    """Return what GPT-NeoX's eager attention saved beyond tensors of the model's format before version 4.48.

    Tables of positions in fp32 made its queries and keys fp32, which it multiplied as they were; its values, a view of
    the fused projection, were copied for several sequences.

    **Formula**: layers · b · s · h · (2 + 2 for queries and keys, and 2 for the copy of values if b > 1).

    **Source**: transformers 4.43 modeling_gpt_neox.py `_attn_projections_and_rope` and `_attn` (`torch.baddbmm` of
    queries and keys, `torch.matmul(attn_weights, value)`), and `torch.matmul`, which folds batch and heads.
    """
    if architecture.model_type != "gpt_neox" or workload.attention != "eager" or workload.compute == "fp32":
        return 0
    elements = workload.micro_batch * (workload.sequence_length or 0) * architecture.hidden
    return architecture.main.layer_count * elements * (3 if workload.micro_batch > 1 else 2) * _size(workload)


def _size(workload: Training) -> int:
    return 4 if workload.compute == "fp32" else 2
