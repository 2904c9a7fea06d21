"""The processes on each card: what the driver lists, checked, beside what the operating system knows of them."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, get_args

from planner.monitor.host_processes import HostProcesses
from planner.monitor.metrics import BY_NAME, judged
from planner.monitor.nvml import Listed, Nvml, NvmlFailure
from planner.monitor.process import CardProcess, Kind
from planner.monitor.reading import Cause, Reading, missing
from planner.monitor.sampler.card import Card

_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_PER_CENT: Final = 100
# The largest number of a process on 64-bit Linux (PID_MAX_LIMIT, include/linux/threads.h); Windows stays far below.
_LARGEST_PID: Final = 2**22

_Use = Mapping[int, tuple[Reading, Reading]]


class CardProcesses:
    """Lists the processes of cards; `sees_same_pids` is False where the driver numbers them as another system does."""

    def __init__(self, nvml: Nvml, host: HostProcesses, *, sees_same_pids: bool) -> None:
        self._nvml, self._host, self._sees_same_pids = nvml, host, sees_same_pids
        self._last_use: dict[str, int] = {}

    def read(self, card: Card) -> list[CardProcess]:
        """Return the processes on one card, each once.

        Raises:
            CardLostError: If the card is gone.
            SessionOverError: If the whole session is over.
        """
        listed = {one.pid: (one, kind) for kind in reversed(_KINDS) for one in self._listed(card, kind)}
        if not listed:
            return []
        use, total = self._use(card), card.device.fact("memory_total_bytes")
        return [self._process(card.device.uuid, one, kind, use, total) for one, kind in listed.values()]

    def _listed(self, card: Card, kind: Kind) -> list[Listed]:
        try:
            return self._nvml.processes(card.device.uuid, card.handle, kind)
        except NvmlFailure as failure:
            card.check(failure)
            return []

    def _use(self, card: Card) -> _Use:
        """Return the shares of SMs and of memory traffic, each process's latest, since the last look."""
        uuid = card.device.uuid
        since = self._last_use.get(uuid, 0)
        samples: list[tuple[int, int, int, int]] = []
        with suppress(NvmlFailure):
            # Stale ones come along with some drivers.
            samples = [one for one in self._nvml.process_use(uuid, card.handle, since) if one[1] > since]
        self._last_use[uuid] = max([since, *(at for _, at, _, _ in samples)])
        names = ("utilization_fraction", "memory_controller_fraction")
        return {
            pid: (judged(BY_NAME[names[0]], sm / _PER_CENT), judged(BY_NAME[names[1]], memory / _PER_CENT))
            for pid, _, sm, memory in sorted(samples, key=lambda one: one[1])
        }

    def _process(self, uuid: str, one: Listed, kind: Kind, use: _Use, total: float | None) -> CardProcess:
        host = self._host.look_up(one.pid) if self._sees_same_pids else None
        hidden = missing(Cause.HIDDEN)
        memory = hidden if one.memory_bytes is None else judged(BY_NAME["memory_used_bytes"], one.memory_bytes, total)
        idle = missing(Cause.NOT_YET)
        sm, controller = use.get(one.pid, (idle, idle))
        is_reliable = 0 < one.pid <= _LARGEST_PID and not memory.is_implausible
        return CardProcess(one.pid, uuid, kind, memory, sm, controller, host, is_reliable)
