"""The time and cost of the plan's job on each card, computed in the background."""

import threading

import pytest

import planner.gui.catalog.lookups as lookups
from planner.cost.terms import CostTerms, Run
from planner.errors import SpecError
from planner.plan.cost import evaluate_cost


@pytest.fixture
def tab(make_tab, workspace):
    workspace.apply("job", cost=CostTerms(job=Run(amount=1e6, unit="tokens")))
    return make_tab()


def job(tab, gpu_id):
    return tab.gpus.model.find(gpu_id).job


def test_job_figures_arrive_later_and_equal_those_of_the_cost_tab(tab, qtbot, workspace):
    workspace.apply("job", cost=CostTerms(job=Run(amount=3e6, unit="tokens")))
    assert job(tab, "l40s") is None
    qtbot.waitUntil(lambda: job(tab, "l40s") is not None)
    workspace.apply("card", gpu="l40s")
    tab.refresh(workspace.evaluation)
    cost = evaluate_cost(workspace.evaluation, workspace.catalog, tab.gpus.lookups.today())
    assert job(tab, "l40s").usd == cost.estimate.result.rent.usd


def test_another_plan_shows_no_outdated_job_figures(tab, qtbot, workspace):
    tab.refresh(workspace.evaluation)
    qtbot.waitUntil(lambda: job(tab, "l40s") is not None)
    before = job(tab, "l40s").usd
    tab.refresh(workspace.evaluation)
    assert job(tab, "l40s").usd == before
    workspace.apply("job", cost=CostTerms(job=Run(amount=1e9, unit="tokens")))
    tab.refresh(workspace.evaluation)
    assert job(tab, "l40s") is None
    qtbot.waitUntil(lambda: job(tab, "l40s") is not None)
    assert job(tab, "l40s").usd > before


def test_the_next_change_cancels_the_computation(tab, qtbot, workspace, monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    def endless(_plan, _catalog, _today, stop):
        begun.set()
        while not stop():
            pass
        ended.set()

    monkeypatch.setattr(lookups, "find_jobs", endless)
    # Another plan than the one that was asked for when the tab was shown.
    workspace.apply("job", cost=CostTerms(job=Run(amount=3e6, unit="tokens")))
    qtbot.waitUntil(begun.is_set)
    workspace.apply("job", cost=CostTerms(job=Run(amount=7e6, unit="tokens")))
    qtbot.waitUntil(ended.is_set)
    assert job(tab, "l40s") is None
    monkeypatch.undo()


def test_sorting_by_cost_puts_the_cheapest_first_and_what_is_not_known_last(tab, qtbot, workspace):
    tab.refresh(workspace.evaluation)
    qtbot.waitUntil(lambda: job(tab, "l40s") is not None)
    for key in ("job_cost", "job_time"):
        tab.gpus.table.sort_by(key)
        column = next(column for column in tab.gpus.model.columns if column.key == key)
        values = [column.value(row) for row in tab.gpus.model.records]
        known = [value for value in values if value is not None]
        assert known == sorted(known)
        assert values[: len(known)] == known


def test_an_invalid_plan_leaves_the_job_columns_empty(tab):
    tab.gpus.lookups._set_no_jobs(SpecError("x", "y"))
    assert tab.gpus.lookups.jobs == {}
    with pytest.raises(ValueError, match="z"):
        tab.gpus.lookups._set_no_jobs(ValueError("z"))


def test_a_cancelled_computation_returns_none(workspace):
    today = lookups.date(2026, 11, 22)
    assert lookups.find_jobs(workspace.plan, workspace.catalog, today, lambda: True) is None
