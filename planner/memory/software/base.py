"""The questions that the estimator asks of a program, with the answers of plain PyTorch.

A program's own module answers those in which it differs.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

from planner.hardware.gpu import Gpu
from planner.memory.phases import PhaseSnapshots
from planner.memory.result import Part
from planner.memory.support import pytorch_reasons
from planner.models.architecture import Architecture
from planner.units import MIB
from planner.workload.parallel import Parallel
from planner.workload.software.settings import EngineSettings
from planner.workload.training import Training
from planner.workload.workload import Inference

Asked = TypeVar("Asked", Training, Inference)

_NCCL_SOURCE: Final = "NVIDIA/nccl#964: 544 MB for 2 cards, 688 MB for more, on A100 with NVLink"
_PAIR: Final = 544 * 10**6
_MORE: Final = 688 * 10**6
_FURTHER_CHANNELS: Final = 512 * MIB


class SoftwareMemory(ABC, Generic[Asked]):
    """What a program does to memory, whatever it does with a model.

    `split_note` says how it splits layers over cards that differ. `place_decides_formats` says that the format of a
    tensor depends on the layer that it is in.
    """

    split_note: str
    place_decides_formats: bool = False
    communicator_bytes: tuple[int, int] = (_PAIR, _MORE)
    communicator_source: str = _NCCL_SOURCE

    @abstractmethod
    def timeline(self, architecture: Architecture, workload: Asked, card_class: Hashable = None) -> PhaseSnapshots:
        """Return what is alive in each phase of `workload` (defaults filled in) on one card of `card_class`."""

    def card_class(self, _gpu: Gpu) -> Hashable:
        """Return what of a card the program's defaults depend on: for most programs on nothing."""
        return None

    def unsupported_reasons(self, workload: Asked, gpu: Gpu) -> tuple[str, ...]:
        """Return why `gpu` cannot run `workload`, empty if it can."""
        return pytorch_reasons(workload, gpu)

    def notes(self, _workload: Asked) -> Iterator[str]:
        """Yield what is to be said of the estimate."""
        yield from ()

    def vocabulary_multiple(self, _tensor: int) -> int:
        """Return what the rows of each of `tensor` cards that share the vocabulary are rounded up to a multiple of."""
        return 1

    @abstractmethod
    def split_layers(
        self, architecture: Architecture, workload: Asked, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the layers of each pipeline stage, unless they are named.

        `free_bytes` are those of the cards where they are known and differ.
        """

    @abstractmethod
    def groups(self, parallel: Parallel) -> dict[str, int]:
        """Return the groups of cards that a card exchanges data in, with their sizes."""

    def communicators(self, workload: Asked) -> tuple[Part, ...]:
        """Return what the communicators of `workload` hold on each card, outside the framework's allocator.

        **Formula**: 544 MB for each group of two cards, 688 MB for each larger one, unless the program was seen to hold
        something else.

        **Assumes** links and channels as on an A100 server: other cards hold from nothing to 512 MiB more for each
        group.
        """
        of_two, of_more = self.communicator_bytes
        found = []
        for name, size in self.groups(workload.parallel).items():
            if size > 1:
                held, title = (of_two if size == 2 else of_more), f"NCCL communicator, {size:,} cards ({name})"
                found.append(Part(name=title, bytes=held, formula=f"{held:,}", source=self.communicator_source))
        return tuple(found)

    def most_communicator_bytes(self, parts: tuple[Part, ...]) -> int:
        """Return the most that the communicators `parts` may come to."""
        return sum([part.bytes + _FURTHER_CHANNELS for part in parts])


class ServingMemory(SoftwareMemory[Inference]):
    """What a program that answers requests does to memory."""

    def groups(self, parallel: Parallel) -> dict[str, int]:
        """Return the groups of cards that share a network; replicas that answer know nothing of each other."""
        return {"tensor": parallel.tensor, "expert": parallel.expert, "context": parallel.context}

    def settings_in_use(self, _architecture: Architecture, workload: Inference, _gpu: Gpu | None) -> EngineSettings:
        """Return the settings of `workload` (defaults filled in) with the program's own where it leaves them open."""
        return workload.engine

    def with_outputs_back(self, first: PhaseSnapshots, _last: PhaseSnapshots, _workload: Inference) -> PhaseSnapshots:
        """Return what is alive in the first stage of a pipeline once the last one has put something out."""
        return first
