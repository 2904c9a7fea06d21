import pytest
import yaml
from launched import PLANS, training

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()
FULL = {"activation_checkpointing": "full"}


def config(plan):
    files = {file.name: file.text for file in launch_settings(plan, CATALOG, "llama-factory").files}
    return yaml.safe_load(files["llama_factory.yaml"])


def test_adapters_on_4_and_8_bits():
    assert config(PLANS["qlora"])["quantization_bit"] == 4
    document = config(training(method="lora", weights="int8", lora={"dora": True}, **FULL))
    assert (document["quantization_bit"], document["use_dora"], document["lora_target"]) == (8, True, "all")
    assert config(PLANS["lora"])["lora_target"] == "q_proj,v_proj"


@pytest.mark.parametrize(("profile", "key"), [("liger", "enable_liger_kernel"), ("unsloth", "use_unsloth")])
def test_kernels(profile, key):
    assert config(training(method="lora", profile=profile, **FULL))[key] is True


def test_precision():
    assert config(PLANS["pure bf16"])["pure_bf16"] is True
    assert config(training(method="lora", compute="fp32", **FULL))["bf16"] is False
    with pytest.raises(SpecError, match="does not compute in fp8"):
        config(training(gpu="h100-sxm5-80gb", count=8, compute="fp8", parallel={"zero": 3}, **FULL))
    with pytest.raises(SpecError, match="no chunked loss"):
        config(training(method="lora", loss="chunked", **FULL))
