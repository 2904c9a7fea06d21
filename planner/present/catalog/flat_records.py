"""The records of a view as flat rows for files: exact values in base units, each with its source."""

from collections.abc import Mapping, Sequence
from typing import Final

from planner.base import Spec
from planner.hardware.gpu import Gpu, Provenance
from planner.hardware.system import System
from planner.present.catalog.gpu_columns import DTYPE_TITLES, GpuRow, JobWords
from planner.present.catalog.records import (
    DERIVED_NAMES,
    accelerator_fields,
    derived_fields,
    each_fields,
    price_fields,
    rent_fields,
)
from planner.present.catalog.system_row import SystemRow

_NESTED: Final = {"rates", "provenance", "figure_notes", "notes", "aliases"}
_SOURCES: Final = ("source", "basis", "certainty", "as_of", "other_sources", "notes")
_GPU_PLAN: Final = (
    *("plan_verdict", "plan_free_bytes"),
    *("plan_job_hours", "plan_job_cost_usd", "plan_job_cost_source"),
)
_SYSTEM_PLAN: Final = ("plan_verdict", "plan_free_bytes_each", "plan_reason")


def _own_fields(kind: type[Spec]) -> tuple[str, ...]:
    return tuple(name for name in kind.model_fields if name not in _NESTED)


GPU_FIELDS: Final = (
    *_own_fields(Gpu),
    *(f"{dtype}_ops_per_s" for dtype in DTYPE_TITLES),
    *price_fields(None),
    *DERIVED_NAMES.values(),
    *_GPU_PLAN,
    *_SOURCES,
)
"""The names of what `gpu_fields` returns, for a header though there is no card."""
SYSTEM_FIELDS: Final = (
    *_own_fields(System),
    *each_fields(None),
    *accelerator_fields(None, None),
    *rent_fields(None),
    *_SYSTEM_PLAN,
    *_SOURCES,
)
"""The names of what `system_fields` returns."""


def gpu_fields(row: GpuRow) -> dict[str, object]:
    """Return a card's figures by their names, rates as `bf16_ops_per_s`, with their sources.

    Prices stand by kind; the plan's verdict and job are none where there is no plan.
    """
    gpu = row.gpu
    job = row.job
    plan = (row.verdict, row.free_bytes, *(_job(job) if job else (None, None, None)))
    rates = {dtype: gpu.rate(dtype) for dtype in DTYPE_TITLES}
    other = {note.field: note.provenance for note in gpu.figure_notes}
    other |= {f"{dtype}_ops_per_s": rate.provenance for dtype, rate in rates.items() if rate and rate.provenance}
    return {
        **gpu.model_dump(exclude=_NESTED),
        **{f"{dtype}_ops_per_s": rate.ops_per_s if rate else None for dtype, rate in rates.items()},
        **price_fields(row.prices),
        **derived_fields(gpu),
        **dict(zip(_GPU_PLAN, plan, strict=True)),
        **_sources(gpu.provenance, other, gpu.notes),
    }


def system_fields(row: SystemRow) -> dict[str, object]:
    """Return a system's figures by their names, those of its accelerators, its rent, the plan's verdict, sources."""
    system = row.system
    other = {note.field: note.provenance for note in system.figure_notes}
    return {
        **system.model_dump(exclude=_NESTED),
        **each_fields(row),
        **accelerator_fields(row.gpu, system.gpu_count),
        **rent_fields(row.on_demand),
        **dict(zip(_SYSTEM_PLAN, (row.verdict, row.free_bytes, row.reason), strict=True)),
        **_sources(system.provenance, other, system.notes),
    }


def _sources(main: Provenance, other: Mapping[str, Provenance], notes: Sequence[str]) -> dict[str, object]:
    others = "; ".join(f"{field}: {_origin(provenance)}" for field, provenance in other.items())
    texts = (main.source, main.basis, main.certainty, main.as_of, others, "; ".join(notes))
    return dict(zip(_SOURCES, texts, strict=True))


def _job(job: JobWords) -> tuple[float, float | None, str]:
    return job.hours, job.usd, "; ".join(job.cost_origin.splitlines())


def _origin(provenance: Provenance) -> str:
    parts = (provenance.basis, provenance.formula, provenance.source, provenance.certainty, provenance.as_of)
    return ", ".join(dict.fromkeys(part for part in parts if part))
