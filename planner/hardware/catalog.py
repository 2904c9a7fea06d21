"""The hardware catalog: accelerators and systems, loaded from JSON files and looked up by id."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.hardware.mig import MigTable, slice_card, sliced_card_id
from planner.hardware.system import EquippedSystem, System
from planner.hardware.usable import MemoryLosses, UsableMemory, measured_memory_losses, usable_memory
from planner.records import RecordFiles, records_mentioning
from planner.validation import close_names

_MIG_FOLDER: Final = "mig"
_SUGGESTIONS: Final = 5


@dataclass(frozen=True, eq=False)
class HardwareCatalog:
    """All accelerators and systems. Catalogs compare by identity, so that a catalog can be a cache key.

    Slices of cards (MIG) are not among `gpus`: `gpu` and `slices` derive them.
    """

    gpus: Sequence[Gpu]
    systems: Sequence[System] = ()
    mig: Sequence[MigTable] = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.gpus)} GPUs, {len(self.systems)} systems>"

    def gpu(self, gpu_id: str) -> Gpu:
        """Return the accelerator, or the slice of one, with exactly this id; `resolve_gpu` accepts other spellings.

        Raises:
            SpecError: If there is none.
        """
        found = self._gpus_by_id
        if gpu_id not in found:
            found.update((gpu.id, gpu) for gpu in records_mentioning(self.gpus, gpu_id))
        if gpu_id not in found and (whole := sliced_card_id(gpu_id)) is not None:
            cards = (gpu for gpu in records_mentioning(self.gpus, whole) if gpu.id == whole)
            found.update((each.id, each) for card in cards for each in self.slices(card))
        if gpu_id not in found:
            raise _no_record("gpu", gpu_id, (gpu.id for gpu in self.gpus))
        return found[gpu_id]

    def mig_table(self, gpu: Gpu) -> MigTable | None:
        """Return the slices that `gpu` can be divided into, or None if it cannot be, or they are not known."""
        return next((table for table in self.mig if gpu.id in table.gpus), None)

    def slices(self, gpu: Gpu) -> tuple[Gpu, ...]:
        """Return every kind of slice (MIG) of `gpu` as a card, the smallest first."""
        if gpu not in self._slices_by_gpu:
            table = self.mig_table(gpu)
            found = () if table is None else tuple(slice_card(gpu, table, each) for each in table.profiles)
            self._slices_by_gpu[gpu] = found
        return self._slices_by_gpu[gpu]

    def system(self, system_id: str) -> System:
        """Return the system with exactly this id.

        Raises:
            SpecError: If there is none.
        """
        found = next((each for each in records_mentioning(self.systems, system_id) if each.id == system_id), None)
        if found is None:
            raise _no_record("system", system_id, (system.id for system in self.systems))
        return found

    def usable_memory(self, gpu: Gpu) -> UsableMemory | None:
        """Return the usable memory of one device of `gpu`, or None if it can be neither looked up nor estimated."""
        if gpu not in self._usable_memory_by_gpu:
            # A measured card needs no other, and so not the whole catalog.
            losses = self.memory_losses if gpu.usable_memory_bytes is None else MemoryLosses({}, {})
            self._usable_memory_by_gpu[gpu] = usable_memory(gpu, losses)
        return self._usable_memory_by_gpu[gpu]

    def machine(self, system: System) -> EquippedSystem:
        """Return `system` with its accelerator's record, or with None if it names no accelerator of the catalog.

        Raises:
            SpecError: If the named accelerator is not in the catalog.
        """
        return EquippedSystem(system, self.gpu(system.gpu_id) if system.gpu_id else None)

    @property
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
    def _slices_by_gpu(self) -> dict[Gpu, tuple[Gpu, ...]]:
        return {}

    @cached_property
    def _gpus_by_id(self) -> dict[str, Gpu]:
        """Return the accelerators that were looked up, and those of the same files, by id."""
        return {}


def load_hardware(folder: Path, *, on_demand: bool = False) -> HardwareCatalog:
    """Read every JSON file below `folder`/gpus, `folder`/systems and `folder`/mig, each a list of records.

    The last may be missing. With `on_demand`, a file is parsed when one of its records is asked for.

    Raises:
        CatalogError: If a file cannot be read or a record does not validate or repeats an id; it names the file,
            the record and the field. With `on_demand`, whatever parses the file raises it.
    """
    gpus, systems = RecordFiles(folder / "gpus", Gpu), RecordFiles(folder / "systems", System)
    divided = folder / _MIG_FOLDER
    tables = RecordFiles(divided, MigTable) if divided.is_dir() else ()
    return HardwareCatalog(gpus, systems, tables) if on_demand else HardwareCatalog(gpus[:], systems[:], tables[:])


def _no_record(field: str, name: str, ids: Iterable[str]) -> SpecError:
    asked, known = name.casefold().replace(" ", "-"), tuple(ids)
    close = [each for each in known if asked in each][:_SUGGESTIONS] or close_names(asked, known)
    hint = (
        "The window's Catalog tab, or `gpu-planner gpus` in a shell, lists all accelerators; in Python, "
        "`planner.resolve_gpu` finds the id of a name."
    )
    meant = f"Close ids: {', '.join(close)}. " if close else ""
    return SpecError(field, f"no {field.replace('gpu', 'GPU')} has the id {name!r}", f"{meant}{hint}")
