"""The current state as JSON."""

import json

from pydantic_core import to_json
from state_kit import DEVICE, A, latest_of

from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.metrics import DEVICE_METRICS, FACTS, HOST_METRICS
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.report import state_report


def test_the_report_contains_every_quantity_or_the_cause_of_its_absence():
    fault = Fault(FaultKind.IMPLAUSIBLE, 0.0, A, "utilization_fraction")
    latest = latest_of(
        DEVICE,
        faults=(fault,),
        utilization_fraction=Reading(40.0, is_implausible=True),
        clock_reasons=0x44,
        fan_fraction=missing(Cause.NOT_SUPPORTED),
    )
    found = json.loads(to_json(state_report(latest)))
    assert list(found) == ["devices", "host", "state"]
    (device,) = found["devices"]
    assert set(device["metrics"]) == {metric.name for metric in DEVICE_METRICS}
    assert set(device["facts"]) == {metric.name for metric in FACTS}
    assert set(found["host"]["metrics"]) == {metric.name for metric in HOST_METRICS}
    assert device["metrics"]["utilization_fraction"] == 40
    assert device["implausible"] == ["utilization_fraction"]
    assert device["metrics"]["fan_fraction"] is None
    assert device["missing"]["fan_fraction"] == "not-supported"
    assert device["missing"]["power_watts"] == "not-yet"
    assert device["clock_reasons"] == ["power-cap", "hardware-thermal"]
    assert device["processes"][0]["host"]["started"] == "1970-01-01T00:00:00.000+00:00"
    assert device["processes"][1]["missing"]["memory_bytes"] == "hidden"
    assert found["host"]["cores"] == [0.5, 0.5]
    assert found["state"]["faults"][0]["kind"] == "implausible"
    assert found["state"]["sampler"]["calls"] == 90


def test_an_empty_state_has_a_report():
    found = state_report(Latest())
    assert found["devices"] == []
    assert found["state"]["at"] is None
    assert found["state"]["driver_version"] is None
    assert found["state"]["sampler"] is None
    assert found["host"]["missing"]["cpu_fraction"] is Cause.NOT_YET
