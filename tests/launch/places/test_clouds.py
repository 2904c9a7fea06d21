import pytest
import yaml
from launched import PLANS, training

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings
from planner.launch.places.clouds import DSTACK, SKYPILOT, card_name
from planner.launch.places.containers import KUBERNETES

CATALOG = planner.load_catalog()


@pytest.mark.parametrize("place", [DSTACK, KUBERNETES, SKYPILOT])
def test_each_name_is_of_one_card_of_the_catalog(place):
    assert all(CATALOG.hardware.gpu(name).id == name for name in place.card_names)
    assert len(set(place.card_names.values())) == len(place.card_names)


def test_a_name_of_several_cards_is_refused():
    with pytest.raises(SpecError, match="no name that means H100 PCIe"):
        card_name(CATALOG.hardware.gpu("h100-pcie-80gb"), SKYPILOT.card_names, "SkyPilot")
    assert card_name(CATALOG.hardware.gpu("l4"), SKYPILOT.card_names, "SkyPilot") == "L4"


def task(plan, program):
    return yaml.safe_load(launch_settings(plan, CATALOG, program, "skypilot").files[0].text)


def test_a_server_has_a_port_and_its_version():
    found = task(PLANS["served"], "vllm")
    assert found["resources"] == {"accelerators": "L40S:1", "ports": 8000}
    assert found["setup"] == "pip install vllm==0.33.0"


def test_several_nodes_find_each_other():
    found = task(training(count=16, parallel={"zero": 3}, activation_checkpointing="full"), "accelerate")
    assert found["num_nodes"] == 2
    assert 'MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)' in found["run"]


def rented(offer, mode="on-demand", gpu="a100-sxm4-80gb", count=1):
    plan = training(gpu=gpu, count=count, method="lora", activation_checkpointing="full")
    rent = plan.cost.rent.evolve(offer=offer, mode=mode)
    return task(plan.evolve(cost=plan.cost.evolve(rent=rent)), "trl")["resources"]


def offer(provider, **fields):
    return next(
        found
        for found in CATALOG.cost.offers
        if found.provider == provider
        and found.gpu == "a100-sxm4-80gb"
        and all(getattr(found, name) not in (None, value) for name, value in fields.items())
    )


def test_the_offer_of_the_plan_gives_cloud_region_spot_and_price():
    found = offer("GCP", region="global", spot_price_usd_per_hour=0)
    resources = rented(found.id, "spot", count=2)
    assert resources["infra"] == f"gcp/{found.region}"
    assert resources["use_spot"] is True
    each = found.spot_price_usd_per_hour / found.gpu_count
    assert 2 * each <= resources["max_hourly_cost"] < 2 * each + 0.0101
    # What is reserved has no price by the hour.
    assert "max_hourly_cost" not in rented(found.id, "reserved-1y")


def test_a_provider_without_regions_is_named_alone():
    found = offer("RunPod Secure")
    resources = rented(found.id)
    assert (resources["infra"], resources["use_spot"]) == ("runpod", False)


def test_spot_without_an_offer_is_written_and_the_rest_left_to_skypilot():
    assert rented(None, "spot") == {"accelerators": "A100-80GB-SXM:1", "use_spot": True}


def test_offers_that_skypilot_cannot_rent_are_refused():
    civo = next(found for found in CATALOG.cost.offers if found.provider == "Civo")
    with pytest.raises(SpecError, match="SkyPilot does not rent from Civo"):
        rented(civo.id)
    with pytest.raises(SpecError, match="the offer is of other GPUs"):
        rented(offer("GCP").id, gpu="l4")


def run(plan, program):
    return yaml.safe_load(launch_settings(plan, CATALOG, program, "dstack").files[0].text)


def test_a_server_is_a_service_and_a_training_a_task_with_its_files():
    assert (run(PLANS["served"], "vllm")["type"], run(PLANS["served"], "vllm")["port"]) == ("service", 8000)
    found = run(PLANS["qlora"], "axolotl")
    assert (found["type"], found["files"], found["nodes"]) == ("task", ["axolotl.yaml"], 1)
    assert found["resources"]["gpu"] == {"name": "L40S", "count": 1}


def test_several_nodes_of_dstack_find_each_other():
    found = run(training(count=16, parallel={"zero": 3}, activation_checkpointing="full"), "accelerate")
    assert found["nodes"] == 2
    install, script = found["commands"]
    assert install == "pip install accelerate==1.15.0"
    assert "$DSTACK_MASTER_NODE_IP" in script
