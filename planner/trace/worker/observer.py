"""Observer interface for a run's phases, tensors, modules and notes."""

from collections.abc import Iterable, Mapping

import torch
from torch import nn

from planner.memory.result import PhaseName
from planner.trace.facts import Category


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
