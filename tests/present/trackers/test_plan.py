"""A plan beside measured values: its predictions for the cards that it is for."""

from recording_kit import A, B

from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Reading
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.trackers.plan import tracked_plan

PLAN = Plan(model=ModelChoice(id="Qwen/Qwen2.5-0.5B"), gpu="rtx-4090", count=2)
MEMORY = {"memory_total_bytes": Reading(24_564.0 * 2**20)}


def test_each_card_of_the_plan_has_its_predictions(catalog):
    devices = tuple(Device(uuid, "NVIDIA GeForce RTX 4090", at, facts=MEMORY) for at, uuid in enumerate((A, B)))
    found = tracked_plan(PLAN.model_dump(mode="json"), Inventory(devices=devices), catalog)
    expected = {"memory_bytes": evaluate(PLAN, catalog).memory.total_bytes, "power_watts": 450.0}
    assert found.predictions == {"plan/0": expected, "plan/1": expected}
    assert found.sentence.startswith("Qwen/Qwen2.5-0.5B · ")
    assert found.fields["count"] == 2


def test_a_card_of_unknown_power_has_only_memory(catalog):
    gpus = [gpu for gpu in catalog.hardware.gpus if gpu.vendor == "NVIDIA" and gpu.drawn_watts is None]
    for gpu in gpus:
        device = Device(A, gpu.name, 0)
        plan = PLAN.evolve(gpu=gpu.id, count=1)
        found = tracked_plan(plan.model_dump(mode="json"), Inventory(devices=(device,)), catalog)
        if found.predictions:
            assert set(found.predictions["plan/0"]) == {"memory_bytes"}
            return
    raise AssertionError("every card has a known power")
