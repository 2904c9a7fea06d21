"""A plan with what a log measured."""

import json
from datetime import date

import pytest
from log_texts import RUN, TRAIN, summary

from planner.errors import SpecError
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import with_measurements
from planner.plan.logs.files import pasted_log
from planner.units import MIB


def kept(plan, catalog, compared, text):
    log = pasted_log(text, date(2026, 11, 24), "run.log")
    return with_measurements(plan, catalog, compared(text, plan), log)


def test_speed_and_memory_are_kept_and_change_the_estimate(catalog, compared):
    own = evaluate(TRAIN, catalog).memory
    text = summary(own.allocated_bytes // MIB + 300, own.reserved_bytes // MIB + 300) + '\n{"seconds_per_step": 0.5}'
    plan = kept(TRAIN, catalog, compared, text)
    assert plan.timing.measured.note == "measured in run.log of 2026-11-24"
    found = evaluate(plan, catalog)
    assert found.time.seconds == pytest.approx(0.5)
    assert found.time.basis == "measured"
    assert found.memory.allocated_bytes == pytest.approx(own.allocated_bytes + 300 * MIB, abs=2 * MIB)
    # What was kept does not change what the next log is compared with.
    assert compared(text, plan).figures[0].predicted == evaluate(TRAIN, catalog).time.seconds


def test_memory_alone_is_kept(catalog, compared):
    own = evaluate(TRAIN, catalog).memory
    text = summary(own.allocated_bytes // MIB + 300, own.reserved_bytes // MIB + 300)
    plan = kept(TRAIN, catalog, compared, text)
    assert (plan.timing.measured, len(plan.corrections)) == (None, 1)


def test_a_log_of_another_program_or_of_other_conditions_is_not_kept(catalog, compared):
    test = {"n_prompt": 0, "n_gen": 128, "n_depth": 32_640, "avg_ts": 30.0, "stddev_ts": 0.1}
    with pytest.raises(SpecError, match="measured nothing that the plan can keep"):
        kept(RUN, catalog, compared, json.dumps(test))
    llama = RUN.evolve(workload=RUN.workload.evolve(profile="llama.cpp", prompt_length=32_640, weights="Q4_K_M"))
    assert kept(llama, catalog, compared, json.dumps(test)).timing.measured.value == 30.0
