"""Spread of a training step's time: wider for waiting steps, routed experts and unmeasured families."""

import pytest
from small_models import MIXTRAL, llama, other
from timed_steps import Timed, spread

from planner.performance.setting import TimeSetting

PLAIN = TimeSetting()


def test_unmeasured_families_have_a_wider_spread(timed: Timed) -> None:
    known, alike, unknown = (
        timed(llama(), (name, 1), micro_batch=4) for name in ("rtx-4090", "rtx-4080", "radeon-rx-7900-xtx")
    )
    assert (known.basis, alike.basis, unknown.basis) == ("same card", "family", "unmeasured")
    assert spread(known) == pytest.approx(spread(alike), rel=0.2)
    assert spread(unknown) > 1.2 * spread(known)


def test_waiting_steps_and_experts_spread_more(timed: Timed) -> None:
    dense, waiting, experts = (
        spread(found)
        for found in (
            timed(llama(), ("h100-sxm5-80gb", 1), micro_batch=8),
            timed(llama(), ("rtx-4090", 8)),
            timed(other("mixtral", MIXTRAL), ("h100-sxm5-80gb", 1), micro_batch=8),
        )
    )
    assert 1.22 <= dense < 1.25
    assert dense < waiting
    assert dense < experts
