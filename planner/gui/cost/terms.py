"""One field of the plan's terms of money read or changed by its path, such as `buy.pue`."""

from pydantic import ValidationError

from planner.base import Spec
from planner.cost.job import DailyHours, Job, Run, Service
from planner.cost.terms import CostTerms
from planner.errors import SpecError

USUAL_JOBS: dict[str, Job] = {
    "run": Run(amount=50_000_000, unit="tokens"),
    "service": Service(requests_per_day=10_000),
    "daily-hours": DailyHours(hours_per_day=8.0),
}
"""The job that each kind starts with."""


def value_of(terms: CostTerms, path: str) -> object:
    """Return the field at `path`; none where the job is of a kind that has no such field."""
    held: object = terms
    for name in path.split("."):
        held = getattr(held, name, None)
    return held


def usual_value(terms: CostTerms, path: str) -> object:
    """Return what the field at `path` is unless somebody says otherwise, for a job of the same kind."""
    return value_of(CostTerms(job=USUAL_JOBS[terms.job.kind]), path)


def changed(terms: CostTerms, path: str, value: object) -> CostTerms:
    """Return `terms` with another value at `path`.

    Raises:
        SpecError: If the value is not allowed.
    """
    outer, _, inner = path.rpartition(".")
    try:
        if not outer:
            return terms.evolve(**{inner: value})
        part = getattr(terms, outer)
        assert isinstance(part, Spec)  # job, rent and buy are the only parts
        return terms.evolve(**{outer: part.evolve(**{inner: value})})
    except ValidationError as error:
        raise SpecError.from_validation(error, "cost") from error
