"""How many consecutive layers each of several cards takes, as the program splits them that runs the network."""

from functools import lru_cache
from itertools import accumulate
from typing import Final

from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.training import Training
from planner.workload.workload import Inference

SPLIT_NOTES: Final = {
    "llama.cpp": "llama.cpp splits the layers in proportion to the free memory of the cards; the output counts as one.",
    "hf": "transformers fills one card after the other up to an even share and room to spare, at most what is free "
    "(device_map auto); the last takes the rest.",
    "vllm": "vLLM splits the layers evenly, however much the cards have (VLLM_PP_LAYER_PARTITION says otherwise).",
    "training": "Stages are even, however much the cards have: name their layers with pipeline_layers.",
}
"""What decides the split over cards that differ, by what runs the network."""
_ROOM: Final = (5, 4)
"""The share of the largest module that a card may take beyond an even share."""


def splitter_of(workload: Training | Inference) -> str:
    """Return what splits the layers of `workload`, as a key of `SPLIT_NOTES`."""
    return "training" if isinstance(workload, Training) else workload.profile or "hf"


def split_layers(
    architecture: Architecture, workload: Training | Inference, free_bytes: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Return the layers of each stage; `free_bytes` are those of the cards where they are known and differ."""
    parallel, layers = workload.parallel, architecture.depth
    if parallel.pipeline_layers or parallel.pipeline == 1:
        return parallel.pipeline_layers or (layers,)
    if isinstance(workload, Training):
        return stage_layers(layers, parallel.pipeline)
    if workload.profile == "vllm":
        return layers_of_vllm(layers, parallel.pipeline)
    if workload.profile == "llama.cpp":
        return layers_by_memory(layers, free_bytes or (1,) * parallel.pipeline)
    return layers_by_device_map(architecture, workload.weights or "bf16", parallel.pipeline, free_bytes)


def stage_layers(layers: int, stages: int) -> tuple[int, ...]:
    """Return how many of `layers` each of `stages` holds in training, as evenly as it goes.

    **Formula**: layers ÷ stages where that is whole; else the embedding and the head count as a layer each, and the
    first stages have one more.

    **Source**: Megatron-LM (even stages); torchtitan `distributed/pipeline_parallel.py`
    `generate_llm_fqn_per_model_part` (weights of the input and output modules, 1 by default).
    """
    if layers % stages == 0:
        return (layers // stages,) * stages
    each, more = divmod(layers + 2, stages)
    counts = [each + (1 if index < more else 0) for index in range(stages)]
    counts[0] -= 1
    counts[-1] -= 1
    return _none_empty(counts)


def layers_of_vllm(layers: int, stages: int) -> tuple[int, ...]:
    """Return how many of `layers` each of `stages` holds in vLLM.

    **Formula**: as evenly as it goes; those that are left go to the stages before the last, from the back.

    **Source**: vLLM distributed/utils.py `get_pp_indices`.
    """
    each, more = divmod(layers, stages)
    return tuple(each + (1 if stages - 1 - more <= stage < stages - 1 else 0) for stage in range(stages))


def layers_by_memory(layers: int, free_bytes: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many of `layers` each card holds where they are split in proportion to what is free on each.

    **Formula**: layer i of L + 1, the output counted as one, goes to the first card whose share of all free bytes,
    with those before it, is more than i / (L + 1).

    **Source**: llama.cpp src/llama-model.cpp: `std::upper_bound` over the normalised splits, by default the devices'
    free memory.
    """
    total = sum(free_bytes)
    ends = [free * (layers + 1) for free in accumulate(free_bytes)]
    counts = [0] * len(free_bytes)
    card = 0
    for layer in range(layers):
        while ends[card] <= layer * total:
            card += 1
        counts[card] += 1
    return _none_empty(counts)


@lru_cache(maxsize=256)
def layers_by_device_map(
    architecture: Architecture, weights: str, cards: int, free_bytes: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Return how many layers each of `cards` holds with `device_map="auto"`.

    **Formula**: embedding, layers, norm and head are placed in this order, on one card after the other, each filled up
    to W / n + 1.25 · m or what is free on it; the first keeps room for the largest module to come; the last takes the
    rest. W are the bytes of the weights, n the cards, m those of the largest layer or table.

    **Source**: transformers 5.23 integrations/accelerate.py: `get_balanced_memory`, `infer_auto_device_map`.

    **Assumes** that nothing is left for the CPU: what does not fit is counted on the last card.
    """
    modules = _module_bytes(architecture, weights)
    limit = sum([size for size, _ in modules]) // cards + max([size for size, _ in modules]) * _ROOM[0] // _ROOM[1]
    limits = [min(limit, free) for free in free_bytes or (limit,) * cards]
    # What is still to come can only be as large as the largest from there on.
    largest = [*accumulate([size for size, _ in reversed(modules[1:])], max)][::-1]
    counts, card, used = [0] * cards, 0, 0
    for (size, is_layer), to_come in zip(modules, [*largest, 0], strict=True):
        while card < cards - 1 and used + size > limits[card] - (to_come if card == 0 else 0):
            card, used = card + 1, 0
        used += size
        counts[card] += is_layer
    return _none_empty(counts)


@lru_cache(maxsize=256)
def _module_bytes(architecture: Architecture, weights: str) -> tuple[tuple[int, bool], ...]:
    """Return the bytes of what is placed as a whole, in order, and whether it is a layer."""
    main = architecture.main
    plain = 4 if weights in ("fp32", "F32") else 2
    # Towers come before everything, and schemes quantise what is inside the layers.
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


def _none_empty(counts: list[int]) -> tuple[int, ...]:
    """Let the largest stages give a layer to those without any."""
    while 0 in counts:
        counts[counts.index(max(counts))] -= 1
        counts[counts.index(0)] += 1
    return tuple(counts)
