"""Presets of traffic: well-known services with their lengths and targets, and their sources."""

from functools import cache
from pathlib import Path

from pydantic import Field

from planner.base import Spec
from planner.paths import catalog_dir
from planner.records import read_records
from planner.serving.targets import Targets
from planner.serving.traffic import Traffic


class TrafficPreset(Spec):
    """The traffic of a kind of service, at one request per second, and targets that suit it."""

    id: str = Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")
    title: str = Field(min_length=3)
    summary: str = Field(min_length=10, description="one sentence about the service")
    traffic: Traffic
    targets: Targets
    sources: tuple[str, ...] = Field(min_length=1, description="source of each number")
    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="day on which the sources were read")
    notes: tuple[str, ...] = Field(default=(), description="what was assumed")


@cache
def load_traffic_presets(folder: Path | None = None) -> tuple[TrafficPreset, ...]:
    """Return the presets in `folder`, by default the bundled ones.

    Raises:
        CatalogError: If a record does not validate; it names the file, the record and the field.
    """
    return read_records(folder or catalog_dir() / "traffic", TrafficPreset)
