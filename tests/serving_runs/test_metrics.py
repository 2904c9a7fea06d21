"""The table of metrics of servers, which whoever watches them shares."""

from planner.serving_runs.metrics import ENGINES, METRICS, metrics_of
from planner.serving_runs.record import ServingRun
from planner.workload.software.registry import SERVERS

MOMENTARY = {"running", "waiting", "cache_usage", "cache_blocks"}


def test_metrics_state_fields_of_a_run_or_of_the_moment():
    assert {metric.field for metric in METRICS} - MOMENTARY <= set(ServingRun.model_fields)
    assert all(metric.label for metric in METRICS if metric.kind == "label")


def test_servers_are_programs_of_plans():
    assert set(SERVERS) >= ENGINES
    assert {metric.engine for metric in metrics_of("sglang")} == {"sglang"}


def test_what_replaced_a_metric_comes_first():
    fields = [metric.field for metric in metrics_of("vllm") if not metric.until]
    assert all(metric.field in fields for metric in METRICS if metric.until)
