"""Memory of the network that drafts tokens for an engine, and the layers that it adds to the KV cache."""

from dataclasses import replace

from planner.memory.result import Term
from planner.memory.terms import library_symbol
from planner.memory.weights import is_gguf, weights_term
from planner.models.architecture import Architecture
from planner.models.layers import LayerGroup
from planner.workload.workload import Inference

_SOURCE = (
    "the draft's own tensors: MTP layers in the model's format, EAGLE heads and smaller models in that of their files "
    "(vLLM 0.33 config/speculative.py, `quantization`), in llama.cpp as the model's GGUF file"
)


def draft_format(architecture: Architecture, workload: Inference) -> str:
    """Return the format of the draft's weights, for `workload` with its defaults filled in."""
    assert architecture.draft is not None
    weights = workload.weights or "bf16"
    if workload.speculation.method == "mtp" or is_gguf(architecture, weights):
        return weights
    return architecture.draft.stored_as


def draft_term(architecture: Architecture, workload: Inference) -> Term | None:
    """Return the memory of the draft's weights, None without a network that drafts."""
    if architecture.draft is None:
        return None
    name = draft_format(architecture, workload)
    found = weights_term(architecture.draft, name)
    k = library_symbol("k", workload.speculation.drafted, f"tokens drafted before each check, weights in {name}")
    return replace(found, name="draft", source=_SOURCE, symbols=(*found.symbols, k))


def cached_groups(architecture: Architecture) -> tuple[LayerGroup, ...]:
    """Return the layers of the main stack and of the draft, which keep their keys and values in the same pages.

    **Source**: vLLM 0.33 v1/worker/gpu/model_runner.py `get_kv_cache_spec` (layers of the speculator are layers of the
    model); SGLang 0.5.23 pool_configurator.py and kv_cache_configurator.py (a draft's pool has as many tokens).
    """
    own = architecture.main.groups
    return own if architecture.draft is None else (*own, *architecture.draft.main.groups)


def verified_rows(workload: Inference, sequences: int) -> int:
    """Return the rows of logits in a step of `sequences` sequences: the drafted tokens of each, and one more."""
    return sequences * (workload.speculation.drafted + 1)
