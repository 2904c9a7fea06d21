"""How a workload is spread over cards."""

from pydantic import Field

from planner.base import Spec


class Parallel(Spec):
    """How the work is spread over cards."""

    data: int | None = Field(default=None, ge=1, le=100_000, description="replicas; by default the number of cards")
