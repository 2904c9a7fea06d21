"""Memory behavior of inference with Hugging Face Transformers: `generate`, and accelerate's `device_map`."""

from collections.abc import Hashable, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Final

from planner.dtypes import ELEMENT_BYTES
from planner.memory.chance import Spread
from planner.memory.inference.timeline import inference_timeline
from planner.memory.parallel.layer_splitting import without_empty_stages
from planner.memory.parallel.shares import partial_term
from planner.memory.phases import PhaseSnapshots, Snapshot
from planner.memory.software.base import ServingMemory
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.workload import Inference

ANY_VERSION: Final = Spread(below=0.07, above=0.16)
"""Spread of published measurements of inference in PyTorch, whatever the versions."""
_EXTRA_SHARE: Final = (5, 4)
"""Multiple of the largest module's size that a card may hold beyond an even share, as numerator and denominator."""


class Transformers(ServingMemory):
    """Inference with transformers' `generate`."""

    split_note = (
        "transformers fills one GPU after the other up to an even share plus a margin, limited by free memory "
        "(device_map auto); the last GPU holds the rest."
    )

    spread = ANY_VERSION

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of generation: load, prefill, decoding."""
        return inference_timeline(architecture, workload)

    def notes(self, workload: Inference) -> Iterator[str]:
        """Yield a note if the KV cache is quantized."""
        if workload.kv_cache not in ELEMENT_BYTES:
            yield "A quantized KV cache needs a cache class that supports it; its temporary memory is not estimated."

    def split_layers(
        self, architecture: Architecture, workload: Inference, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of layers on each card with `device_map="auto"`."""
        stages = workload.parallel.pipeline
        return layers_by_device_map(architecture, workload.weights or "bf16", stages, free_bytes)

    def with_returned_outputs(self, first: PhaseSnapshots, last: PhaseSnapshots, workload: Inference) -> PhaseSnapshots:
        """Return the first card's timeline with the logits, which are copied back to the inputs' device.

        **Source**: accelerate big_modeling.py `dispatch_model`: the hook of the whole model has `io_same_device`.
        """
        size = ELEMENT_BYTES[workload.compute]
        made = [item for snapshot in last.snapshots if snapshot.name == "prefill" for item in snapshot.terms]
        logits = [item for item in made if item.name == "logits"]
        read = [place for place, snapshot in enumerate(first.snapshots) if snapshot.name == "prefill"][-1]
        back = [
            partial_term(item, 4, size + 4 if size < 4 else size, "one GPU's share of the fp32 logits")
            for item in logits
        ]
        explanation = "the logits are copied back to the first GPU, which holds the input"
        held = Snapshot("prefill", [*first.snapshots[read].terms, *back], explanation)
        return first._replace(snapshots=(*first.snapshots[: read + 1], held, *first.snapshots[read + 1 :]))


SERVING: Final = Transformers()


@lru_cache(maxsize=256)
def layers_by_device_map(
    architecture: Architecture, weights: str, cards: int, free_bytes: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Return the number of layers on each of `cards` cards with `device_map="auto"`.

    **Formula**: embedding, layers, norm and head are placed in this order, on one card after the other, each filled up
    to W / n + 1.25 · m or its free memory; the first reserves room for the largest remaining module; the last holds the
    rest. W are the bytes of the weights, n the cards, m those of the largest layer or table.

    **Source**: transformers 5.23 integrations/accelerate.py: `get_balanced_memory`, `infer_auto_device_map`.

    **Assumes** that nothing is placed on the CPU: layers that do not fit are counted on the last card.
    """
    modules = _module_bytes(architecture, weights)
    limit = (
        sum([size for size, _ in modules]) // cards
        + max([size for size, _ in modules]) * _EXTRA_SHARE[0] // _EXTRA_SHARE[1]
    )
    limits = [min(limit, free) for free in free_bytes or (limit,) * cards]
    # Suffix maximum: the largest module that is still to be placed after each one.
    largest = [*accumulate([size for size, _ in reversed(modules[1:])], max)][::-1]
    counts, card, used = [0] * cards, 0, 0
    for (size, is_layer), to_come in zip(modules, [*largest, 0], strict=True):
        while card < cards - 1 and used + size > limits[card] - (to_come if card == 0 else 0):
            card, used = card + 1, 0
        used += size
        counts[card] += is_layer
    return without_empty_stages(counts)


def _module_bytes(architecture: Architecture, weights: str) -> tuple[tuple[int, bool], ...]:
    """Return the size in bytes of each module that is placed as a whole, in order, and whether it is a layer."""
    main = architecture.main
    plain = 4 if weights in ("fp32", "F32") else 2
    # Towers are placed first, and schemes quantize only tensors inside the layers.
    before = plain * sum([tensor.parameters for tensor in main.before])
    before += plain * sum([stack.parameters for stack in architecture.stacks[:-1]])
    behind = [plain * tensor.parameters for tensor in (*main.after, *architecture.head)]
    inside = max(weight_bytes(architecture, weights) - before - sum(behind), 0)
    places: dict[int, int] = {}
    for group in main.groups:
        own = group.layer.parameters
        places |= dict.fromkeys(group.places or range(len(places), len(places) + group.count), own)
    total = max(sum(places.values()), 1)
    layers = [(ceil_div(inside * places[place], total), True) for place in sorted(places)]
    return ((before, False), *layers, *((size, False) for size in behind))
