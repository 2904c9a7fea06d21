"""Rules and dashboard: every verdict that asks for something has a rule, and every expression names what is exposed."""

import json
import re

import yaml

from planner.monitor.diagnosis.rules import RULES
from planner.monitor.exposition.names import CARD_SERIES, FAMILIES, HOST_SERIES
from planner.present.monitor.events import XID_GROUPS
from planner.present.monitor.prometheus import alerting_rules, grafana_dashboard

EXPOSED = {one.name for one in (*CARD_SERIES, *HOST_SERIES, *FAMILIES)}


def named_in(expression):
    return set(re.findall(r"gpu_planner_\w+", expression))


def test_every_rule_names_what_is_exposed_and_says_what_to_do():
    (group,) = yaml.safe_load(alerting_rules())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names)
    severities = {rule["alert"]: rule["labels"]["severity"] for rule in group["rules"]}
    groups = {f"GpuPlannerXid{each.name}": each.is_of_program for each in XID_GROUPS}
    assert {name for name in groups if severities[name] == "warning"} == {name for name in groups if groups[name]}
    assert 0 < sum(groups.values()) < len(groups)
    assert {rule["alert"]: rule.get("for") for rule in group["rules"]}["GpuPlannerFault"] == "2m"
    assert {f"GpuPlanner{name}" for name in ("CardLost", "CardSilent", "XidOther", "Fault", "Stale")} <= {*names}
    for rule in group["rules"]:
        assert named_in(rule["expr"])
        assert named_in(rule["expr"]) <= EXPOSED
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
    expressions = " ".join(rule["expr"] for rule in group["rules"])
    for rule in RULES:
        is_wanted = rule.severity in ("error", "warning")
        assert (f'verdict="{rule.kind.value}",severity="{rule.severity}"' in expressions) == (
            is_wanted or rule.kind == "idle-held"
        )


def test_the_dashboard_names_what_is_exposed_and_places_panels_side_by_side():
    dashboard = json.loads(grafana_dashboard())
    panels = dashboard["panels"]
    for panel in panels:
        for target in panel["targets"]:
            assert named_in(target["expr"])
            assert named_in(target["expr"]) <= EXPOSED
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _y in cells) < 24
