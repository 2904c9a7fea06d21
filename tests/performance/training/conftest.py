"""Cards of the catalog, and the estimated time of a training workload on some of them."""

from typing import Any

import pytest
from timed_steps import PLAIN, Timed

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.estimate import GpuCounts, estimate_time
from planner.performance.result import TimeResult
from planner.performance.setting import TimeSetting
from planner.plan.catalog import Catalog
from planner.workload.defaults import with_defaults
from planner.workload.training import Training


@pytest.fixture(scope="session")
def cards(catalog: Catalog) -> dict[str, Gpu]:
    return {gpu.id: gpu for gpu in catalog.hardware.gpus}


@pytest.fixture(scope="session")
def h100(cards: dict[str, Gpu]) -> Gpu:
    return cards["h100-sxm5-80gb"]


@pytest.fixture(scope="session")
def timed(cards: dict[str, Gpu]) -> Timed:
    def estimate(
        architecture: Architecture,
        *names: tuple[str, int],
        setting: TimeSetting = PLAIN,
        measured_on: Gpu | None = None,
        **fields: Any,
    ) -> TimeResult:
        chosen: GpuCounts = tuple((cards[name], number) for name, number in names)
        count = sum(number for _, number in names)
        workload = with_defaults(Training(**{"compute": "bf16", "sequence_length": 2048} | fields), architecture, count)
        return estimate_time(architecture, workload, chosen, setting, measured_on)

    return estimate
