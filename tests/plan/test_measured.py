"""A prediction beside what is measured, live cards in the catalog, and what would fill them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from recordings import training, two_steps

from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, HostProcess
from planner.plan.evaluate import evaluate
from planner.plan.measured import (
    MeasuredCard,
    check_prediction,
    largest_batches,
    matching_gpus,
    measure_card,
    plan_for_card,
    predict_card,
)
from planner.plan.plan import ModelChoice, Plan
from planner.trace.analysis.memory import facts_of
from planner.units import GIB, MIB
from planner.workload.parallel import CardCount
from planner.workload.workload import Inference, Parallel, Training

PLAN = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(micro_batch=2), gpu="rtx-4090")
_CAPTURES = json.loads((Path(__file__).parents[1] / "monitor/data/nvidia_smi_captures.json").read_text())["captures"]


def live(name, mib=None, **fields):
    facts = {} if mib is None else {"memory_total_bytes": Reading(mib * MIB)}
    return Device("GPU-1", name, 0, facts=facts, **fields)


def process(pid=1, memory=4 * GIB, kind="compute", **fields):
    return CardProcess(
        pid, "GPU-1", kind, missing(Cause.NOT_SUPPORTED) if memory is None else Reading(memory), **fields
    )


@pytest.fixture
def evaluation(catalog):
    return evaluate(PLAN, catalog)


def test_the_prediction_for_a_card_is_its_memory_and_power(evaluation, catalog):
    expected = predict_card(evaluation)
    memory = evaluation.memory
    assert expected == (memory.total_bytes, memory.low_bytes, memory.high_bytes, 450.0)
    assert predict_card(evaluation, catalog.hardware.gpu("l40s")).power_watts == 350.0
    without_card = evaluate(PLAN.evolve(gpu=None), catalog)
    assert predict_card(without_card).power_watts is None


def test_the_largest_process_counts_as_the_plans():
    processes = (process(1, 2 * GIB), process(2, 6 * GIB), process(3, 9 * GIB, "graphics"), process(4, None))
    assert measure_card(processes, 10.0 * GIB) == MeasuredCard(10 * GIB, 6 * GIB, 2, 3)
    assert measure_card((process(4, None),), GIB) == MeasuredCard(GIB, process_count=1)
    assert measure_card((process(is_reliable=False),), GIB) == MeasuredCard(GIB)


@pytest.mark.parametrize(
    ("name", "command", "engine"),
    [
        ("VLLM::EngineCor", "VLLM::EngineCore", "vLLM"),
        ("python", "python -m sglang.launch_server --model x", "SGLang"),
        ("python", "python train.py", ""),
    ],
)
def test_engines_that_reserve_the_card_are_recognized(name, command, engine):
    host = HostProcess(name, "ada", command, 0.0, 1.0, GIB, is_own=True)
    assert measure_card((process(host=host),), 5 * GIB).engine == engine


def test_a_cache_pool_is_predicted_to_fill_the_card(catalog):
    plan = Plan(
        model=ModelChoice(id="openai-community/gpt2"), workload=Inference(profile="vllm", batch=1), gpu="rtx-4090"
    )
    evaluation = evaluate(plan, catalog)
    memory, pool = evaluation.memory, evaluation.memory.cache_pool
    needed = sum(term.bytes for term in memory.terms if term.name == "kv_cache")
    assert pool.bytes > 4 * needed
    taken = memory.total_bytes - needed + pool.bytes
    assert predict_card(evaluation).memory_bytes == taken
    assert predict_card(evaluation).high_bytes - taken == memory.high_bytes - memory.total_bytes
    found = check_prediction(evaluation, MeasuredCard(23 * GIB, taken + MIB, engine="vLLM"))
    assert (found.reason, found.difference_bytes) == ("in-range", MIB)


def test_another_engine_explains_more_memory_than_predicted(evaluation):
    held = evaluation.memory.high_bytes + GIB
    assert check_prediction(evaluation, MeasuredCard(40 * GIB, held, engine="vLLM")).reason == "engine-fills-card"
    assert check_prediction(evaluation, MeasuredCard(held, engine="vLLM")).reason == "other-processes"


def test_a_small_excess_is_attributed_to_the_least_certain_term(evaluation):
    memory = evaluation.memory
    found = check_prediction(evaluation, MeasuredCard(20 * GIB, memory.total_bytes + 100 * MIB))
    assert (found.basis, found.reason, found.likeliest) == ("process", "in-range", "framework_overhead")
    assert found.difference_bytes == 100 * MIB
    assert found.difference_fraction == pytest.approx(100 * MIB / memory.total_bytes)


def test_a_small_shortfall_is_attributed_to_the_term_that_may_be_smaller(evaluation):
    memory = evaluation.memory
    found = check_prediction(evaluation, MeasuredCard(20 * GIB, memory.low_bytes))
    rooms = {term.name: term.bytes - term.low_bytes for term in memory.terms}
    assert (found.reason, found.likeliest) == ("in-range", max(rooms, key=rooms.get))


def test_an_exact_prediction_has_no_reason(evaluation):
    found = check_prediction(evaluation, MeasuredCard(20 * GIB, evaluation.memory.total_bytes))
    assert (found.reason, found.likeliest, found.difference_bytes) == ("in-range", None, 0)


def test_certain_terms_explain_no_difference(evaluation):
    memory = evaluation.memory
    certain = tuple(replace(term, low_bytes=term.bytes, high_bytes=term.bytes) for term in memory.terms)
    sure = evaluation.evolve(memory=memory.evolve(terms=certain))
    assert check_prediction(sure, MeasuredCard(20 * GIB, memory.total_bytes + MIB)).likeliest is None


def test_outside_the_range_the_reason_depends_on_the_direction(evaluation):
    memory = evaluation.memory
    early = check_prediction(evaluation, MeasuredCard(20 * GIB, memory.low_bytes - 1))
    assert (early.reason, early.likeliest) == ("before-peak", None)
    more = check_prediction(evaluation, MeasuredCard(40 * GIB, memory.high_bytes + 1))
    assert (more.reason, more.likeliest) == ("more-than-expected", "framework_overhead")


def test_the_prediction_for_the_whole_card_includes_other_programs(catalog):
    shared = evaluate(PLAN.evolve(workload=Training(micro_batch=2, other_processes_bytes=GIB)), catalog)
    alone = evaluate(PLAN, catalog)
    found = check_prediction(shared, MeasuredCard(alone.memory.total_bytes + GIB))
    assert (found.basis, found.difference_bytes, found.reason) == ("card", 0, "in-range")
    assert check_prediction(alone, MeasuredCard(alone.memory.high_bytes + GIB)).reason == "other-processes"


@pytest.mark.parametrize("capture", _CAPTURES, ids=lambda one: one["capture"])
def test_cards_in_real_recordings_match_the_catalog(catalog, capture):
    fields = capture["fields"]
    found = matching_gpus(catalog.hardware, live(fields["name"], float(fields["memory.total"].split()[0])))
    assert len(found) == 1
    part = next(word for word in ("2080", "4080", "h100", "h200", "l40s") if word in capture["capture"])
    assert part in found[0].id


@pytest.mark.parametrize(
    ("name", "mib", "ids"),
    [
        ("NVIDIA GeForce RTX 3080", 10240, ("rtx-3080-10-gb",)),
        ("NVIDIA GeForce RTX 3080", 12288, ("rtx-3080-12-gb",)),
        ("NVIDIA GeForce RTX 3080", None, ("rtx-3080-10-gb", "rtx-3080-12-gb")),
        ("NVIDIA GeForce RTX 4090", 49140, ()),
        ("Tesla K80", 11441, ("tesla-k80",)),
        ("NVIDIA Graphics Device", 24564, ()),
    ],
)
def test_cards_of_one_name_are_distinguished_by_memory(catalog, name, mib, ids):
    assert tuple(gpu.id for gpu in matching_gpus(catalog.hardware, live(name, mib))) == ids


def test_an_instance_matches_no_catalog_record(catalog):
    assert matching_gpus(catalog.hardware, live("NVIDIA L40S", 46068, mig_parent="GPU-0")) == ()


def test_a_card_of_unknown_memory_is_matched_by_name(catalog):
    hardware = HardwareCatalog(gpus=(catalog.hardware.gpu("l40s").evolve(memory_bytes=None),))
    assert [gpu.id for gpu in matching_gpus(hardware, live("NVIDIA L40S", 46068))] == ["l40s"]


def test_a_plan_for_a_local_card_has_no_other_cards(catalog):
    unequal = Training(gpus=(CardCount(id="rtx-4090", count=1), CardCount(id="l40s", count=1)))
    plan = plan_for_card(PLAN.evolve(workload=unequal, gpu=None, count=2), catalog.hardware.gpu("l40s"), 2)
    assert (plan.gpu, plan.count, plan.workload.gpus) == ("l40s", 2, ())
    one = plan_for_card(
        PLAN.evolve(workload=Training(parallel=Parallel(data=2)), count=2), catalog.hardware.gpu("l40s")
    )
    assert (one.count, one.workload.parallel.data) == (1, None)
    assert evaluate(one, catalog).memory.verdict == "fits"


def test_parallelism_over_more_cards_is_removed(catalog):
    split = PLAN.evolve(workload=Training(parallel=Parallel(tensor=2)), count=2)
    gpu = catalog.hardware.gpu("l40s")
    assert plan_for_card(split, gpu, 4).workload.parallel.tensor == 2
    assert plan_for_card(split, gpu).workload.parallel.is_plain
    assert evaluate(plan_for_card(split, gpu), catalog).memory.verdict == "fits"


def test_the_largest_batches_that_fit_and_fit_tightly(catalog):
    surely, barely = largest_batches(PLAN, catalog)
    assert (surely.asked, barely.asked) == ("micro_batch", "micro_batch")
    assert 2 < surely.value <= barely.value
    reading = Plan(model=ModelChoice(id="openai-community/gpt2"), gpu="rtx-4090")
    assert largest_batches(reading, catalog)[0].asked == "batch"
    assert largest_batches(PLAN.evolve(gpu=None), catalog) is None


def test_other_processes_reduce_the_largest_batch(catalog):
    beside_others = PLAN.evolve(workload=Training(micro_batch=2, other_processes_bytes=8 * GIB))
    assert largest_batches(beside_others, catalog)[0].value < largest_batches(PLAN, catalog)[0].value


def test_a_traced_module_has_no_largest_batch(catalog):
    traced = Plan(model=ModelChoice.of_trace(facts_of(two_steps(GIB, training()))), gpu="rtx-4090")
    assert largest_batches(traced, catalog) is None


def test_an_unknown_model_is_refused(catalog):
    with pytest.raises(SpecError):
        largest_batches(PLAN.evolve(model=ModelChoice(id="nobody/nothing")), catalog)
