"""Matching of a checkpoint's tensors with a network's tensors, and their stored size."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from planner.models.architecture import Architecture, Stack, StoredTensors
from planner.models.readers.safetensors import FileTensor
from planner.models.readers.sources import quoted_text

NetworkPart = Literal["embedding", "layers", "output", "other"]

_PLAIN: Final = {"BF16": "bf16", "F16": "fp16", "F32": "fp32"}
# Tensors of quantized checkpoints in addition to a weight or instead of it: GPTQ and AWQ, compressed-tensors, ModelOpt,
# fp8 of DeepSeek, bitsandbytes, and MXFP4 of gpt-oss.
_COMPANION: Final = re.compile(
    r"(\.weight)?(\.(qweight|qzeros|scales|g_idx|weight_packed|weight_shape|weight_scale|weight_scale_2"
    r"|weight_scale_inv|weight_global_scale|weight_zero_point|weight_g_idx|input_scale|input_global_scale"
    r"|input_zero_point|output_scale|k_scale|v_scale|absmax|quant_map|nested_absmax|nested_quant_map"
    r"|quant_state\.[\w]+|SCB|weight_format))$|_(blocks|scales)$"
)
# Buffers that are stored and loaded with the parameters.
_BUFFER: Final = re.compile(r"(^|\.)e_score_correction_bias$")
_NUMBER: Final = re.compile(r"(?<![^.])(?:\d+|\{\w+\})(?![^.])")


class _TensorName(NamedTuple):
    """A tensor's name, split into the path before the layer number, the layer number, and the path after it."""

    prefix: str
    layer: int | None
    rest: str


def with_stored_sizes(
    architecture: Architecture, tensors: Iterable[FileTensor], notes: tuple[str, ...] = ()
) -> Architecture:
    """Return `architecture` with the stored size of its tensors in a checkpoint, and notes on differences.

    Tensors that the network does not have (layers for multi-token prediction, a tied head) are not counted. If some of
    the network's tensors are missing, the names are not comparable and all tensors are counted.
    """
    found: dict[_TensorName, list[FileTensor]] = {}
    for tensor in tensors:
        found.setdefault(_split_name(_COMPANION.sub(_restored_number, tensor.name)), []).append(tensor)
    expected = _NetworkTensorMatcher(architecture, found)
    missing = expected.missing()
    counted = tuple(found if missing else expected.matched)
    extra = [tensor for spot in found.keys() - set(counted) for tensor in found[spot]]
    stored = sum_stored(
        (expected.part_of(spot), tensor.format, tensor.elements, tensor.bytes)
        for spot in counted
        for tensor in found[spot]
    )
    matched_tensors = [tensor for spot in counted if not _BUFFER.search(spot.rest) for tensor in found[spot]]
    stored_architecture = architecture.evolve(container="safetensors", stored=stored)
    all_notes = (
        *notes,
        *_missing_note(missing),
        *_extra_note(extra),
        *(() if missing else _size_note(stored_architecture, matched_tensors)),
    )
    return _with_stored_dtype(stored_architecture, all_notes)


def _restored_number(match: re.Match[str]) -> str:
    """Return `.weight` where a suffix replaced that ending, else an empty text."""
    return ".weight" if match[0].startswith(".") else ""


def _split_name(name: str) -> _TensorName:
    first = _NUMBER.search(name)
    if first is None or not first[0].isdecimal() or len(first[0]) > 6:
        return _TensorName("", None, _NUMBER.sub("#", name))
    return _TensorName(name[: first.start()], int(first[0]), _NUMBER.sub("#", name[first.end() :]).removeprefix("."))


class _NetworkTensorMatcher:
    """Matcher of a network's tensors with a checkpoint's tensors."""

    def __init__(self, architecture: Architecture, tensor_names: Iterable[_TensorName]) -> None:
        self._around = _parts_outside_layers(architecture)
        self._inside = [_layers_by_tensor(stack) for stack in architecture.stacks]
        self._names: dict[str, str | None] = {}
        placed_names = tuple(tensor_names)
        self._stack_of = {
            prefix: self._best_stack_index(suffix_counts)
            for prefix, suffix_counts in _name_counts_by_prefix(placed_names).items()
        }
        self._placed = {spot: place for spot in placed_names if (place := self._network_part(spot))}

    @property
    def matched(self) -> Iterable[_TensorName]:
        """Return the checkpoint's tensors that belong to the network."""
        return self._placed.keys()

    def part_of(self, tensor_name: _TensorName) -> NetworkPart:
        """Return the part of the network that the tensor `tensor_name` belongs to."""
        return self._placed.get(tensor_name) or ("other" if tensor_name.layer is None else "layers")

    def missing(self) -> list[str]:
        """Return the names of the network's tensors that the checkpoint lacks."""
        inside = {(self._stack_of.get(spot.prefix), spot.layer, spot.rest) for spot in self._placed}
        around = set(self._names.values())
        lacking = [name for name in self._around if name not in around]
        for number, layers in enumerate(self._inside):
            for rest, places in layers.items():
                lacking.extend(f"{place}.{rest}" for place in places if (number, place, rest) not in inside)
        return lacking

    def _network_part(self, tensor_name: _TensorName) -> NetworkPart | None:
        stack = self._stack_of.get(tensor_name.prefix) if tensor_name.layer is not None else None
        if stack is not None and tensor_name.layer in self._inside[stack].get(tensor_name.rest, ()):
            return "layers"
        if _BUFFER.search(tensor_name.rest):
            return "other" if tensor_name.layer is None else "layers"
        whole = tensor_name.rest if tensor_name.layer is None else f"{tensor_name.prefix}#.{tensor_name.rest}"
        if whole not in self._names:
            self._names[whole] = self._network_name(whole)
        name = self._names[whole]
        return None if name is None else self._around[name]

    def _network_name(self, full_name: str) -> str | None:
        """Return the network's name for a checkpoint tensor outside the layers, or None."""
        parts = full_name.split(".")
        shorter = (".".join(parts[start:]) for start in range(len(parts)))
        inner = next((name for name in shorter if name in self._around), None)
        # A checkpoint of the base model omits the prefix of the surrounding model.
        return inner or next((name for name in self._around if name.endswith(f".{full_name}")), None)

    def _best_stack_index(self, suffix_counts: Counter[str]) -> int | None:
        shared = [sum(count for rest, count in suffix_counts.items() if rest in layers) for layers in self._inside]
        best = max(range(len(shared)), key=shared.__getitem__)
        return best if shared[best] else None


def _name_counts_by_prefix(tensor_names: Iterable[_TensorName]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for spot in tensor_names:
        if spot.layer is not None:
            found.setdefault(spot.prefix, Counter())[spot.rest] += 1
    return found


def _layers_by_tensor(stack: Stack) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for group in stack.groups:
        places = group.places or tuple(range(group.count))
        for tensor in group.layer.tensors:
            found.setdefault(_NUMBER.sub("#", tensor.name), set()).update(places)
    return found


def _parts_outside_layers(architecture: Architecture) -> dict[str, NetworkPart]:
    found: dict[str, NetworkPart] = {}
    for stack in architecture.stacks:
        for tensor in (*stack.before, *stack.after):
            found[_NUMBER.sub("#", tensor.name)] = "embedding" if tensor.role == "embedding" else "other"
    return found | {_NUMBER.sub("#", tensor.name): "output" for tensor in architecture.head}


def sum_stored(parts: Iterable[tuple[NetworkPart, str, int, int]]) -> tuple[StoredTensors, ...]:
    """Return the summed elements and bytes of tensors, by part of the network and format."""
    sums: dict[tuple[NetworkPart, str], tuple[int, int]] = {}
    for place, name, elements, count in parts:
        before = sums.get((place, name), (0, 0))
        sums[place, name] = (before[0] + elements, before[1] + count)
    return tuple(
        StoredTensors(format=name, place=place, elements=elements, bytes=count)
        for (place, name), (elements, count) in sorted(sums.items())
    )


def _with_stored_dtype(architecture: Architecture, notes: tuple[str, ...]) -> Architecture:
    """Return `architecture` with the number format of the checkpoint's tensors, if all have the same."""
    formats = {part.format for part in architecture.stored if part.bytes}
    only = _PLAIN.get(formats.pop()) if len(formats) == 1 else None
    stated = architecture.stored_dtype
    texts = (*architecture.reader_notes, *notes)
    if only is None or only == stated:
        return architecture.evolve(reader_notes=texts)
    if stated is not None:
        texts = (*texts, f"the configuration states {stated}, but the files hold {only}, which is used")
    return architecture.evolve(stored_dtype=only, reader_notes=texts)


def _missing_note(names: list[str]) -> tuple[str, ...]:
    if not names:
        return ()
    rest = f"{len(names):,} tensors of the network are missing from the files, such as {quoted_text(names[0])}"
    return (f"{rest}: all tensors in the files count as stored weights",)


def _extra_note(tensors: list[FileTensor]) -> tuple[str, ...]:
    if not tensors:
        return ()
    size = sum(tensor.bytes for tensor in tensors)
    what = f"{len(tensors):,} tensors of the files, {size:,} bytes, are not part of the network"
    return (f"{what} and not counted, such as {quoted_text(min(tensor.name for tensor in tensors))}",)


def _size_note(architecture: Architecture, matched_tensors: list[FileTensor]) -> tuple[str, ...]:
    elements = sum(tensor.elements for tensor in matched_tensors)
    packed = any(tensor.format not in _PLAIN for tensor in matched_tensors)
    if packed or elements == architecture.parameters:
        return ()
    return (f"the files hold {elements:,} parameters where the configuration describes {architecture.parameters:,}",)
