"""The records of optimizers."""

from typing import get_args

from planner.workload.optimizers import (
    OPTIMIZERS,
    Optimizer,
    optimizer_library,
    optimizer_step_titles,
    optimizer_titles,
)


def test_every_optimizer_has_a_record_and_a_capitalized_title():
    assert set(OPTIMIZERS) == set(get_args(Optimizer))
    titles = optimizer_titles()
    assert set(titles) == set(OPTIMIZERS)
    assert all(title[0].isupper() for title in titles.values())
    assert len(set(titles.values())) == len(titles)


def test_titles_are_grouped_by_library():
    libraries = [OPTIMIZERS[name].library for name in optimizer_titles()]
    assert len(list(dict.fromkeys(libraries))) == sum(
        one != other for one, other in zip(libraries, ["", *libraries], strict=False)
    )
    assert optimizer_library("adamw") == "PyTorch"
    assert optimizer_library("lion") == "bitsandbytes"


def test_steps_that_are_not_fused_state_their_temporary_memory():
    for kind in OPTIMIZERS.values():
        assert set(kind.steps) <= set(optimizer_step_titles())
        if kind.states and "foreach" in kind.steps and kind.formula not in ("P × w",):
            assert kind.foreach is not None
