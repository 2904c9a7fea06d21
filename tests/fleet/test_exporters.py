"""The tables of exporters name quantities and units that there are, each metric once."""

from collections import Counter

from planner.fleet.exporters import EXPORTERS, HOST_QUERIES
from planner.monitor.readings.metrics import BY_NAME, HOST_BY_NAME


def test_every_metric_states_a_quantity_of_ours_in_a_known_unit():
    for exporter in EXPORTERS:
        for metric in exporter.metrics:
            assert metric.use in ("info", "xid") or metric.ours in BY_NAME, metric
            assert metric.scale > 0


def test_a_metric_is_in_the_table_once_for_its_labels():
    for exporter in EXPORTERS:
        counts = Counter((metric.name, metric.where) for metric in exporter.metrics)
        assert [name for name, count in counts.items() if count > 1] == []


def test_cards_are_found_by_metrics_that_the_table_has():
    for exporter in EXPORTERS:
        assert set(exporter.alive) <= {metric.name for metric in exporter.metrics}


def test_hosts_are_asked_for_quantities_of_hosts():
    assert set(HOST_QUERIES) <= set(HOST_BY_NAME)
    assert HOST_QUERIES["io_wait_fraction"].format(range="60s").count("[60s]") == 1
