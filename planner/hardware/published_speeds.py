"""Speeds of accelerators in published benchmarks, with the settings that their sources state."""

from collections.abc import Iterable
from typing import Final, Literal

from pydantic import Field

from planner.base import Spec

SpeedTask = Literal[
    "decode", "prefill", "many-requests", "training", "fine-tuning", "image-inference", "image-training"
]
SpeedUnit = Literal["tokens/s", "samples/s", "images/s"]

TASK_TITLES: Final[dict[SpeedTask, str]] = {
    "decode": "decoding for one user",
    "prefill": "reading prompts",
    "many-requests": "many requests at once",
    "training": "training",
    "fine-tuning": "fine-tuning",
    "image-inference": "images, inference",
    "image-training": "images, training",
}
"""Every benchmark task in display order, with its title."""
_SECONDS_PER_HOUR: Final = 3_600.0
_MILLION: Final = 1e6


class PublishedSpeed(Spec):
    """One published benchmark result; settings that the source does not state are None."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    gpu: str = Field(min_length=1, description="catalog id of the GPU")
    gpu_count: int = Field(ge=1)
    task: SpeedTask
    model: str = Field(min_length=1, description="name of the model in the source")
    precision: str | None = None
    batch: str | None = None
    length: str | None = Field(default=None, description="length of the sequence or prompt, or size of the image")
    output_length: str | None = None
    parallelism: str | None = None
    framework: str = Field(min_length=1)
    value_per_second: float = Field(gt=0, allow_inf_nan=False)
    unit: SpeedUnit
    per_gpu: bool = Field(default=False, description="whether the value is per GPU, not the total")
    source: str = Field(min_length=3)
    as_of: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="day on which the source was read")

    @property
    def total_per_second(self) -> float:
        """Return the measured speed of all cards together, in `unit`."""
        return self.value_per_second * self.gpu_count if self.per_gpu else self.value_per_second

    @property
    def settings(self) -> str:
        """Return the stated settings of the run as text: `BF16, batch 1, length 512, vLLM 0.13.0`."""
        named = (("batch", self.batch), ("length", self.length), ("output", self.output_length))
        parts = (self.precision, *(f"{name} {value}" for name, value in named if value), self.parallelism)
        return ", ".join(part for part in (*parts, self.framework) if part)

    def usd_per_million(self, usd_per_gpu_hour: float) -> float:
        """Return the cost in USD per million tokens, samples or images, at `usd_per_gpu_hour` per card and hour.

        **Formula** price × cards ÷ (speed × 3600) × 10⁶. **Assumes** that the cards run at this speed all the time.
        """
        return usd_per_gpu_hour * self.gpu_count / (self.total_per_second * _SECONDS_PER_HOUR) * _MILLION


def speeds_of(gpu_id: str, speeds: Iterable[PublishedSpeed]) -> tuple[PublishedSpeed, ...]:
    """Return the published speeds of the GPU `gpu_id`, sorted by number of GPUs and task."""
    tasks = list(TASK_TITLES)
    found = (speed for speed in speeds if speed.gpu == gpu_id)
    return tuple(sorted(found, key=lambda speed: (speed.gpu_count, tasks.index(speed.task))))
