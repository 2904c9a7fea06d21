"""Cost terms and the inputs of the tornado chart, as rows."""

import pytest
from cost_samples import estimated

from planner.cost.rent_or_buy.uncertainty import Swing, tornado
from planner.cost.result import MoneySymbol, MoneyTerm
from planner.cost.terms import DailyHours
from planner.present.cost.amounts import SWING_TITLES, amount_range, money_rows, short_source, swing_rows


def test_every_amount_opens(catalog):
    result = estimated(catalog).result
    for row in money_rows((*result.rent.terms, *result.own.upfront, *result.own.monthly)):
        assert row.text.startswith("$")
        assert row.how
        assert row.source
        assert len(row.short_source) <= 50
        assert all(symbol[3] for symbol in row.symbols)
    bare = MoneyTerm("new_thing", 5.0, "x", (MoneySymbol("x", 5, "USD", "me"),), "me", "yours", None, 5.0, 5.0)
    (row,) = money_rows([bare])
    assert (row.title, row.range_text, row.date, row.certainty) == ("New thing", "", "", "yours")
    assert row.symbols == (("x", "5", "USD", "me"),)


def test_the_tornado_names_its_inputs(catalog):
    swings = tornado(estimated(catalog, DailyHours(hours_per_day=20)).case)
    rows = swing_rows(swings)
    assert {row.title for row in rows} <= set(SWING_TITLES.values())
    assert any(row.flips for row in rows)
    odd = Swing(
        name="some_usd",
        low_value=1,
        value=2,
        high_value=3,
        low_saving_usd=0,
        high_saving_usd=1,
        flips=False,
        source="x",
    )
    assert swing_rows([odd])[0][:3] == ("some usd", "$1.00", "$3.00")
    assert swing_rows([odd.model_copy(update={"name": "pue"})])[0].low_value == "1"


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("github:someone/prices data/file.csv", "github:someone/prices"),
        ("github:someone/prices, modeling constant of 8 %", "github:someone/prices"),
        ("median of 3 prices, 2 without a date: a; b", "median of 3 prices, 2 without a date"),
        ("a survey ; another", "a survey"),
        (
            "Uptime Institute Global Data Center Survey of the year 2024",
            "Uptime Institute Global Data Center Survey of …",
        ),
        ("yours", "yours"),
    ],
)
def test_sources_are_short_in_tables(source, short):
    assert short_source(source) == short


def test_a_range_is_told_unless_it_is_next_to_nothing():
    wide = MoneyTerm("rack", 1_000.0, "x", (), "me", "yours", None, 900.0, 1_200.0)
    assert amount_range(wide) == "$900 – $1,200"
    # Half a dollar around a thousand is no more than 0.05 %.
    assert amount_range(MoneyTerm("rack", 1_000.0, "x", (), "me", "yours", None, 999.75, 1_000.25)) == ""
