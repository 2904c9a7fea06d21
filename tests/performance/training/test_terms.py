"""Terms of a training step's time, and the resource that limits the step."""

from typing import Any

import pytest
from small_models import llama
from timed_steps import Timed

from planner.performance.setting import TimeSetting
from planner.workload.parallel import Parallel

PLAIN = TimeSetting()


def test_the_offload_term_sums_the_link_and_the_offloaded_optimizer(timed: Timed) -> None:
    found = timed(llama(), ("h100-sxm5-80gb", 8), parallel=Parallel(zero=3, offload="parameters"))
    offload = found.term("offload")
    assert found.term("optimizer") is None
    assert offload is not None
    symbols = {symbol.name: float(symbol.value) for symbol in offload.symbols}
    over_the_link, beside = symbols["C"] / symbols["P"], symbols["c"] * symbols["O"] / symbols["D"]
    assert offload.seconds == pytest.approx(over_the_link + beside)
    assert symbols["c"] == 8


@pytest.mark.parametrize(
    ("bound", "cards_", "fields"),
    [
        ("memory bandwidth", ("h100-sxm5-80gb", 1), {"attention": "eager", "sequence_length": 16_384}),
        ("communication", ("rtx-4090", 8), {"sequence_length": 128}),
        ("host", ("a100-sxm4-80gb", 1), {"sequence_length": 16, "method": "lora"}),
        ("input", ("h100-sxm5-80gb", 1), {"setting": TimeSetting(input_samples_per_second=0.1)}),
    ],
)
def test_the_resource_that_takes_most_of_the_time_is_the_bound(
    bound: str, cards_: tuple[str, int], fields: dict[str, Any], timed: Timed
) -> None:
    assert timed(llama(), cards_, **fields).bound == bound
