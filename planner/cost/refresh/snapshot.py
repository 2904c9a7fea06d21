"""What one refresh brought: the offers of each provider, with where they came from and when."""

from typing import Final, Literal

from pydantic import Field

from planner.base import Spec
from planner.cost.offer import Offer

SCHEMA_VERSION: Final = 1


class Part(Spec):
    """The offers of one provider as one source published them."""

    provider: str = Field(min_length=1)
    source: str = Field(min_length=3, description="the source's name")
    url: str
    fetched_at: str = Field(description="ISO 8601, UTC")
    bytes: int = Field(ge=0, description="of the file that was fetched")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    offers: tuple[Offer, ...] = Field(min_length=1)


class Snapshot(Spec):
    """The fetched offers of all providers; each keeps its own date when another could not be fetched again."""

    schema_version: Literal[1] = SCHEMA_VERSION
    taken_at: str = Field(pattern=r"^\d{8}T\d{6}Z$", description="UTC")
    parts: tuple[Part, ...] = ()

    def part(self, provider: str) -> Part | None:
        """Return what is there of a provider."""
        return next((part for part in self.parts if part.provider == provider), None)

    def with_parts(self, parts: tuple[Part, ...], taken_at: str) -> "Snapshot":
        """Return this snapshot with the providers of `parts` replaced, or added."""
        fresh = {part.provider for part in parts}
        kept = tuple(part for part in self.parts if part.provider not in fresh)
        return Snapshot(taken_at=taken_at, parts=tuple(sorted((*kept, *parts), key=lambda part: part.provider)))
