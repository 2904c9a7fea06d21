"""Memory fractions that have room for the plan: the program's own, or as much more as the cache needs."""

import pytest
from launched import serving

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()
H100 = "h100-sxm5-80gb"
KEYS = {"sglang": "--mem-fraction-static", "tensorrt-llm": "kv_cache_config.free_gpu_memory_fraction"}
SETTINGS = {"sglang": "mem_fraction_static", "tensorrt-llm": "free_gpu_memory_fraction"}


def fraction(program, **fields):
    settings = launch_settings(serving(program, gpu=H100, **fields), CATALOG, program)
    return next(row.value for row in settings.settings if row.key == KEYS[program]), settings.plan


@pytest.mark.parametrize("program", KEYS)
def test_the_own_fraction_stays_where_it_has_room(program):
    value, plan = fraction(program, batch=4, context_length=8192)
    assert value == planner.evaluate(plan, CATALOG).memory.cache_pool.utilization


@pytest.mark.parametrize(("program", "batch"), [("sglang", 61), ("tensorrt-llm", 60)])
def test_a_larger_cache_raises_the_fraction_just_enough(program, batch):
    value, plan = fraction(program, batch=batch, context_length=8192)

    def sequences(share):
        engine = plan.workload.engine.evolve(**{SETTINGS[program]: share})
        again = plan.evolve(workload=plan.workload.evolve(engine=engine))
        return planner.evaluate(again, CATALOG).memory.cache_pool.sequences

    assert sequences(value) >= batch > sequences(round(value - 0.003, 3))


@pytest.mark.parametrize("program", KEYS)
def test_a_fraction_that_is_set_and_too_small_is_refused(program):
    with pytest.raises(SpecError, match="needs a fraction of"):
        fraction(program, batch=40, context_length=8192, engine={SETTINGS[program]: 0.3})


def test_a_batch_that_waits_needs_no_room():
    value, _ = fraction("tensorrt-llm", batch=40, context_length=8192, engine={"max_batch_size": 2})
    assert value == 0.9


def test_an_encoder_has_no_cache():
    plan = serving("sglang").evolve(model=planner.ModelChoice(id="BAAI/bge-large-en-v1.5"))
    plan = plan.evolve(workload=planner.Inference(profile="sglang", context_length=512))
    settings = launch_settings(plan, CATALOG, "sglang")
    assert {row.key: row.value for row in settings.settings}["--context-length"] == 512


def test_the_batch_is_left_to_clients_unless_it_is_the_limit_on_sequences():
    def left_out(batch):
        plan = serving("tensorrt-llm", gpu=H100, batch=batch, context_length=4096, engine={"max_batch_size": 8})
        return {row.field: row.reason for row in launch_settings(plan, CATALOG, "tensorrt-llm").not_expressed}

    assert "up to 8 run at the same time" in left_out(4)["batch"]
    assert "batch" not in left_out(8)
