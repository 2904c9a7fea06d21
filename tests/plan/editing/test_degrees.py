from planner.plan.advice.advise import advise
from planner.plan.editing.degrees import possible_counts, possible_degrees
from planner.plan.evaluate import evaluate
from planner.plan.memory_curve import plan_axes
from planner.plan.plan import ModelChoice, Plan
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"


def plan_of(model="meta-llama/Llama-3.1-8B", count=8, **parallel):
    return Plan(model=ModelChoice(id=model), workload=Training(parallel=Parallel(**parallel)), count=count)


def test_degrees_divide_the_cards_and_the_model(catalog):
    assert possible_degrees(plan_of(), "parallel.tensor", catalog) == (1, 2, 4, 8)
    assert possible_degrees(plan_of(tensor=2), "parallel.pipeline", catalog) == (1, 2, 4)
    assert possible_degrees(plan_of(count=12), "parallel.tensor", catalog) == (1, 2, 4)


def test_experts_are_spread_over_replicas(catalog):
    assert possible_degrees(plan_of(), "parallel.expert", catalog) == (1,)
    assert possible_degrees(plan_of(MIXTRAL), "parallel.expert", catalog) == (1, 2, 4, 8)


def test_card_counts_are_multiples_of_the_model_shards(catalog):
    assert possible_counts(plan_of(tensor=4, pipeline=2), 12, catalog) == (8, 16)
    assert possible_counts(plan_of(tensor=4, pipeline=2), 3, catalog) == (8,)


def test_the_users_own_stages_do_not_limit_the_degrees(catalog):
    staged = plan_of(pipeline=2, pipeline_layers=(12, 20))
    assert plan_axes(evaluate(staged, catalog))
    served = staged.evolve(workload=Inference(parallel=staged.workload.parallel.evolve(data=None)))
    assert plan_axes(evaluate(served, catalog))
    advise(served.evolve(gpu="tesla-t4"), catalog)
