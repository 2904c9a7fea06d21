import pytest
import yaml
from launched import PLANS, training

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()
FULL = {"activation_checkpointing": "full"}
LARGE = {"micro_batch": 8, "sequence_length": 512, "weights": "bf16", "optimizer": "sgd", **FULL}


def config(plan):
    files = {file.name: file.text for file in launch_settings(plan, CATALOG, "trl").files}
    return yaml.safe_load(files["sft.yaml"])


def test_adapters_on_4_bits():
    document = config(PLANS["qlora"])
    assert document["use_peft"] is document["load_in_4bit"] is True
    assert document["lora_target_modules"] == ["all-linear"]
    assert document["max_grad_norm"] == 0.0


def test_adapters_on_8_bits_with_magnitudes_in_fp16():
    document = config(training(method="lora", weights="int8", compute="amp-fp16", lora={"dora": True}, **FULL))
    assert document["load_in_8bit"] is document["use_dora"] is document["fp16"] is True
    assert document["bf16"] is False


def test_a_loss_in_chunks_has_256_tokens_each():
    plan = training(method="lora", loss="chunked", loss_chunks=10, sequence_length=2305, **FULL)
    assert config(plan)["loss_type"] == "chunked_nll"
    with pytest.raises(SpecError, match="no chunked loss in 5 chunks"):
        config(plan.evolve(workload=plan.workload.evolve(loss_chunks=5)))


def test_8_bits_of_computing_are_refused():
    with pytest.raises(SpecError, match="not in fp8"):
        config(training(gpu="h100-sxm5-80gb", count=8, compute="fp8", parallel={"zero": 3}, **FULL))


@pytest.mark.parametrize(
    ("name", "extras"),
    [("qlora", "[peft,quantization]"), ("lora with liger", "[liger,peft]"), ("full in zero-2", "[deepspeed]"),
     ("8 bits", "[quantization]"), ("full in fsdp", "")],
)  # fmt: skip
def test_what_the_plan_needs_beside_trl_is_installed_with_it(name, extras):
    assert launch_settings(PLANS[name], CATALOG, "trl").version == f"trl{extras}==1.16.0"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"alignment": {"method": "ppo"}, "loss": "full-logits"}, "no PPO any more"),
        ({"alignment": {"method": "grpo"}, "loss": "full-logits"}, "in tiles"),
        ({"alignment": {"method": "dpo", "reference": "kept"}, "method": "lora"}, "keeps no copy"),
        ({"alignment": {"method": "dpo", "reference": "none"}, "method": "lora"}, "compares with a reference"),
    ],
)
def test_objectives_that_trl_has_not_are_refused(changes, reason):
    with pytest.raises(SpecError, match=reason):
        launch_settings(training(gpu="h200-sxm-141gb", **LARGE | changes), CATALOG, "trl")


def grpo(**alignment):
    plan = training(gpu="h200-sxm-141gb", method="lora", alignment={"method": "grpo"} | alignment, **LARGE)
    files = {file.name: file.text for file in launch_settings(plan, CATALOG, "trl").files}
    return yaml.safe_load(files["grpo.yaml"])


def test_rewards_and_references_of_groups():
    asleep = grpo(engine="same-cards-asleep", reward="model", reference="adapter-off")
    assert asleep["reward_model_name_or_path"]
    assert "reward_funcs" not in asleep
    assert (asleep["beta"], asleep["vllm_mode"], asleep["vllm_enable_sleep_mode"]) == (0.04, "colocate", True)
    alone = grpo()
    assert (alone["beta"], alone["use_vllm"], "vllm_mode" in alone) == (0.0, False, False)
    apart = grpo(engine="other-cards")
    assert (apart["vllm_mode"], "vllm_gpu_memory_utilization" in apart) == ("server", False)
