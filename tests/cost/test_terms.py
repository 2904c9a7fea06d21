"""Cost terms: validation, sources of defaults, and JSON."""

import pytest

from planner.cost.job import DailyHours, Run, Service
from planner.cost.terms import DEFAULT_SOURCES, BuyTerms, CostTerms, RentTerms
from planner.errors import SpecError


@pytest.mark.parametrize(
    ("field", "terms"),
    [
        ("horizon_years", {"horizon_years": 0}),
        ("discount_rate", {"discount_rate": 1.0}),
        ("discount_rate", {"discount_rate": -0.1}),
        ("buy.card_price_usd", {"buy": {"card_price_usd": -100}}),
        ("buy.card_price_usd", {"buy": {"card_price_usd": 1e12}}),
        ("buy.pue", {"buy": {"pue": 0.5}}),
        ("buy.server_power_factor", {"buy": {"server_power_factor": 10.5}}),
        ("rent.mean_hours_between_interruptions", {"rent": {"mean_hours_between_interruptions": 1.5e6}}),
        ("buy", {"buy": {"colocation_usd_per_kw_month": 150}}),
        ("rent.storage_usd_per_gb_month", {"rent": {"storage_usd_per_gb_month": -1}}),
        ("rent.price_drift_per_year", {"rent": {"price_drift_per_year": -1}}),
        ("job.run.amount", {"job": {"kind": "run", "amount": 0}}),
        ("job.daily-hours.hours_per_day", {"job": {"kind": "daily-hours", "hours_per_day": 25}}),
        ("job.service.peak_factor", {"job": {"kind": "service", "requests_per_day": 1, "peak_factor": 0.5}}),
    ],
)
def test_absurd_terms_are_refused_by_field(field: str, terms: dict[str, object]) -> None:
    from pydantic import ValidationError

    with pytest.raises(ValidationError) as caught:
        CostTerms.model_validate(terms)
    assert SpecError.from_validation(caught.value).field == field


def test_each_default_that_has_a_source_is_a_field() -> None:
    kinds = {"job": (Run, Service, DailyHours), "rent": (RentTerms,), "buy": (BuyTerms,)}
    for name, source in DEFAULT_SOURCES.items():
        part, _, field = name.rpartition(".")
        assert source
        assert any(field in kind.model_fields for kind in kinds.get(part, (CostTerms,)))


def test_terms_round_trip() -> None:
    terms = CostTerms(job=Service(requests_per_day=10), buy=BuyTerms(place="desk", pue=1.1))
    assert CostTerms.model_validate_json(terms.model_dump_json()) == terms
