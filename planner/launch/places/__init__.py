"""The places that programs run in."""

from typing import Final

from planner.launch.places.compose import COMPOSE
from planner.launch.places.dstack import DSTACK
from planner.launch.places.kubernetes import KUBERNETES
from planner.launch.places.ray import RAY
from planner.launch.places.shell import SHELL
from planner.launch.places.skypilot import SKYPILOT
from planner.launch.places.slurm import SLURM

PLACES: Final = {place.name: place for place in (SHELL, COMPOSE, SLURM, KUBERNETES, SKYPILOT, DSTACK, RAY)}
"""Places by name, the plain shell first."""
