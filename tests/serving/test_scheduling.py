"""Scheduling looked up by program."""

from importlib import import_module

from served_traffic import deployed, plan_on, rules
from small_models import bundled

from planner.serving.scheduling import Scheduler, own_setting, same_rows, scheduling_of
from planner.workload.software.registry import SERVERS, SOFTWARE
from planner.workload.workload import Inference


def test_each_program_has_its_scheduling():
    gpu = bundled().hardware.gpu("l40s")
    architecture = bundled().models.model("meta-llama/Llama-3.1-8B")
    for name, static in (("hf", True), ("vllm", False), ("llama.cpp", False)):
        weights = {"weights": "Q4_K_M"} if name == "llama.cpp" else {}
        found = scheduling_of(Inference(profile=name, batch=3, **weights), architecture, gpu, prefix_cache=True)
        assert found.static is static, name
        assert found.source
    plain = scheduling_of(Inference(batch=3), architecture, gpu, prefix_cache=True)
    assert (plain.static, plain.sequences) == (True, 3)


def test_each_program_that_serves_has_a_scheduler():
    for name in SERVERS:
        module = import_module(f"planner.serving.software.{SOFTWARE[name].module}")
        assert isinstance(module.SCHEDULER, Scheduler), name


def test_a_prefix_cache_can_be_turned_off():
    assert deployed().scheduling.caches_prefixes
    assert not deployed(prefix_cache=False).scheduling.caches_prefixes
    assert not rules(caches_prefixes=True).without_prefixes().caches_prefixes


def test_settings_of_engines():
    workload = plan_on(engine={"max_num_seqs": 7}).workload
    assert own_setting(workload, "max_num_seqs") == 7
    assert own_setting(workload, "chunked_prefill_size") is None
    assert same_rows(3) == 3
