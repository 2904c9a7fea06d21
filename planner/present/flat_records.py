"""The records of a view as flat rows for files: exact values in base units, each with its source."""

from collections.abc import Mapping, Sequence
from typing import Final

from planner.hardware.gpu import Provenance
from planner.present.card_records import accelerator_fields, derived_fields, price_fields
from planner.present.gpus import DTYPE_TITLES, GpuRow
from planner.present.systems import SystemRow

_NESTED: Final = {"rates", "provenance", "figure_notes", "notes", "aliases"}


def gpu_fields(row: GpuRow) -> dict[str, object]:
    """Return a card's figures by their names, rates as `bf16_ops_per_s`, with their sources.

    Prices stand by kind; the plan's verdict and job are none where there is no plan.
    """
    gpu = row.gpu
    rates = {dtype: gpu.rate(dtype) for dtype in DTYPE_TITLES}
    other = {note.field: note.provenance for note in gpu.figure_notes}
    other |= {f"{dtype}_ops_per_s": rate.provenance for dtype, rate in rates.items() if rate and rate.provenance}
    return {
        **gpu.model_dump(exclude=_NESTED),
        **{f"{dtype}_ops_per_s": rate.ops_per_s if rate else None for dtype, rate in rates.items()},
        **price_fields(row.prices),
        **derived_fields(gpu),
        "plan_verdict": row.verdict,
        "plan_free_bytes": row.free_bytes,
        "plan_job_hours": row.job.hours if row.job else None,
        "plan_job_cost_usd": row.job.usd if row.job else None,
        "plan_job_cost_source": _one_line(row.job.cost_origin) if row.job else None,
        **_sources(gpu.provenance, other, gpu.notes),
    }


def system_fields(row: SystemRow) -> dict[str, object]:
    """Return a system's figures by their names, those of its accelerators together, the plan's verdict, and sources."""
    system = row.system
    other = {note.field: note.provenance for note in system.figure_notes}
    return {
        **system.model_dump(exclude=_NESTED),
        **accelerator_fields(row.gpu, system.gpu_count),
        "plan_verdict": row.verdict,
        "plan_free_bytes_each": row.free_bytes,
        "plan_reason": row.reason,
        **_sources(system.provenance, other, system.notes),
    }


def _sources(main: Provenance, other: Mapping[str, Provenance], notes: Sequence[str]) -> dict[str, object]:
    return {
        "source": main.source,
        "basis": main.basis,
        "certainty": main.certainty,
        "as_of": main.as_of,
        "other_sources": "; ".join(f"{field}: {_origin(provenance)}" for field, provenance in other.items()),
        "notes": "; ".join(notes),
    }


def _one_line(text: str) -> str:
    return "; ".join(text.splitlines())


def _origin(provenance: Provenance) -> str:
    parts = (provenance.basis, provenance.formula, provenance.source, provenance.certainty, provenance.as_of)
    return ", ".join(part for part in parts if part)
