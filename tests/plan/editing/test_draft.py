"""A workload during an edit."""

import pytest

from planner.errors import SpecError
from planner.plan.editing.draft import WorkloadDraft
from planner.workload.training import Training
from planner.workload.workload import Inference

CONTEXT = {"count": 1, "model": None}


def test_edited_fields_keep_their_values_and_others_are_reported():
    draft = WorkloadDraft(Training(), {"method": "lora"}, CONTEXT)
    draft.adjust_field("method", "full")
    draft.adjust_field("compute", "bf16")
    assert draft.value("method") == "lora"
    assert draft.adjustments == ("compute",)
    assert draft.build() == Training(method="lora", compute="bf16")


def test_a_rejected_field_is_reset_unless_it_was_edited():
    draft = WorkloadDraft(Inference(batch=8), {"kv_cache": "fp8"}, CONTEXT)
    draft.reset_rejected_field(SpecError("workload.batch", "too large"))
    assert draft.value("batch") == 1
    with pytest.raises(SpecError, match="not allowed"):
        draft.reset_rejected_field(SpecError("workload.kv_cache", "not allowed"))
