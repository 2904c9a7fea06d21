"""Compilation in scripts: compiled code is run operator by operator, as it was written."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import nn

from planner.trace.analysis.live_memory import alive_at, live_memory
from planner.trace.facts import CATEGORIES, TraceDifference
from planner.trace.recording import Allocations
from planner.trace.worker.cuda.dispatch import patched_attributes

_FUSED: Final = ("activations", "temporaries")
"""Categories of tensors that fused kernels may not store."""


class Compilation:
    """Compilation that a script asks for."""

    def __init__(self) -> None:
        self.is_wanted = False

    @contextmanager
    def as_written(self) -> Iterator[None]:
        """Let `torch.compile` and `Module.compile` return what they would compile."""

        def compile_nothing(model: Any = None, **_options: Any) -> Any:
            self.is_wanted = True
            return model if model is not None else lambda function: function

        def compile_module(_module: nn.Module, *_args: Any, **_options: Any) -> None:
            self.is_wanted = True

        with patched_attributes(torch, compile=compile_nothing), patched_attributes(nn.Module, compile=compile_module):
            yield

    def differences(self, allocations: Allocations) -> list[TraceDifference]:
        """Return by how much less a compiled run may need: at most what kernels store only for each other."""
        if not self.is_wanted:
            return []
        live = live_memory(allocations)
        fused = {CATEGORIES.index(category) for category in _FUSED}
        alive = alive_at(allocations, live.times[live.peak_index()])
        fused_bytes = sum(allocations.bytes[index] for index in alive if allocations.category[index] in fused)
        return [
            TraceDifference(
                name="compiled code",
                explanation=(
                    "code for torch.compile is traced operator by operator; a compiler fuses operators, and then "
                    "neither stores what they pass to each other nor all that the backward pass computes again"
                ),
                source="torch/_functorch/partitioners.py, min_cut_rematerialization_partition",
                low_bytes=-fused_bytes,
            )
        ]
