"""A fleet as rows, the worst first, as a headline and as lines."""

import datetime
from dataclasses import replace

import pytest
from fleet_kit import dcgm_fleet

from planner.fleet.cards import FleetCard, Work, read_cards
from planner.fleet.costs import FleetCosts, FleetPrices, IdleCard, ServingCost
from planner.fleet.fleet import Fleet
from planner.fleet.serving import FleetServer
from planner.monitor.diagnosis.verdict import Verdict, VerdictKind, VerdictSeverity
from planner.parsing.metrics import MetricSample
from planner.plan.catalog import load_catalog
from planner.present.fleet import (
    FLEET_COLUMNS,
    HEATS,
    FleetRow,
    card_number,
    clock,
    energy_line,
    fleet_headline,
    fleet_rows,
    matching_rows,
    server_line,
    worst_first,
)
from planner.serving_runs.metrics import run_of_scrape

COSTS = FleetCosts(1_500.0, 2, 36.0, None, 4.0, 2, (), 0.0, "2026-05-20")


def verdict(kind: VerdictKind, severity: VerdictSeverity, title: str = "a finding") -> Verdict:
    return Verdict(kind, severity, title, "What it means.", 0.0, 1.0)


def cards(number: int = 6) -> list[FleetCard]:
    return [*read_cards(dcgm_fleet(number, use=lambda place: 10.0 * place), at=1_000_000.0).cards.values()]


def worst_row(**changes: object) -> FleetRow:
    return FleetRow(replace(cards(1)[0], **changes))


def test_the_worst_come_first_and_of_those_the_least_used():
    kinds = (
        (VerdictKind.HEALTHY, "good"),
        (VerdictKind.MEMORY_ERRORS, "error"),
        (VerdictKind.THERMAL, "warning"),
        (VerdictKind.IDLE, "note"),
        (VerdictKind.TOO_EARLY, "note"),
    )
    rows = [FleetRow(card, verdict(*kind)) for card, kind in zip(cards(), kinds, strict=False)]
    silent = FleetRow(replace(cards()[5], is_silent=True))
    assert [row.rank for row in worst_first([*rows, silent])] == [0, 1, 2, 3, 5, 5]
    assert FleetRow(cards()[0], verdict(VerdictKind.UNDER_USED, "note")).rank == 4
    xid = FleetRow(replace(cards()[0], xid=79), verdict(VerdictKind.HEALTHY, "good", "fine"))
    assert (xid.rank, xid.tone, xid.diagnosis) == (1, "warn", "last Xid 79; fine")


def test_a_silent_card_says_since_when():
    row = worst_row(is_silent=True)
    assert row.diagnosis == f"silent since {clock(1_000_000.0)}"
    assert row.tone == "bad"
    assert "Not read since 1970-01-1" in row.explanation
    assert FleetRow(cards(1)[0]).diagnosis == "–"
    assert FleetRow(cards(1)[0]).tone == "muted"


def test_an_explanation_says_what_the_exporter_leaves_out():
    text = FleetRow(cards(1)[0], verdict(VerdictKind.IDLE, "note")).explanation
    assert text.startswith("A finding. What it means.\nNot exported here")
    assert FleetRow(cards(1)[0], verdict(VerdictKind.IDLE, "note")).tone == "muted"


def test_rows_are_found_by_words_and_hosts():
    rows = fleet_rows(Fleet("f", 1.0, 15.0, tuple(read_cards(dcgm_fleet(12)).cards.values())))
    assert len(matching_rows(rows)) == 12
    assert {row.card.host for row in matching_rows(rows, hosts=["node2"])} == {"node2"}
    assert len(matching_rows(rows, "H100 node1")) == 8
    assert len(matching_rows(rows, "train-0", ["node*"])) == 8
    assert matching_rows(rows, "absent") == ()
    assert {row.work for row in rows} == {"", "ml/train-0"}


def test_cells_have_units_and_unknown_is_a_dash():
    row = FleetRow(cards(6)[5], verdict(VerdictKind.HEALTHY, "good", "fine"))
    texts = {column.key: column.text(row) for column in FLEET_COLUMNS}
    assert texts == {
        "host": "node1",
        "number": "5",
        "name": "H100 80GB HBM3",
        "use": "50",
        "memory": "34.7 / 79.6",
        "power": "370",
        "temperature": "52",
        "diagnosis": "fine",
        "work": "ml/train-0",
    }
    assert [column.value(row) for column in FLEET_COLUMNS if column.key == "diagnosis"] == [5]
    assert all(column.tooltip is None or column.tooltip(row) for column in FLEET_COLUMNS if column.key == "diagnosis")
    silent = {column.key: column.text(worst_row(is_silent=True)) for column in FLEET_COLUMNS}
    assert (silent["use"], silent["memory"], silent["power"]) == ("–", "– / 79.6", "–")
    instance = replace(cards(1)[0], device=replace(cards(1)[0].device, mig_parent="p", index=3))
    assert card_number(instance) == "MIG 3"


def test_the_heat_map_has_values_and_texts_of_each_quantity():
    card = cards(6)[5]
    shown = {heat.key: (heat.value(card), heat.text(heat.value(card) or 0.0)) for heat in HEATS}
    assert shown["use"] == (0.5, "50\u2009%")
    assert shown["power"] == (370.0, "370\u2009W")
    assert shown["temperature"][1] == "52\u2009°C"
    assert shown["diagnosis"][0] is None


def test_the_headline_names_what_is_wrong_and_what_idle_cards_cost():
    found = cards(4)
    fine = {card.key: verdict(VerdictKind.COMPUTE_BOUND, "good") for card in found}
    fleet = Fleet("f", 1.0, 15.0, tuple(found), verdicts=fine)
    assert fleet_headline(fleet, COSTS) == "4 GPUs on 1 host: nothing to report."
    unsure = replace(fleet, verdicts=dict(list(fine.items())[:3]))
    assert fleet_headline(unsure, COSTS) == "4 GPUs on 1 host: 1 not diagnosed yet."
    assert fleet_headline(replace(fleet, cards=()), COSTS).startswith("No GPU is reported here")
    broken = Fleet(
        "f",
        1.0,
        15.0,
        (replace(found[0], is_silent=True), *found[1:]),
        verdicts={
            **fine,
            found[1].key: verdict(VerdictKind.MEMORY_ERRORS, "error"),
            found[2].key: verdict(VerdictKind.THERMAL, "warning"),
        },
    )
    idle = COSTS._replace(idle=(IdleCard(found[3], 48.0),), idle_usd_per_day=48.0)
    assert fleet_headline(broken, idle) == (
        "4 GPUs on 1 host: 1 silent, 1 with errors, 1 with warnings and 1 idle, which costs $48.00 a day to rent."
    )
    unpriced = COSTS._replace(idle=(IdleCard(found[3], None),))
    assert fleet_headline(fleet, unpriced) == "4 GPUs on 1 host: 1 idle."


def test_the_energy_line_says_what_it_is_based_on():
    assert energy_line(COSTS) == (
        "1.5\u2009kW now, reported by 2 GPUs  ·  36\u2009kWh a day at that  ·  "
        "renting them all: $4.00/h (median on-demand, oldest price of 20 May 2026)"
    )
    more = COSTS._replace(electricity_usd_per_day=7.2, priced=1, price_date=None)
    assert "$7.20 of electricity  ·  renting them all: $4.00/h for 1 priced GPU (median on-demand)" in energy_line(more)
    assert energy_line(COSTS._replace(power_cards=0, priced=0)) == ""
    day = COSTS._replace(kwh_last_day=1234.5, last_day_held_fraction=0.99)
    assert "by 2 GPUs  ·  1,234\u2009kWh in the last 24\u2009h  ·  renting" in energy_line(day)
    part = day._replace(last_day_held_fraction=0.25, electricity_usd_last_day=250.0, idle_usd_last_day=31.4)
    assert (
        "1,234\u2009kWh ($250 of electricity) in the last 24\u2009h, of which the server holds 25\u2009%  ·  "
        "GPUs idle in that time: $31.40 of rent"
    ) in energy_line(part)
    unmetered = energy_line(COSTS._replace(power_cards=0))
    assert unmetered.startswith("no GPU reports its power  ·  renting them all: $4.00/h")
    assert "renting" not in energy_line(COSTS._replace(priced=0))


SCRAPE = (
    MetricSample("vllm:cache_config_info", {"kv_cache_size_tokens": "16000"}, 1.0),
    *(
        MetricSample("vllm:time_to_first_token_seconds_bucket", {"le": le, "model_name": "llama"}, count)
        for le, count in (("0.1", 50.0), ("0.2", 100.0))
    ),
    MetricSample("vllm:time_to_first_token_seconds_sum", {}, 9.0),
    MetricSample("vllm:time_to_first_token_seconds_count", {}, 100.0),
)


@pytest.mark.parametrize("is_rich", [True, False])
def test_a_server_is_one_line_of_what_is_known(is_rich):
    run = run_of_scrape(SCRAPE)
    assert run is not None
    if is_rich:
        server = FleetServer("a:8000", "vllm-0", run, 7.0, 1.0, 0.5, 100.0, 300.0)
        assert server_line(ServingCost(server, 2, 4.0, 11.1)) == (
            "vllm llama at vllm-0  ·  100.0 output tokens/s  ·  7 running  ·  1 waiting  ·  KV cache 16,000 tokens  ·  "
            "50\u2009% of the KV cache in use  ·  first token p50 100\u2009ms, p95 190\u2009ms  ·  "
            "$11.10 per million output tokens (rent of 2 GPUs)"
        )
    else:
        bare = run.replaced(first_token=run.first_token.replaced(percentiles=()), cache_tokens=None, model=None)
        assert server_line(ServingCost(FleetServer("a:8000", "", bare), 0, None, None)) == "vllm at a:8000"


def test_prices_are_those_of_the_catalog():
    prices = FleetPrices(load_catalog(), datetime.date(2026, 11, 28))
    assert prices.usd_per_hour(cards(1)[0].device)[0] > 0
    assert Work().title == ""
