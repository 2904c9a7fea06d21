"""Prometheus' alerting rules from the diagnosis, and a Grafana dashboard, both for what the monitor exposes."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from planner.monitor.diagnosis.rules import RULES
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.exposition.names import (
    AGE,
    DIAGNOSIS,
    FAULT,
    GPU_PREFIX,
    HOST_PREFIX,
    INFO,
    PLAN_MEMORY,
    PLAN_POWER,
    STATE,
    XIDS,
)
from planner.monitor.readings.faults import FAULTS, FaultKind
from planner.present.monitor.events import OTHER_XID_ADVICE, XID_GROUPS, diagnosis_title

_SEVERITIES: Final = {"error": "critical", "warning": "warning", "note": "info"}
# The diagnosis itself looks back over minutes; a card that is held idle is worth a message after half an hour.
_LASTING: Final = {VerdictKind.IDLE_HELD: "30m"}
_USUAL_LASTING: Final = "5m"
_CARD: Final = "GPU {{ $labels.gpu }} of {{ $labels.instance }}"


def alerting_rules() -> str:
    """Return the rules as YAML, for `rule_files` of prometheus.yml."""
    rules = [*_state_rules(), *_diagnosis_rules()]
    content = {"groups": [{"name": "gpu-planner", "rules": rules}]}
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1_000)
    return text


def _rule(
    name: str, expression: str, severity: str, summary: str, description: str, lasting: str = ""
) -> dict[str, Any]:
    return {
        "alert": f"GpuPlanner{name}",
        "expr": expression,
        **({"for": lasting} if lasting else {}),
        "labels": {"severity": severity},
        "annotations": {"summary": summary, "description": description},
    }


def _state_rules() -> Iterator[dict[str, Any]]:
    """Yield the rules on cards that are lost or silent, on errors of the driver, and on the monitor itself."""
    lost, silent = FAULTS[FaultKind.LOST], FAULTS[FaultKind.CARD_NOT_ANSWERING]
    yield _rule("CardLost", f'{STATE.name}{{state="lost"}} == 1', "critical", f"{_CARD} is lost", lost.advice)
    yield _rule(
        "CardSilent",
        f'{STATE.name}{{state="silent"}} == 1',
        "critical",
        f"{_CARD}: {silent.title}",
        silent.advice,
        "2m",
    )
    known = "|".join(str(number) for group in XID_GROUPS for number in group.numbers)
    for group in XID_GROUPS:
        numbers = "|".join(map(str, group.numbers))
        severity = "warning" if group.is_of_program else "critical"
        yield _xid_rule(f"Xid{group.name}", f'{{xid=~"{numbers}"}}', severity, group.advice)
    yield _xid_rule("XidOther", f'{{xid!~"{known}"}}', "critical", OTHER_XID_ADVICE)
    yield _rule(
        "Fault",
        f'{FAULT.name}{{severity="error"}} == 1',
        "critical",
        "The monitor of {{ $labels.instance }} reports: {{ $labels.fault }}",
        "Run there: gpu-planner monitor --doctor",
        "2m",
    )
    yield _rule(
        "Stale",
        f"{AGE.name} > 60",
        "warning",
        "The readings of {{ $labels.instance }} are {{ $value | humanizeDuration }} old",
        "The monitor there runs, but reads nothing; run there: gpu-planner monitor --doctor",
    )
    yield _rule(
        "MemoryAbovePlan",
        f"{GPU_PREFIX}memory_used_bytes > 1.05 * {PLAN_MEMORY.name}",
        "warning",
        f"{_CARD} uses {{{{ $value | humanize1024 }}}}B, more than its plan predicts",
        "The job may not be the planned one; compare them in GPU Planner's Monitor tab.",
        _USUAL_LASTING,
    )


def _xid_rule(name: str, selector: str, severity: str, advice: str) -> dict[str, Any]:
    # A counter that begins at 1 has not increased: its series is new.
    series = f"{XIDS.name}{selector}"
    expression = f"increase({series}[10m]) > 0 or ({series} unless {series} offset 10m)"
    return _rule(name, expression, severity, f"{_CARD} reported Xid {{{{ $labels.xid }}}}", advice)


def _diagnosis_rules() -> Iterator[dict[str, Any]]:
    """Yield a rule for each kind of verdict that asks for something to be done."""
    done: set[tuple[VerdictKind, str]] = set()
    for rule in RULES:
        severity = _SEVERITIES.get(rule.severity)
        is_wanted = rule.severity in ("error", "warning") or rule.kind in _LASTING
        if severity is None or not is_wanted or (rule.kind, severity) in done:
            continue
        done.add((rule.kind, severity))
        name = "".join(word.capitalize() for word in re.split(r"\W", rule.kind.value))
        expression = f'{DIAGNOSIS.name}{{verdict="{rule.kind.value}",severity="{rule.severity}"}} == 1'
        title = diagnosis_title(rule.kind.value).partition(":")[0]
        yield _rule(
            f"{name}{'Failure' if rule.severity == 'error' else ''}",
            expression,
            severity,
            f"{_CARD}: {title}",
            " ".join((rule.sentence, *rule.advice)),
            _LASTING.get(rule.kind, _USUAL_LASTING),
        )


class _Panel(NamedTuple):
    """A plot of the dashboard: expressions with their legends, and the unit by Grafana's name."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    most: float | None = None


_SELECTED: Final = '{instance=~"$instance",gpu=~"$gpu"}'
_HOST_SELECTED: Final = '{instance=~"$instance"}'
_LEGEND: Final = "{{instance}} · {{gpu}}"


def _card_panel(title: str, unit: str, name: str, *more: tuple[str, str], most: float | None = None) -> _Panel:
    queries = ((f"{GPU_PREFIX}{name}{_SELECTED}", _LEGEND), *more)
    return _Panel(title, unit, queries, most)


_PANELS: Final = (
    _card_panel("Utilization", "percentunit", "utilization_ratio", most=1),
    _card_panel(
        "Memory used, and the plan's prediction",
        "bytes",
        "memory_used_bytes",
        (f"{PLAN_MEMORY.name}{_SELECTED}", f"{_LEGEND} · plan"),
    ),
    _card_panel(
        "Power, and the plan's prediction",
        "watt",
        "power_watts",
        (f"{PLAN_POWER.name}{_SELECTED}", f"{_LEGEND} · plan"),
    ),
    _card_panel("Temperature", "celsius", "temperature_celsius"),
    _card_panel("SM clock", "hertz", "sm_clock_hertz"),
    _Panel(
        "Time in which the clock was held down",
        "percentunit",
        ((f"{GPU_PREFIX}throttled_ratio{_SELECTED}", f"{_LEGEND} · {{{{reason}}}}"),),
        1,
    ),
    _Panel(
        "PCIe",
        "Bps",
        (
            (f"{GPU_PREFIX}pcie_receive_bytes_per_second{_SELECTED}", f"{_LEGEND} · in"),
            (f"{GPU_PREFIX}pcie_transmit_bytes_per_second{_SELECTED}", f"{_LEGEND} · out"),
        ),
    ),
    _card_panel("Memory bandwidth used", "percentunit", "dram_active_ratio", most=1),
    _Panel(
        "Energy in a day",
        "kwatth",
        ((f"increase({GPU_PREFIX}energy_joules_total{_SELECTED}[1d]) / 3.6e6", _LEGEND),),
    ),
    _Panel(
        "CPU and waiting for disks",
        "percentunit",
        (
            (f"{HOST_PREFIX}cpu_ratio{_HOST_SELECTED}", "{{instance}} · CPU"),
            (f"{HOST_PREFIX}io_wait_ratio{_HOST_SELECTED}", "{{instance}} · I/O wait"),
        ),
        1,
    ),
)
_TABLES: Final = (
    ("Diagnosis", f"{DIAGNOSIS.name}{_SELECTED} == 1", ("instance", "gpu", "verdict", "severity")),
    (
        "GPUs that are not read",
        f'{STATE.name}{{instance=~"$instance",state!="ok"}} == 1',
        ("instance", "gpu", "state"),
    ),
    ("Xid errors", f"{XIDS.name}{_SELECTED}", ("instance", "gpu", "xid", "Value")),
)
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS, _WIDTH, _HEIGHT = 2, 12, 8
_TABLE_WIDTH: Final = 8


def grafana_dashboard() -> str:
    """Return the dashboard as JSON, for Grafana's import of dashboards."""
    tables = [
        {
            **_placed("table", title, index, index * _TABLE_WIDTH, 0, _TABLE_WIDTH),
            "targets": [{"refId": "A", "expr": expression, "instant": True, "format": "table", "datasource": _SOURCE}],
            "transformations": [
                {"id": "organize", "options": {"includeByName": dict.fromkeys(columns, True)}},
            ],
        }
        for index, (title, expression, columns) in enumerate(_TABLES)
    ]
    plots = [_plot(panel, index) for index, panel in enumerate(_PANELS)]
    dashboard = {
        "title": "GPU Planner",
        "uid": "gpu-planner",
        "tags": ["gpu"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
                _variable("instance", "Machine", f"label_values({INFO.name}, instance)"),
                _variable("gpu", "GPU", f'label_values({INFO.name}{{instance=~"$instance"}}, gpu)'),
            ]
        },
        "panels": [*tables, *plots],
    }
    return json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n"


def _placed(kind: str, title: str, number: int, x: int, y: int, width: int) -> dict[str, Any]:
    place = {"x": x, "y": y, "w": width, "h": _HEIGHT}
    return {"id": number + 1, "type": kind, "title": title, "datasource": _SOURCE, "gridPos": place}


def _plot(panel: _Panel, index: int) -> dict[str, Any]:
    row, column = divmod(index, _COLUMNS)
    defaults = {"unit": panel.unit, "min": 0, **({} if panel.most is None else {"max": panel.most})}
    return {
        **_placed("timeseries", panel.title, len(_TABLES) + index, column * _WIDTH, (row + 1) * _HEIGHT, _WIDTH),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expression, "legendFormat": legend, "datasource": _SOURCE}
            for number, (expression, legend) in enumerate(panel.queries)
        ],
    }


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    }
