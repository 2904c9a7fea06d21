"""What is recommended for twenty-five jobs, beside what an expert would name; nothing that cannot be had or placed."""

from datetime import date

import pytest
from expert_jobs import JOBS, ExpertJob

from planner.plan.evaluate import evaluate
from planner.plan.recommend.acquisition import ownership_obstacle
from planner.plan.recommend.option import HardwareOption, Recommendation
from planner.plan.recommend.recommend import recommend
from planner.plan.recommend.variants import apply_option

pytestmark = pytest.mark.sweep

TODAY = date(2026, 11, 22)
BY_NAME = {job.name: job for job in JOBS}


@pytest.fixture(scope="module", params=BY_NAME)
def answered(request, catalog) -> tuple[ExpertJob, Recommendation]:
    """Each job with its recommendation."""
    job = BY_NAME[request.param]
    found = recommend(job.plan, catalog, TODAY, job.wish)
    assert found is not None
    return job, found


def told(option: HardwareOption) -> str:
    return f"{option.count} × {option.gpu} {option.sharing} {option.changes} {option.having} {option.usd:.2f} USD"


def test_there_are_twenty_five_jobs():
    assert len(BY_NAME) == len(JOBS) == 25


def test_an_expert_would_name_it(answered, catalog):
    job, found = answered
    if job.nothing:
        assert found.options == ()
        assert job.nearest(found.nearest, catalog.hardware.gpu(found.nearest.gpu)), f"{job.why}: {told(found.nearest)}"
        return
    named = (
        (found.cheapest, job.cheapest),
        (found.fastest, job.fastest),
        (found.best_value, job.best_value),
        *((option, job.every) for option in found.options if option.comparable),
    )
    for option, check in named:
        assert check(option, catalog.hardware.gpu(option.gpu)), f"{job.why}: {told(option)}"


def test_everything_can_be_had_and_placed(answered, catalog):
    job, found = answered
    offers = {offer.id: offer for offer in catalog.offers}
    for option in found.options:
        gpu = catalog.hardware.gpu(option.gpu)
        if option.having == "rent":
            assert option.gpu in offers[option.offer].cards
        else:
            place = job.plan.cost.buy.place
            assert ownership_obstacle(gpu, option.cards, place, catalog.hardware.systems) is None
            assert place != "desk" or (
                option.machines == 1 and gpu.segment in ("consumer", "workstation", "edge", "soc")
            )


def test_nothing_hides_how_many(answered, catalog):
    _, found = answered
    for option in found.options:
        gpu = catalog.hardware.gpu(option.gpu)
        assert option.machines * option.cards_per_machine >= option.cards
        assert option.power_watts is None or option.power_watts == pytest.approx(gpu.drawn_watts * option.cards)


def test_an_unmeasured_speed_is_named_only_where_there_is_no_measured_one(answered):
    _, found = answered
    measured = [option for option in found.options if option.comparable and option.basis != "unmeasured"]
    named = [option for option in (found.cheapest, found.fastest, found.best_value) if option is not None]
    assert not measured or all(option.basis != "unmeasured" for option in named)


def test_what_is_named_runs_as_said(answered, catalog):
    job, found = answered
    for option in {one.key: one for one in (found.cheapest, found.fastest, found.best_value) if one}.values():
        evaluation = evaluate(apply_option(option, job.plan, catalog), catalog)
        assert evaluation.memory.verdict == "fits"
        assert evaluation.time.tokens_per_second == pytest.approx(option.tokens_per_second)
        assert evaluation.time.samples_per_second == pytest.approx(option.samples_per_second)
