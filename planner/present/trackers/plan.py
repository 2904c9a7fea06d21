"""The plan of a recording as experiment trackers show it: its sentence, its fields, and predictions for the cards."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.errors import PlannerError
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.files import parse_plan
from planner.present.monitor.plan_on_cards import compare_plan_with_cards, match_cards
from planner.present.plan.phrase import plan_phrase
from planner.present.trackers.run import TrackedPlan


def tracked_plan(fields: Mapping[str, Any], inventory: Inventory, catalog: Catalog) -> TrackedPlan:
    """Return a plan, given as JSON values, with its predictions for those cards of `inventory` that it is for.

    Of a plan that this version or its catalog cannot evaluate, the sentence says why.
    """
    try:
        evaluation = evaluate(parse_plan(json.dumps(fields), Path("plan")), catalog)
    except PlannerError as error:
        return TrackedPlan(f"The plan cannot be evaluated: {error.message}", fields)
    latest = Latest()
    latest.note_inventory(inventory)
    matches = match_cards(catalog.hardware, inventory.devices)
    expected = compare_plan_with_cards(evaluation, matches, latest).expected
    predictions = {}
    for device in inventory.devices:
        if (prediction := expected.get(device.uuid)) is not None:
            values = {"memory_bytes": float(prediction.memory_bytes)}
            if prediction.power_watts is not None:
                values["power_watts"] = prediction.power_watts
            predictions[f"plan/{device.index}"] = values
    return TrackedPlan(plan_phrase(evaluation, catalog), fields, predictions)
