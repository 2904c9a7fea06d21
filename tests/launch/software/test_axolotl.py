import pytest
import yaml
from launched import PLANS, training

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()
FULL = {"activation_checkpointing": "full"}


def config(plan):
    files = {file.name: file.text for file in launch_settings(plan, CATALOG, "axolotl").files}
    return yaml.safe_load(files["axolotl.yaml"])


def test_adapters_and_kernels():
    document = config(PLANS["lora with liger"])
    assert document["plugins"] == ["axolotl.integrations.liger.LigerPlugin"]
    assert document["adapter"] == "lora"
    assert config(PLANS["qlora"])["bnb_config_kwargs"]["bnb_4bit_use_double_quant"] is False


def test_adapters_in_16_bits_on_8_bits():
    lora = {"dora": True, "adapter_dtype": "bf16", "targets": ("q_proj",)}
    document = config(training(method="lora", weights="int8", lora=lora, **FULL))
    assert document["load_in_8bit"] is document["peft_use_dora"] is True
    assert document["peft_autocast_adapter_dtype"] is False


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"loss": "chunked", "loss_chunks": 4}, "chunked_cross_entropy_num_chunks"),
        ({"loss": "fused-linear"}, "plugins"),
        ({"compute": "amp-fp16"}, "fp16"),
    ],
)
def test_the_loss_and_the_precision(fields, key):
    assert key in config(training(method="lora", **FULL, **fields))


def test_a_format_that_it_does_not_load_is_refused():
    with pytest.raises(SpecError, match="loads a fully trained model in bf16"):
        config(PLANS["full in fsdp"])
    with pytest.raises(SpecError, match="does not compute in fp8"):
        config(training(gpu="h100-sxm5-80gb", count=8, compute="fp8", parallel={"zero": 3}, **FULL))
