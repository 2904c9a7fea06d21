"""What differs from layer to layer of one stack: how far attention looks back, and whether it rotates."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from planner.models.readers.fields import Fields


class Place(NamedTuple):
    """The attention of one layer."""

    window: int | None = None
    rotary: bool = True


Places = Callable[[Fields, int], tuple[Place, ...]]

_LIMITED: Final = {
    "full_attention": False,
    "attention": False,
    "sliding_attention": True,
    "chunked_attention": True,
}
_WINDOW_MAX: Final = 10**9
_ATTENTION_NAMES: Final = ("attention", "full_attention")
_STATE_NAMES: Final = ("mamba", "linear_attention", "conv")


def full(_: Fields, layers: int) -> tuple[Place, ...]:
    """Say that every layer sees everything."""
    return (Place(),) * layers


def unrotated(_: Fields, layers: int) -> tuple[Place, ...]:
    """Say that every layer sees everything and positions come from elsewhere (learned or ALiBi)."""
    return (Place(rotary=False),) * layers


def everywhere(default: int | None = None) -> Places:
    """Return the rule by which every layer has the window `sliding_window`; `null` means none."""

    def rule(fields: Fields, layers: int) -> tuple[Place, ...]:
        return (Place(_window(fields, default)),) * layers

    return rule


def repeating(every: int, default: int | None, *, full_rotates: bool = True) -> Places:
    """Return the rule by which one layer in `every` sees everything and the others have a window.

    The configuration's `layer_types` or its pattern override it. `default` is the family's own window; without
    `full_rotates` the layers that see everything have no rotary embedding (Cohere 2, EXAONE 4).
    """

    def rule(fields: Fields, layers: int) -> tuple[Place, ...]:
        window = _window(fields, default)
        limited = limited_layers(fields, layers)
        if limited is None:
            period = fields.integer("sliding_window_pattern", "_sliding_window_pattern", default=every)
            limited = tuple((place + 1) % period != 0 for place in range(layers))
        whole = Place(rotary=full_rotates or window is None)
        return tuple(Place(window) if few else whole for few in limited)

    return rule


def upper_layers(fields: Fields, layers: int) -> tuple[Place, ...]:
    """Give the layers from `max_window_layers` on a window, if `use_sliding_window` says so (Qwen2, Qwen3)."""
    window = switched_window(fields, 4096)
    limited = limited_layers(fields, layers)
    if limited is None:
        first = fields.integer("max_window_layers", default=28, low=0)
        limited = tuple(place >= first for place in range(layers))
    return tuple(Place(window if few else None) for few in limited)


def even_lower_layers(fields: Fields, layers: int) -> tuple[Place, ...]:
    """Give every other layer below `max_window_layers` a window, if `use_sliding_window` says so (Qwen2-MoE)."""
    window = switched_window(fields, 4096)
    limited = limited_layers(fields, layers)
    if limited is None:
        last = fields.integer("max_window_layers", default=28, low=0)
        limited = tuple((place + 1) % 2 == 1 and place < last for place in range(layers))
    return tuple(Place(window if few else None) for few in limited)


def switched_everywhere(fields: Fields, layers: int) -> tuple[Place, ...]:
    """Give every layer a window, if `use_sliding_window` says so (Qwen3-MoE)."""
    return (Place(switched_window(fields, 4096)),) * layers


def unrotated_in_between(fields: Fields, layers: int) -> tuple[Place, ...]:
    """Leave the rotary embedding out of one layer in `no_rope_layer_interval` (SmolLM3)."""
    window = switched_window(fields, None)
    rotary = rotary_layers(fields, layers)
    limited = limited_layers(fields, layers) or tuple(not rotates for rotates in rotary)
    return tuple(Place(window if few else None, rotates) for few, rotates in zip(limited, rotary, strict=True))


def chunked(fields: Fields, layers: int) -> tuple[Place, ...]:
    """Let the rotating layers attend within chunks and the others to everything (Llama 4)."""
    chunk = fields.integer("attention_chunk_size", default=8192, high=_WINDOW_MAX)
    rotary = rotary_layers(fields, layers)
    limited = limited_layers(fields, layers) or rotary
    return tuple(Place(chunk if few else None, rotates) for few, rotates in zip(limited, rotary, strict=True))


def rotary_layers(fields: Fields, layers: int) -> tuple[bool, ...]:
    """Return which layers rotate: `no_rope_layers` holds 1 for those that do, whatever its name says."""
    stated = fields.integers("no_rope_layers", high=1)
    if not stated:
        interval = fields.integer("no_rope_layer_interval", default=4)
        return tuple((place + 1) % interval != 0 for place in range(layers))
    _check_length(fields, "no_rope_layers", len(stated), layers)
    return tuple(flag == 1 for flag in stated)


def limited_layers(fields: Fields, layers: int) -> tuple[bool, ...] | None:
    """Return which layers have a window by `layer_types`, or nothing where it is missing."""
    stated = fields.texts("layer_types")
    if stated is None:
        return None
    _check_length(fields, "layer_types", len(stated), layers)
    for name in stated:
        if name not in _LIMITED:
            fields.fail("layer_types", f"holds {name[:40]!r}, which is not known here")
    return tuple(_LIMITED[name] for name in stated)


def attention_layers(fields: Fields, names: Sequence[str], layers: int) -> tuple[bool, ...] | None:
    """Return which layers attend, by a field that names the kind of each; nothing where it is missing."""
    kinds = fields.texts(*names)
    if kinds is None:
        return None
    if len(kinds) != layers or not set(kinds) <= {*_ATTENTION_NAMES, *_STATE_NAMES}:
        fields.fail(names[0], f"must name attention or a mixer with a state for each of the {layers} layers")
    return tuple(kind in _ATTENTION_NAMES for kind in kinds)


def switched_window(fields: Fields, default: int | None) -> int | None:
    """Return the window where `use_sliding_window` is true."""
    return _window(fields, default) if fields.flag("use_sliding_window", default=False) else None


def _window(fields: Fields, default: int | None) -> int | None:
    if not fields.states("sliding_window"):
        return default
    return fields.integer("sliding_window", default=0, low=0, high=_WINDOW_MAX) or None


def _check_length(fields: Fields, name: str, found: int, layers: int) -> None:
    if found != layers:
        fields.fail(name, f"has {found} entries for {layers} layers")
