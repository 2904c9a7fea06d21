"""Results of cost estimates as records."""

from datetime import date

import pytest
from cost_cases import EVERY_DAY, estimate

from planner.cost.figure import Figure
from planner.cost.result import CostResult, MoneySymbol, figure_symbol
from planner.cost.terms import CostTerms, Job, Run
from planner.plan.catalog import Catalog


def test_the_symbol_of_a_figure_keeps_its_source_and_date() -> None:
    survey = Figure(value=1.5, low=1.2, high=1.9, source="a survey", date="2024")
    assert figure_symbol("PUE", survey, "cooling") == MoneySymbol("PUE", 1.5, "cooling", "a survey", "2024")
    assert figure_symbol("PUE", Figure.own(1.1), "cooling").date is None


@pytest.mark.parametrize("job", [EVERY_DAY, Run(amount=300)], ids=lambda job: job.kind)
def test_a_result_is_read_back_as_it_was_written(catalog: Catalog, today: date, job: Job) -> None:
    result = estimate(catalog, today, CostTerms(job=job)).result
    assert result.answer is not None
    assert CostResult.model_validate_json(result.model_dump_json()) == result
