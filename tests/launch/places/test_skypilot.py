import pytest
import yaml
from launched import PLANS, training

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()


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
