"""Scheduling of litgpt: one batch after the other."""

from small_models import bundled

from planner.serving.software.litgpt import SCHEDULER
from planner.workload.workload import Inference


def test_it_answers_the_workloads_batch():
    architecture, gpu = bundled().models.model("meta-llama/Llama-3.1-8B"), bundled().hardware.gpu("l40s")
    found = SCHEDULER.scheduling(Inference(batch=6), architecture, gpu)
    assert (found.static, found.sequences, found.caches_prefixes) == (True, 6, False)
