"""Corrections that apply to a plan."""

import pytest
from log_texts import TRAIN, corrected, smi, summary

from planner.plan.logs.applied_corrections import applied_corrections, correction_key
from planner.units import MIB


@pytest.mark.parametrize(("allocated", "reserved"), [(23501, 23900), (25100, 25300)])
def test_a_corrected_estimate_is_what_the_log_shows(catalog, allocated, reserved):
    made, evaluation = corrected(TRAIN, catalog, summary(allocated, reserved) + "\n" + smi(26000, 25900))
    assert evaluation.memory.allocated_bytes == allocated * MIB
    assert evaluation.memory.reserved_bytes == reserved * MIB
    assert evaluation.memory.total_bytes == 25900 * MIB
    assert applied_corrections(evaluation) == (made,)
    assert correction_key(evaluation) == made.key
    assert made.log == "nvidia-smi, torch-summary"
