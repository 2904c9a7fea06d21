"""Observer interface for a run's phases, tensors, modules and notes, and the tensors in nested containers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import torch
from torch import nn

from planner.memory.result import PhaseName
from planner.trace.recording import Category

_PLAIN: Final = (str, bytes, int, float, complex, bool, type(None), type, torch.dtype, torch.device)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield every tensor reachable from `value` through containers and attributes of plain objects, each tensor once.

    Modules are not entered: their tensors are parameters and buffers.
    """
    yield from _walk_tensors(value, set())


def _walk_tensors(value: Any, seen: set[int]) -> Iterator[torch.Tensor]:
    if isinstance(value, _PLAIN) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value
        return
    for inner in contained_values(value):
        yield from _walk_tensors(inner, seen)


def contained_values(value: Any) -> list[Any]:
    """Return the values that `value` holds: items of a container, or attributes of a plain object."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, torch.nn.Module) or callable(value):
        return []
    return list(getattr(value, "__dict__", {}).values())


def map_tensors(value: Any, transform: Any) -> Any:
    """Return `value` with `transform(tensor)` in place of each tensor in its tuples, lists and dictionaries."""
    if isinstance(value, torch.Tensor):
        return transform(value)
    if isinstance(value, dict):
        return {name: map_tensors(inner, transform) for name, inner in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(inner, transform) for inner in value))
    if isinstance(value, list | tuple):
        return type(value)(map_tensors(inner, transform) for inner in value)
    return value


class RunObserver:
    """Observer of a run; this base class ignores all events."""

    def begin_phase(self, name: PhaseName, step: int) -> None:
        """Begin the phase `name` of step `step`, counted from 0."""

    def label(self, tensors: Iterable[torch.Tensor], category: Category, parameter: torch.Tensor | None = None) -> None:
        """Set the category of the storages of `tensors`, and the parameter to which they belong."""

    def mark_on_host(self, tensors: Iterable[torch.Tensor]) -> None:
        """Mark `tensors` as being in host memory if the parameters were on a card."""

    def register_modules(self, named: Mapping[str, nn.Module]) -> None:
        """Register the run's modules by name; a single module has an empty name."""

    def add_note(self, text: str) -> None:
        """Add a note for the user."""
