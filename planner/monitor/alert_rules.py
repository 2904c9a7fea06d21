"""Thresholds of alerts, in a module of their own so that reading settings does not load the alert detection."""

from pydantic import Field

from planner.base import Spec


class AlertRules(Spec):
    """Thresholds at which the monitor raises alerts; a threshold of None raises no alert.

    The temperature is in °C, memory use a fraction of the card's memory; an alert is raised once the value has stayed
    at or above the threshold for `hold_seconds`.
    """

    is_on: bool = False
    temperature_celsius: float | None = Field(default=90.0, ge=0, le=150)
    memory_fraction: float | None = Field(default=0.95, gt=0, le=1)
    idle_minutes: float | None = Field(default=None, gt=0, le=10_000)
    lost: bool = True
    process_ended: bool = False
    hold_seconds: float = Field(default=10.0, ge=0, le=3600)
