"""The moments of vLLM: the profiling step, sampling, and the cache that the workload needs of the pool."""

from typing import Final

from planner.memory.engines.vllm_cache import SOURCE, Pages, pages_of
from planner.memory.engines.vllm_profile import buffers_term, forward_term, hidden_term, sampler_term
from planner.memory.engines.vllm_setup import CardClass, Setup, setup_of
from planner.memory.phases import Moment, Moments, PagePool
from planner.memory.result import Term, TermName
from planner.memory.terms import library, model, term
from planner.memory.terms import workload as chosen
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture
from planner.units import MIB
from planner.workload.software.vllm import VLLM
from planner.workload.workload import Inference

_COUNTS_GRAPHS: Final = "0.33"
"""Before 0.21 the cache was sized without regard to CUDA graphs, which then took what the share of the card left."""
_OUTSIDE_PYTORCH: Final = 143 * MIB
"""Memory beside PyTorch's that the start-up takes off the cache: 0.13 to 0.16 GiB in five logs (0.11 on an H100)."""
_AT_ONCE: Final = "sequences at once, as many as a step takes"


def vllm_moments(architecture: Architecture, workload: Inference, of_card: CardClass) -> Moments:
    """Return what is alive in each phase of `workload` (defaults filled in) on a card of this class.

    **Formula**: weights + tables and graphs + pages of all sequences + the larger of a step of the most tokens and of
    sampling for the most sequences. vLLM gives the cache all that is left of its share of the card; here it has what
    the workload needs, and the pool says what the card has room for.
    """
    setup = setup_of(workload, of_card)
    weights = weights_term(architecture, workload.weights or "bf16")
    pages = pages_of(architecture, workload.kv_cache, setup, workload.prompt_length or 1)
    sequences = min(workload.batch, setup.sequences)
    cache = _pages_term("kv_cache", pages, pages.cache_pages, sequences) if pages else None
    states = _pages_term("state", pages, pages.state_pages, sequences) if pages else None
    buffers = buffers_term(architecture, setup)
    kept = [item for item in (weights, cache, states, buffers) if item is not None and item.bytes]
    forward = forward_term(architecture, setup)
    sampling = [item for item in (hidden_term(architecture, setup), sampler_term(architecture, setup)) if item]
    step = max(forward.bytes, sum(item.bytes for item in sampling))
    counted = buffers.bytes if buffers and setup.version == _COUNTS_GRAPHS else 0
    beside = weights.bytes + counted + step + _OUTSIDE_PYTORCH
    return Moments(
        (
            Moment("load", [weights], "the parameters are on the card"),
            Moment("prefill", [*kept, forward], "a step of the most tokens that are taken at once"),
            Moment("decode", [*kept, *sampling], "the next tokens of the most sequences are sampled"),
        ),
        dynamic=step,
        pool=PagePool(pages.page_bytes, pages.pages, setup.length, beside, setup.utilization) if pages else None,
        notes=_notes(setup, pages, workload),
    )


def _pages_term(name: TermName, pages: Pages, count: int, sequences: int) -> Term | None:
    if not count:
        return None
    return term(
        name,
        sequences * count * pages.page_bytes,
        "B × p × g",
        (
            chosen("B", sequences, _AT_ONCE),
            library("p", count, "pages of each, all groups of layers together"),
            model("g", pages.page_bytes, "bytes of a page of a whole group of layers"),
        ),
        SOURCE,
    )


def _notes(setup: Setup, pages: Pages | None, workload: Inference) -> tuple[str, ...]:
    graphs = "with CUDA graphs" if setup.graphs else "without CUDA graphs"
    version = VLLM.version if setup.version == "0.33" else f"vLLM {setup.version}"
    notes = [
        f"Estimated as {version} does it: at most {setup.sequences:,} sequences and {setup.tokens:,} tokens in a step, "
        f"pages of {setup.page_tokens} tokens, {graphs}."
    ]
    if pages and pages.slots > pages.layers:
        notes.append(
            f"Pages are kept for {pages.slots} layers, since groups are filled up; the model has {pages.layers}."
        )
    if workload.batch > setup.sequences:
        notes.append(
            f"{workload.batch - setup.sequences:,} of {workload.batch:,} sequences wait: a step takes no more."
        )
    return tuple(notes)
