"""Published measurements of LoRA and QLoRA, as runs of the estimator, or the reason why a row is not covered.

What decides most rows is not the network but the trainer: whose modules they are, what its precision plugin converts,
and which library quantised. A row is covered where that is known from the source of the version that ran.
"""

import re
from typing import Final, NamedTuple

from counters import counted, counter_of
from memory_rows import Excluded, Predicted, Row

from planner.dtypes import ELEMENT_BYTES
from planner.errors import PlannerError
from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.overhead import cublas_workspace_bytes
from planner.memory.phases import Snapshot
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.workload.defaults import with_defaults
from planner.workload.training import Lora, Training

TUNED: Final = ("lora", "qlora")

_THREADS: Final = 2
_LITGPT_TARGETS: Final = {
    "q": "query",
    "k": "key",
    "v": "value",
    "o": "projection",
    "mlp": "mlp",
    "lm_head": "head",
}
_WEIGHTS: Final = {"bf16": "bf16", "fp32": "fp32", "nf4 (bnb)": "nf4", "nf4 double-quant (bnb)": "nf4-dq"}
_OTHER_RECIPES: Final = {
    "peft-mm": "PEFT's comparison of methods, whose batches differ in length, at most 768 tokens",
    "peft-img": "a diffusion pipeline",
    "peft-sd": "a diffusion pipeline",
    "amused": "a diffusion pipeline",
    "hidream": "a diffusion pipeline",
    "qwenvl": "remote code with its own vision tower",
    "qwen1": "remote code with its own layers, under the Trainer of 2023",
    "swift-ex": "lengths differ, and figures are rounded",
    "swift-sp": "lengths differ, and figures are rounded",
    "swift-tuner": "lengths differ from sequence to sequence",
    "unsloth": "lengths differ from sequence to sequence, and so does what the memory was read from",
    "axolotl": "cut cross entropy, packed samples, figures rounded",
    "fsdpq": "FSDP of 2023 around each block, with adapters wrapped apart from their network",
    "mbridge": "Megatron-Bridge with tensor parallelism; lengths or cards are not stated",
    "cet": "lengths are not stated",
    "peft-rm": "lengths are not stated",
    "peft-ds": "DeepSpeed ZeRO-3 over eight cards, read from a screenshot",
    "glm4": "remote code with its own vision tower",
}
_PROFILES: Final = {"swift": "hf", "torchtune": "torchtune"}
_SWIFT_TARGETS: Final = ("q_proj", "k_proj", "v_proj", "query_key_value", "c_attn", "W_pack")
"""The projections of queries, keys and values, which ms-swift's DEFAULT adapts under the name that the network has."""
_LATER: Final = "litgpt-hub"
"""Runs of 2024. Those of 2023 have their longest sample in the first step: nothing is left of a step before it.

**Source**: Lightning-AI/litgpt at 8641822, finetune/lora.py, `get_batch(…, longest_seq_ix if iter_num == 0 else None)`.
Later versions shuffle; in what the tables of config_hub measured, steps of full length followed one another.
"""
_LEFT: Final = "T × a"
"""The formula for memory left by a previous step: see `planner.memory.software.litgpt_training`."""


class _Run(NamedTuple):
    workload: Training
    is_first_step: bool


def predict_tuned(row: Row, catalog: Catalog) -> Predicted | Excluded:
    """Return the estimate for a row of LoRA or QLoRA, or the reason why there is none."""
    reason = _exclusion_reason(row)
    if reason:
        return Excluded(reason)
    try:
        architecture = catalog.models.model(row.model)
    except PlannerError:
        return Excluded(f"the model is not in the catalog: {row.model}")
    if row.family in _PROFILES:
        return _of_profile(row, architecture)
    run = _litgpt(row)
    filled = with_defaults(run.workload, architecture, 1)
    how = f"{filled.method}, {filled.weights}, {filled.micro_batch} × {filled.sequence_length}, LitGPT"
    return Predicted(_allocated_peak_bytes(architecture, filled, first=run.is_first_step), how)


def _exclusion_reason(row: Row) -> str | None:
    recipe = next((why for prefix, why in _OTHER_RECIPES.items() if row.id.startswith(prefix)), None)
    if recipe:
        return f"another recipe: {recipe}"
    if row.family in _PROFILES:
        return _profile_exclusion_reason(row)
    if not row.family.startswith("litgpt"):
        return "another recipe: neither its modules nor what it converts were read"
    if "LoRA r=" not in row.technique and "LoRA r=" not in row.technique.replace("QLoRA", "LoRA"):
        return "another method than LoRA: LLaMA-Adapter, or a rank that is not stated"
    return "LitGPT over several cards, by FSDP" if row.cards > 1 else None


def _profile_exclusion_reason(row: Row) -> str | None:
    """Return the reason why a row of ms-swift or torchtune is not covered, or None."""
    if row.cards > 1:
        return "adapters over several cards"
    if not row.length.isdigit():
        return "lengths are not stated"
    if "offloading" in row.technique:
        return "torchtune with activations that are offloaded"
    if row.scheme not in ELEMENT_BYTES:
        return f"weight format {row.precision!r}, with adapters"
    return "a network under torch.compile" if "compile=yes" in row.technique else None


def _of_profile(row: Row, architecture: Architecture) -> Predicted | Excluded:
    """Return the estimate for a row of ms-swift or torchtune, whose sequences are as long as they may be.

    **Source**: ms-swift Benchmark.md (samples of 3,234 tokens on average, cut at the row's length; transformers'
    Trainer with PEFT, in bf16), torchtune README (packed samples).
    """
    found = re.search(r"r=(\d+).*?targets=([\w,]+)", row.technique)
    if found is None:
        return Excluded("rank or layers with adapters are not stated")
    named = _SWIFT_TARGETS if row.family == "swift" else tuple(f"{name}_proj" for name in found[2].split(","))
    modules = {part for tensor, _ in architecture.main.tensors_with_counts() for part in tensor.name.split(".")}
    targets = tuple(name for name in named if name in modules)
    if not targets:
        return Excluded("rank or layers with adapters are not stated")
    workload = Training(
        method="lora",
        weights=row.scheme,
        compute="amp-bf16" if row.family == "swift" else "bf16",
        micro_batch=int(row.batch),
        sequence_length=int(row.length),
        activation_checkpointing="full" if "grad_ckpt=yes" in row.technique else "none",
        attention="flash" if "flash_attn=yes" in row.technique else "sdpa",
        profile=_PROFILES[row.family],
        lora=Lora(rank=int(found[1]), targets=targets),
    )
    counter = counter_of(row.metric)
    low, expected, high = counted(counter, estimate_memory(architecture, workload))
    how = f"LoRA, {workload.weights}, {workload.micro_batch} × {workload.sequence_length}, {row.family}, {counter}"
    return Predicted(expected, how, low, high)


def _litgpt(row: Row) -> _Run:
    """Return the run of a row of LitGPT; its dropout and its paged optimizer are those of its scripts.

    **Source**: litgpt/finetune/lora.py (`lora_dropout` 0.05; `bnb.optim.PagedAdamW` where the network is quantised) and
    the files of config_hub/finetune (0.05 or 0.1).
    """
    weights = _WEIGHTS[row.precision]
    quantised = weights.startswith("nf4")
    found = re.search(r"r=(\d+).*?targets=([\w,]+)", row.technique)
    rank, names = (found[1], found[2]) if found else ("8", "q,v")
    targets = tuple(_LITGPT_TARGETS[name] for name in names.split(","))
    workload = Training(
        method="qlora" if quantised else "lora",
        weights=weights,
        compute="amp-bf16" if "mixed" in row.compute else "bf16",
        optimizer="paged-adamw-32bit" if quantised else "adamw",
        micro_batch=int(row.batch),
        sequence_length=int(row.length),
        profile="litgpt",
        lora=Lora(rank=int(rank), targets=targets, dropout=0.05),
    )
    return _Run(workload, row.family != _LATER)


def _allocated_peak_bytes(architecture: Architecture, workload: Training, *, first: bool) -> int:
    """Return the largest sum of tensors of PyTorch's allocator over the snapshots of a step, workspaces included.

    A first step has no logits of a step before when it makes its own, so that its peak comes after the forward pass.
    """
    skipped = ("load", "forward") if first else ("load",)
    snapshots = [
        snapshot for snapshot in fullest_timeline(architecture, workload).snapshots if snapshot.name not in skipped
    ]
    return max(_allocator_bytes(snapshot, first=first) for snapshot in snapshots) + _THREADS * cublas_workspace_bytes(
        None
    )


def _allocator_bytes(snapshot: Snapshot, *, first: bool) -> int:
    """Return the bytes of `snapshot` without paged states (cudaMallocManaged) and memory left by the previous step."""
    terms = [term for term in snapshot.written() if not (first and term.formula == _LEFT)]
    return sum(term.low_bytes if term.name == "optimizer_states" else term.bytes for term in terms)
