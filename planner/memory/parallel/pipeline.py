"""Pipeline stages: the part of the network on each.

A stage is an `Architecture` itself, so that every formula for one card holds for it.
"""

from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from planner.memory.parallel.tensor import parameters_by_place
from planner.models.architecture import Architecture, LayerGroup, StoredTensors, Tensor
from planner.units import ceil_div


class Stage(NamedTuple):
    """A pipeline stage: its part of the network, its position `place` in the pipeline, and its number of layers."""

    architecture: Architecture
    place: int
    layers: int


@lru_cache(maxsize=256)
def stages_of(
    architecture: Architecture,
    counts: tuple[int, ...],
    interleave: int = 1,
    *,
    formats_by_layer: bool = False,
    head_on_first: bool = False,
) -> tuple[Stage, ...]:
    """Return pipeline stages with `counts` layers each; the first has the embedding, the last the head.

    With `head_on_first` the first stage has both.

    A head that is tied to the embedding is a separate matrix where both are on different stages. With `interleave`
    each stage holds that many groups of consecutive layers. Equal stages are the same object, unless with
    `formats_by_layer` the formats of their tensors depend on the index of the layer in the whole network.

    **Source**: Megatron-LM: the first and the last stage hold a copy of a shared embedding each.
    """
    if len(counts) == 1:
        return (Stage(architecture, 0, counts[0]),)
    ends = list(accumulate(counts))
    starts = [0, *ends[:-1]]
    layer_indices = [frozenset(range(start, end)) for start, end in zip(starts, ends, strict=True)]
    if interleave > 1:
        size = sum(counts) // (len(counts) * interleave)
        layer_indices = [
            frozenset(place + turn * size * len(counts) for turn in range(interleave) for place in range(at, at + size))
            for at in range(0, size * len(counts), size)
        ]
    equal_stages: dict[Architecture, Architecture] = {}
    stages = []
    for place, own_layers in enumerate(layer_indices):
        stage = _stage_architecture(
            architecture,
            layer_indices,
            place,
            formats_by_layer=formats_by_layer,
            has_head=place == (0 if head_on_first else len(counts) - 1),
        )
        stages.append(Stage(equal_stages.setdefault(stage, stage), place, len(own_layers)))
    return tuple(stages)


def _stage_architecture(
    architecture: Architecture,
    layer_indices: list[frozenset[int]],
    place: int,
    *,
    formats_by_layer: bool,
    has_head: bool,
) -> Architecture:
    """Return the part of the network on the stage at `place`; `layer_indices` are those of each stage's layers."""
    is_first = place == 0
    main = architecture.main
    groups = _layer_groups_at(main.groups, layer_indices[place])
    stack = main.evolve(
        groups=groups,
        before=main.before if is_first else (),
        after=main.after if has_head else (),
        embedding_dropout=main.embedding_dropout if is_first else 0.0,
        first_place=min(layer_indices[place]) if formats_by_layer else 0,
        whole_depth=main.layer_count if formats_by_layer else None,
    )
    head = (*_untied_head_tensors(architecture), *architecture.head) if has_head else ()
    stage = architecture.evolve(
        stacks=(*architecture.stacks[:-1], stack) if is_first else (stack,),
        head=head,
        tied_head=False,
        labels=architecture.labels if has_head else None,
        draft=architecture.draft if has_head else None,
        stored=(),
        stored_layers=tuple(architecture.stored_layers[index] for index in sorted(layer_indices[place]))
        if architecture.stored_layers
        else (),
    )
    return stage.evolve(stored=_stage_stored_tensors(architecture, stage))


def _layer_groups_at(groups: tuple[LayerGroup, ...], layer_indices: frozenset[int]) -> tuple[LayerGroup, ...]:
    """Return the layers at `layer_indices`, renumbered from 0."""
    numbers = {place: number for number, place in enumerate(sorted(layer_indices))}
    kept_groups = []
    for group in groups:
        places = tuple(numbers[place] for place in group.places or range(group.count) if place in layer_indices)
        if places:
            kept_groups.append(_group_at_places(group, places))
    return tuple(kept_groups)


def _group_at_places(group: LayerGroup, places: tuple[int, ...]) -> LayerGroup:
    """Return the layers of `group` at `places`, as one object for all stages, so that caches hit."""
    return group.evolve(count=len(places), places=places)


def _untied_head_tensors(architecture: Architecture) -> tuple[Tensor, ...]:
    """Return the copy of a tied embedding that the last stage holds as its head, empty for an untied head."""
    if not architecture.tied_head:
        return ()
    tables = [tensor for tensor in architecture.main.before if tensor.role == "embedding"]
    return (max(tables, key=lambda tensor: tensor.size).evolve(role="head"),)


def _stage_stored_tensors(whole: Architecture, stage: Architecture) -> tuple[StoredTensors, ...]:
    """Return the part of a checkpoint's tensors that a stage loads; a tied head loads the embedding again."""
    before, after = parameters_by_place(whole), parameters_by_place(stage)
    if whole.tied_head:
        after = after | {"embedding": after["embedding"] + after["output"]}
    return tuple(
        part.evolve(bytes=ceil_div(part.bytes * after[part.place], before[part.place]))
        for part in whole.stored
        if before[part.place] and after[part.place]
    )
