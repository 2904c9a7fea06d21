"""Results of an estimate: JSON, evolving, and the certainty of bytes."""

from hypothesis import given, settings
from small_models import architectures, llama, workloads

from planner.memory.estimate import estimate_memory
from planner.memory.result import MemoryResult
from planner.models.architecture import Architecture
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.units import GIB
from planner.workload.workload import Inference

some = settings(max_examples=60)


@some
@given(architectures(), workloads())
def test_a_result_survives_json_and_is_equal(model, workload):
    result = estimate_memory(model, workload)
    again = MemoryResult.model_validate_json(result.model_dump_json())
    assert again == result
    assert hash(again) == hash(result)


@some
@given(architectures(), workloads())
def test_evolving_nothing_changes_nothing(model, workload):
    for spec in (model, workload):
        assert spec.evolve() == spec
        assert hash(spec.evolve()) == hash(spec)
    again = Architecture.model_validate_json(model.model_dump_json())
    assert again == model
    assert again.parameters == model.parameters


def test_certain_bytes_are_told_from_assumed_ones():
    result = estimate_memory(llama(), Inference())
    by_certainty: dict[str, int] = {}
    for term in result.terms:
        by_certainty[term.certainty] = by_certainty.get(term.certainty, 0) + term.bytes
    found = result.certain_bytes
    assert by_certainty == {"exact": found.exact, "measured": found.measured, "assumed": found.assumed}
    assert found.exact + found.measured + found.assumed == result.total_bytes
    assert found.exact > 12 * GIB


def test_an_engines_pool_is_smallest_where_the_other_terms_are_largest(catalog):
    found = evaluate(
        Plan(model=ModelChoice(id="Qwen/Qwen2.5-7B"), gpu="l40s", workload=Inference(profile="vllm")), catalog
    )
    memory = found.memory
    others = [term for term in memory.terms if term.name != "kv_cache"]
    low, high = memory.cache_pool_bounds
    assert memory.cache_pool.bytes - low == sum(term.high_bytes - term.bytes for term in others) > 0
    assert high - memory.cache_pool.bytes == sum(term.bytes - term.low_bytes for term in others) > 0
    assert memory.evolve(cache_pool=None).cache_pool_bounds is None
