"""The places that programs run in."""

from typing import Final

from planner.launch.places.clouds import DSTACK, SKYPILOT
from planner.launch.places.containers import COMPOSE, KUBERNETES
from planner.launch.places.scripts import RAY, SHELL, SLURM

PLACES: Final = {place.name: place for place in (SHELL, COMPOSE, SLURM, KUBERNETES, SKYPILOT, DSTACK, RAY)}
"""Places by name, the plain shell first."""
