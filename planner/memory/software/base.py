"""Interface of a program's memory behavior, with PyTorch's behavior as the default.

Each program's module overrides the methods in which it differs.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

from planner.hardware.gpu import Gpu
from planner.memory.chance import KNOWN_VERSION, Spread
from planner.memory.phases import PagePool, PhaseSnapshots
from planner.memory.result import TermPart
from planner.memory.support import pytorch_reasons
from planner.models.architecture import Architecture
from planner.units import MIB
from planner.workload.parallel import Parallel
from planner.workload.software.software import EngineSettings
from planner.workload.training import Training
from planner.workload.workload import Inference

WorkloadT = TypeVar("WorkloadT", Training, Inference)

_NCCL_SOURCE: Final = "NVIDIA/nccl#964: 544 MB for 2 cards, 688 MB for more, on A100 with NVLink"
_PAIR: Final = 544 * 10**6
_MORE: Final = 688 * 10**6
_FURTHER_CHANNELS: Final = 512 * MIB


class SoftwareMemory(ABC, Generic[WorkloadT]):
    """Memory behavior of a program, in training or serving.

    `split_note` explains how it splits layers over unequal cards. `place_decides_formats` means that the format of a
    tensor depends on its layer, `head_on_first_stage` that the first stage of a pipeline computes the logits, and
    `divides_vocabulary` that tensor-parallel cards share the rows of embedding and head. `spread` is that of
    measurements of it, whatever its version.
    """

    split_note: str
    place_decides_formats: bool = False
    head_on_first_stage: bool = False
    divides_vocabulary: bool = True
    spread: Spread = KNOWN_VERSION
    communicator_bytes: tuple[int, int] = (_PAIR, _MORE)
    communicator_source: str = _NCCL_SOURCE

    @abstractmethod
    def timeline(self, architecture: Architecture, workload: WorkloadT, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of `workload` (defaults filled in) on a card of `card_class`."""

    def card_class(self, _gpu: Gpu) -> Hashable:
        """Return the class of cards to which the program's defaults for `_gpu` belong, None if all have the same."""
        return None

    def unsupported_reasons(self, workload: WorkloadT, gpu: Gpu) -> tuple[str, ...]:
        """Return the reasons why `gpu` cannot run `workload`, empty if it can."""
        return pytorch_reasons(workload, gpu)

    def spread_of(self, _workload: WorkloadT) -> Spread:
        """Return the spread of measurements of the program with such a workload."""
        return self.spread

    def notes(self, _workload: WorkloadT) -> Iterator[str]:
        """Yield notes for users on what the program's estimate assumes."""
        yield from ()

    def vocabulary_multiple(self, _tensor: int) -> int:
        """Return the multiple to which `_tensor` tensor-parallel cards each round up their vocabulary rows."""
        return 1

    @abstractmethod
    def split_layers(
        self, architecture: Architecture, workload: WorkloadT, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of layers of each pipeline stage, by default for workloads that do not set the numbers.

        `free_bytes` is the free memory of each card, given if known and unequal.
        """

    @abstractmethod
    def communication_group_sizes(self, parallel: Parallel) -> dict[str, int]:
        """Return the number of cards in each communication group (NCCL communicator) of a card, by group name."""

    def communicators(self, workload: WorkloadT) -> tuple[TermPart, ...]:
        """Return each card's memory of NCCL communicators for `workload`, outside PyTorch's allocator.

        **Formula**: 544 MB for each group of two cards, 688 MB for each larger one, unless other values were measured
        for the program.

        **Assumes** links and channels as on an A100 server: other cards hold from nothing to 512 MiB more for each
        group.
        """
        of_two, of_more = self.communicator_bytes
        communicator_parts = []
        for name, size in self.communication_group_sizes(workload.parallel).items():
            if size > 1:
                held, title = (of_two if size == 2 else of_more), f"NCCL communicator, {size:,} cards ({name})"
                communicator_parts.append(
                    TermPart(name=title, bytes=held, formula=f"{held:,}", source=self.communicator_source)
                )
        return tuple(communicator_parts)

    def most_communicator_bytes(self, parts: tuple[TermPart, ...]) -> int:
        """Return the upper bound of the communicators' memory in bytes."""
        return sum([part.bytes + _FURTHER_CHANNELS for part in parts])


class ServingMemory(SoftwareMemory[Inference]):
    """Memory behavior of a program that serves requests."""

    def communication_group_sizes(self, parallel: Parallel) -> dict[str, int]:
        """Return the cards of each communication group within one replica; serving replicas do not communicate."""
        return {"tensor": parallel.tensor, "expert": parallel.expert, "context": parallel.context}

    def pool_beside(self, pool: PagePool, communicator_bytes: int) -> PagePool:
        """Return the cache pool of a card whose NCCL communicators take `communicator_bytes` before it is sized."""
        return pool.with_taken(communicator_bytes)

    def settings_in_use(self, _architecture: Architecture, workload: Inference, _gpu: Gpu | None) -> EngineSettings:
        """Return the engine settings of `workload` with unset ones replaced by the program's defaults."""
        return workload.engine

    def with_returned_outputs(
        self, first: PhaseSnapshots, _last: PhaseSnapshots, _workload: Inference
    ) -> PhaseSnapshots:
        """Return the timeline of the first pipeline stage with outputs that the last stage returns to it."""
        return first
