"""Scheduling of Hugging Face Transformers, which answers one batch after the other."""

from typing import Final

from planner.serving.scheduling import Scheduler

SCHEDULER: Final = Scheduler()
