import pytest
from launched import training

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings
from planner.launch.software.trainer import optimizer_name
from planner.workload.training import Training

CATALOG = planner.load_catalog()
FULL = {"activation_checkpointing": "full"}


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "adamw_torch_fused"),
        ({"optimizer_step": "fused"}, "adamw_torch_fused"),
        ({"optimizer_step": "foreach"}, "adamw_torch"),
        ({"optimizer": "adamw-8bit"}, "adamw_8bit"),
    ],
)
def test_an_optimizer_is_called_as_the_trainer_calls_it(fields, name):
    assert optimizer_name(Training(**fields)).replace("adamw_bnb_8bit", "adamw_8bit") == name


def test_an_optimizer_that_the_trainer_does_not_have_is_refused():
    with pytest.raises(SpecError, match="has no adamw with this step"):
        optimizer_name(Training(optimizer_step="loop"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"count": 8, "parallel": {"tensor": 8}}, "no splits of the model"),
        ({"method": "lora", "activation_checkpointing": "selective"}, "all layers or none"),
        ({"trainable": ("layers.31",)}, "no patterns"),
        ({"count": 8, "parallel": {"zero": 2}}, "in DeepSpeed only"),
        ({"count": 8, "parallel": {"zero": 3, "offload": "optimizer"}}, "in DeepSpeed only"),
    ],
)
def test_what_no_argument_says_is_refused(fields, message):
    with pytest.raises(SpecError, match=message):
        launch_settings(training(gpu="h200-sxm-141gb", **{**FULL, **fields}), CATALOG, "trl")
