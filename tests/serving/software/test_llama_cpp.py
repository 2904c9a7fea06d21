"""Scheduling of llama-server: slots and batches."""

from small_models import bundled

from planner.serving.software.llama_cpp import SCHEDULER
from planner.workload.workload import Inference


def scheduling(**changes):
    workload = Inference(profile="llama.cpp", weights="Q4_K_M", context_length=4_096, **changes)
    return SCHEDULER.scheduling(
        workload, bundled().models.model("meta-llama/Llama-3.1-8B"), bundled().hardware.gpu("l40s")
    )


def test_slots_and_batches():
    assert (scheduling().sequences, scheduling().step_tokens, scheduling().slot_tokens) == (4, 2_048, 4_096)
    assert scheduling(batch=9).sequences == 9
    own = scheduling(engine={"slots": 2, "n_batch": 512})
    assert (own.sequences, own.step_tokens) == (2, 512)
