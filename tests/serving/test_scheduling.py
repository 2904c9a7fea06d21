"""Scheduling looked up by program."""

from served_traffic import deployed, plan_on, rules
from small_models import bundled

from planner.serving.scheduling import own_setting, same_rows
from planner.serving.software import scheduling_of
from planner.workload.defaults import with_defaults
from planner.workload.software.registry import SERVERS
from planner.workload.workload import Inference

BATCHES = ("hf", "litgpt", "autoawq", "gpt-fast")
"""Programs that answer one batch after the other."""


def test_each_program_that_serves_has_its_scheduling():
    architecture, gpu = bundled().models.model("meta-llama/Llama-3.1-8B"), bundled().hardware.gpu("l40s")
    for name in SERVERS:
        weights = {"weights": "Q4_K_M"} if name == "llama.cpp" else {}
        workload = with_defaults(Inference(profile=name, batch=3, **weights), architecture, 1)
        found = scheduling_of(workload, architecture, gpu, prefix_cache=True)
        assert found.static_batching is (name in BATCHES), name
        assert not found.static_batching or (found.sequences, found.caches_prefixes) == (3, False), name
        assert found.source
    assert scheduling_of(Inference(batch=3), architecture, gpu, prefix_cache=True).static_batching


def test_a_prefix_cache_can_be_turned_off():
    assert deployed().scheduling.caches_prefixes
    assert not deployed(prefix_cache=False).scheduling.caches_prefixes
    assert not rules(caches_prefixes=True).without_prefixes().caches_prefixes


def test_settings_of_engines():
    workload = plan_on(engine={"max_num_seqs": 7}).workload
    assert own_setting(workload, "max_num_seqs") == 7
    assert own_setting(workload, "chunked_prefill_size") is None
    assert same_rows(3) == 3
