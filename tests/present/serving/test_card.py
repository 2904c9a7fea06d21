from service_samples import FIRST_TOKEN, PER_TOKEN, held, latencies, simulation

from planner.present.serving.card import serving_view
from planner.serving.targets import Targets

TARGETS = Targets(limits=(FIRST_TOKEN, PER_TOKEN))


def test_the_card_has_a_row_for_each_time_beside_its_target():
    found = simulation(targets=(held(), held(PER_TOKEN, 0.04, 0.02, 0.08)))
    view = serving_view(found, TARGETS, 95.0)
    assert [(row.title, row.target) for row in view.rows] == [
        ("First token", "≤ 1\u2009s, met"),
        ("Per token", "≤ 50\u2009ms, probably met"),
        ("Whole answer", ""),
    ]
    assert view.percent == "p95"
    assert view.rows[0].percentile == "800\u2009ms (400 – 1,600)"
    assert "First token: median 400\u2009ms, p95 800\u2009ms (400 – 1,600), ≤ 1\u2009s, met" in view.text


def test_the_card_leaves_out_times_that_no_request_had():
    view = serving_view(simulation(latencies=(latencies(),), targets=()), Targets(), 99.0)
    assert [row.title for row in view.rows] == ["First token"]


def test_the_card_says_why_nothing_was_simulated():
    view = serving_view(simulation(unsupported="no memory is left for the KV cache"), TARGETS, 95.0)
    assert view.rows == ()
    assert view.text == "This service cannot be simulated: no memory is left for the KV cache."
