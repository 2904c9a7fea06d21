"""The hardware catalog: accelerators and systems, loaded from JSON files and looked up by id."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.hardware.system import EquippedSystem, System
from planner.hardware.usable import MemoryLosses, UsableMemory, measured_memory_losses, usable_memory
from planner.records import read_records

_Record = TypeVar("_Record", Gpu, System)


@dataclass(frozen=True, eq=False)
class HardwareCatalog:
    """All accelerators and systems. Catalogs compare by identity, so that a catalog can be a cache key."""

    gpus: tuple[Gpu, ...]
    systems: tuple[System, ...] = ()

    def gpu(self, gpu_id: str) -> Gpu:
        """Return the accelerator with exactly this id; `resolve_gpu` accepts other spellings.

        Raises:
            SpecError: If there is none.
        """
        return _find_record(self._gpus_by_id, "gpu", gpu_id)

    def system(self, system_id: str) -> System:
        """Return the system with exactly this id.

        Raises:
            SpecError: If there is none.
        """
        return _find_record(self._systems_by_id, "system", system_id)

    def usable_memory(self, gpu: Gpu) -> UsableMemory | None:
        """Return the usable memory of one device of `gpu`, or None if it can be neither looked up nor estimated."""
        if gpu not in self._usable_memory_by_gpu:
            self._usable_memory_by_gpu[gpu] = usable_memory(gpu, self.memory_losses)
        return self._usable_memory_by_gpu[gpu]

    def machine(self, system: System) -> EquippedSystem:
        """Return `system` with its accelerator's record, or with None if it names no accelerator of the catalog.

        Raises:
            SpecError: If the named accelerator is not in the catalog.
        """
        return EquippedSystem(system, self.gpu(system.gpu_id) if system.gpu_id else None)

    @cached_property
    def machines(self) -> tuple[EquippedSystem, ...]:
        """Return every system with its accelerator, the records that a `SystemQuery` selects from."""
        return tuple(map(self.machine, self.systems))

    @cached_property
    def memory_losses(self) -> MemoryLosses:
        """Return the memory losses of measured cards by family, the basis of estimates for unmeasured cards."""
        return measured_memory_losses(self.gpus)

    @cached_property
    def _usable_memory_by_gpu(self) -> dict[Gpu, UsableMemory | None]:
        return {}

    @cached_property
    def _gpus_by_id(self) -> dict[str, Gpu]:
        return {gpu.id: gpu for gpu in self.gpus}

    @cached_property
    def _systems_by_id(self) -> dict[str, System]:
        return {system.id: system for system in self.systems}


def load_hardware(folder: Path) -> HardwareCatalog:
    """Read every JSON file below `folder`/gpus and `folder`/systems, each a list of records.

    Raises:
        CatalogError: If a file cannot be read or a record does not validate or repeats an id; it names the file,
            the record and the field.
    """
    return HardwareCatalog(read_records(folder / "gpus", Gpu), read_records(folder / "systems", System))


def _find_record(records: Mapping[str, _Record], field: str, name: str) -> _Record:
    try:
        return records[name]
    except KeyError:
        hint = (
            "The window's Catalog tab, or `gpu-planner gpus` in a shell, lists all accelerators; in Python, "
            "`planner.resolve_gpu` finds the id of a name."
        )
        raise SpecError(field, f"there is no record with the id {name!r}", hint) from None
