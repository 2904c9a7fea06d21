"""The memory fraction of an engine that has room for the sequences of a plan."""

import math

from planner.errors import SpecError
from planner.launch.settings import LaunchFacts
from planner.units import GIB
from planner.workload.software.registry import SOFTWARE, serving_support
from planner.workload.workload import Inference

_STEP = 1_000
"""A fraction that has to be larger than the program's own is rounded up to 1/1000."""


def cache_fraction(facts: LaunchFacts, static_bytes: int) -> float | None:
    """Return the program's memory fraction, raised if its cache would be too small; None without a cache.

    `static_bytes` is what the fraction has to hold besides the cache.

    **Formula**: f · (static + cache of all sequences) / (static + cache that the estimate's fraction f leaves).

    Raises:
        SpecError: If the plan sets a fraction that is too small, or none is large enough.
    """
    pool, workload = facts.evaluation.memory.cache_pool, facts.workload
    assert isinstance(workload, Inference)
    own, name = serving_support(workload.profile), workload.profile or ""
    if pool is None:
        return None
    limit = getattr(workload.engine, own.sequence_limit) or workload.batch
    sequences = min(workload.batch, limit)
    if pool.sequences >= sequences:
        return pool.utilization
    each = pool.bytes / pool.sequences if pool.sequences else math.inf
    needed = pool.utilization * (static_bytes + each * sequences) / (static_bytes + pool.bytes or 1)
    planned = facts.evaluation.plan.workload
    assert isinstance(planned, Inference)
    is_set = own.memory_fraction in planned.engine.explicit_names()
    if is_set or needed >= 1:
        text = f"the cache of {sequences:,} sequences needs a fraction of {needed:.3g} in {SOFTWARE[name].title}"
        held = f"it has {pool.bytes / GIB:.2f} GiB at {pool.utilization:g}"
        raise SpecError(
            f"engine.{own.memory_fraction}", f"{text}, but {held}", "Take fewer sequences or a shorter context."
        )
    return math.ceil(needed * _STEP) / _STEP


def settled_sequences(workload: Inference) -> Inference:
    """Return `workload` with as many concurrent sequences as it has requests, unless it sets their number."""
    own = serving_support(workload.profile)
    engine = workload.engine if isinstance(workload.engine, own.settings) else own.settings()
    if getattr(engine, own.sequence_limit) is not None:
        return workload
    return workload.evolve(engine=engine.evolve(**{own.sequence_limit: workload.batch}))
