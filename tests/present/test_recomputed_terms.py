"""A person with a calculator comes to the bytes of a term from its formula with the numbers put in."""

import pytest

from planner.plan.catalog import load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.plan.phrase import evaluation_view
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.parallel import Parallel
from planner.workload.workload import Training

LLAMA, MIXTRAL = "meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1"
CLOSE = 5e-4
"""A share is shown with four decimals."""


def put_in(row):
    plain = row.numbers_put_in.replace("×", "*").replace("−", "-").replace("²", "**2").replace(",", "")
    return eval(plain, {"__builtins__": {}})


def rows(model, workload, count=1):
    plan = Plan(model=ModelChoice(id=model), workload=workload, gpu="h100-sxm5-80gb", count=count)
    catalog = load_catalog()
    return evaluation_view(evaluate(plan, catalog), catalog).terms


@pytest.mark.parametrize("optimizer", [name for name in OPTIMIZERS if name != "sgd"])
@pytest.mark.parametrize(("model", "method"), [(LLAMA, "full"), (MIXTRAL, "lora")])
def test_states_of_every_optimizer(model, method, optimizer):
    (states,) = (
        row for row in rows(model, Training(method=method, optimizer=optimizer)) if row.name == "optimizer_states"
    )
    assert put_in(states) == pytest.approx(states.bytes, abs=1, rel=CLOSE)


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_shares_of_cards_of_which_fewer_share_the_experts(zero):
    shared = [
        row for row in rows(MIXTRAL, Training(parallel=Parallel(expert=8, zero=zero)), count=8) if "/ N" in row.how
    ]
    assert shared
    for row in shared:
        assert put_in(row) == pytest.approx(row.bytes, rel=CLOSE), row.title
