"""What a run tells whoever watches it."""

from collections.abc import Iterable, Mapping

import torch
from torch import nn

from planner.memory.result import PhaseName
from planner.trace.facts import Category


class Watcher:
    """Hears what a run does; this one does nothing with it."""

    def phase(self, name: PhaseName, step: int) -> None:
        """Hear that the phase `name` of the step `step`, counted from 0, begins."""

    def label(self, tensors: Iterable[torch.Tensor], category: Category, parameter: torch.Tensor | None = None) -> None:
        """Hear what the storages of `tensors` are for, and of which parameter; they may have been made long before."""

    def on_host(self, tensors: Iterable[torch.Tensor]) -> None:
        """Hear that `tensors` would lie in the host's memory, were the parameters on a card."""

    def modules(self, named: Mapping[str, nn.Module]) -> None:
        """Hear which modules run; the name of a single one is empty."""

    def note(self, text: str) -> None:
        """Hear something that a person should know of the run."""
