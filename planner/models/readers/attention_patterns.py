"""Attention patterns of a stack: the window and rotary embedding of each layer."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from planner.models.readers.config_fields import ConfigFields


class LayerAttention(NamedTuple):
    """Window in tokens and rotary embedding of one layer's attention."""

    window: int | None = None
    rotary: bool = True


AttentionPattern = Callable[[ConfigFields, int], tuple[LayerAttention, ...]]

_LIMITED: Final = {
    "full_attention": False,
    "attention": False,
    "sliding_attention": True,
    "chunked_attention": True,
}
_WINDOW_MAX: Final = 10**9
_ATTENTION_NAMES: Final = ("attention", "full_attention")
_STATE_NAMES: Final = ("mamba", "linear_attention", "conv")


def full_attention(_: ConfigFields, layers: int) -> tuple[LayerAttention, ...]:
    """Give every layer full attention."""
    return (LayerAttention(),) * layers


def unrotated_attention(_: ConfigFields, layers: int) -> tuple[LayerAttention, ...]:
    """Give every layer full attention without rotary embedding (learned positions or ALiBi)."""
    return (LayerAttention(rotary=False),) * layers


def same_window_pattern(default: int | None = None) -> AttentionPattern:
    """Return the pattern with the window `sliding_window` in all layers, or full attention if that field is `null`."""

    def pattern(fields: ConfigFields, layers: int) -> tuple[LayerAttention, ...]:
        return (LayerAttention(_window_tokens(fields, default)),) * layers

    return pattern


def alternating_window_pattern(
    every: int, default: int | None, *, full_rotates: bool = True, full_first: bool = False
) -> AttentionPattern:
    """Return the pattern with full attention in the last layer of each `every`, and a sliding window in the others.

    The configuration's `layer_types` or `sliding_window_pattern` override it. `default` is the family's default window;
    without `full_rotates` the layers with full attention have no rotary embedding (Cohere 2, EXAONE 4). With
    `full_first` it is the first layer of each that has full attention (CWM).
    """

    def pattern(fields: ConfigFields, layers: int) -> tuple[LayerAttention, ...]:
        window = _window_tokens(fields, default)
        limited = windowed_layers(fields, layers)
        if limited is None:
            period = fields.integer("sliding_window_pattern", "_sliding_window_pattern", default=every)
            limited = tuple((index + (not full_first)) % period != 0 for index in range(layers))
        whole = LayerAttention(rotary=full_rotates or window is None)
        return tuple(LayerAttention(window) if windowed else whole for windowed in limited)

    return pattern


def windowed_upper_layers(fields: ConfigFields, layers: int) -> tuple[LayerAttention, ...]:
    """Give layers from number `max_window_layers` on a window if `use_sliding_window` is true (Qwen2, Qwen3)."""
    window = switched_window(fields, 4096)
    limited = windowed_layers(fields, layers)
    if limited is None:
        first = fields.integer("max_window_layers", default=28, low=0)
        limited = tuple(index >= first for index in range(layers))
    return tuple(LayerAttention(window if windowed else None) for windowed in limited)


def windowed_alternate_layers(fields: ConfigFields, layers: int) -> tuple[LayerAttention, ...]:
    """Give every other layer below `max_window_layers` a window if `use_sliding_window` is true (Qwen2-MoE)."""
    window = switched_window(fields, 4096)
    limited = windowed_layers(fields, layers)
    if limited is None:
        last = fields.integer("max_window_layers", default=28, low=0)
        limited = tuple((index + 1) % 2 == 1 and index < last for index in range(layers))
    return tuple(LayerAttention(window if windowed else None) for windowed in limited)


def switched_window_everywhere(fields: ConfigFields, layers: int) -> tuple[LayerAttention, ...]:
    """Give every layer a window if `use_sliding_window` is true (Qwen3-MoE)."""
    return (LayerAttention(switched_window(fields, 4096)),) * layers


def interleaved_rotation(fields: ConfigFields, layers: int) -> tuple[LayerAttention, ...]:
    """Give every layer a rotary embedding except one in `no_rope_layer_interval` (SmolLM3)."""
    window = switched_window(fields, None)
    rotary = rotary_layers(fields, layers)
    limited = windowed_layers(fields, layers) or tuple(not rotates for rotates in rotary)
    return tuple(
        LayerAttention(window if windowed else None, rotates) for windowed, rotates in zip(limited, rotary, strict=True)
    )


def chunked_attention(fields: ConfigFields, layers: int) -> tuple[LayerAttention, ...]:
    """Give layers with rotary embedding chunked attention, and the other layers full attention (Llama 4)."""
    chunk = fields.integer("attention_chunk_size", default=8192, high=_WINDOW_MAX)
    rotary = rotary_layers(fields, layers)
    limited = windowed_layers(fields, layers) or rotary
    return tuple(
        LayerAttention(chunk if windowed else None, rotates) for windowed, rotates in zip(limited, rotary, strict=True)
    )


def rotary_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
    """Return for each layer whether it has a rotary embedding: the value 1 in `no_rope_layers` (sic)."""
    stated = fields.integers("no_rope_layers", high=1)
    if not stated:
        interval = fields.integer("no_rope_layer_interval", default=4)
        return tuple((index + 1) % interval != 0 for index in range(layers))
    if len(stated) != layers:
        fields.fail("no_rope_layers", f"has {len(stated)} entries for {layers} layers")
    return tuple(flag == 1 for flag in stated)


def windowed_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...] | None:
    """Return for each layer whether it has a window according to `layer_types`, or None if the field is missing."""
    stated = fields.texts_per_layer("layer_types", layers=layers)
    if stated is None:
        return None
    for name in stated:
        if name not in _LIMITED:
            fields.fail("layer_types", f"holds {name[:40]!r}, which is not supported")
    return tuple(_LIMITED[name] for name in stated)


def attention_layers(
    fields: ConfigFields, names: Sequence[str], layers: int, default: Callable[[int], bool]
) -> tuple[bool, ...]:
    """Return for each layer whether its mixer is attention, from the field `names`, or from `default` without it."""
    kinds = fields.texts(*names)
    if kinds is None:
        return tuple(map(default, range(layers)))
    if len(kinds) != layers or not set(kinds) <= {*_ATTENTION_NAMES, *_STATE_NAMES}:
        fields.fail(names[0], f"must name attention or a mixer with a state for each of the {layers} layers")
    return tuple(kind in _ATTENTION_NAMES for kind in kinds)


def switched_window(fields: ConfigFields, default: int | None) -> int | None:
    """Return the sliding window in tokens if `use_sliding_window` is true, else None."""
    return _window_tokens(fields, default) if fields.flag("use_sliding_window", default=False) else None


def _window_tokens(fields: ConfigFields, default: int | None) -> int | None:
    """Return the sliding window in tokens from `sliding_window`, or None for full attention."""
    if not fields.is_stated("sliding_window"):
        return default
    return fields.integer("sliding_window", default=0, low=0, high=_WINDOW_MAX) or None
