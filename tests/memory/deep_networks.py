"""A network of eight layers, and cards that share it, for tests."""

from small_models import bundled

from planner.memory.parallel.placing import CardGroup
from planner.workload.parallel import Parallel
from planner.workload.workload import Training


def training(**parallel):
    return Training(sequence_length=256, parallel=Parallel(**parallel))


def cards(*named: tuple[str, int]) -> tuple[CardGroup, ...]:
    hardware = bundled().hardware
    found = []
    for name, number in named:
        gpu = hardware.gpu(name)
        found.append(CardGroup(gpu, hardware.usable_memory(gpu), number))
    return tuple(found)
