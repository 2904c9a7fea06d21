"""Adapter configurations of PEFT."""

import pytest
from training_files import read, reason

from planner.errors import RecipeError
from planner.workload.recipes.recipe import NEUTRAL
from planner.workload.training import Lora, Training


def test_peft_adapters():
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": "meta-llama/Llama-3.1-8B",
        "r": 32,
        "lora_alpha": 64,
        "lora_dropout": 0.05,
        "target_modules": ["q_proj", "v_proj"],
        "use_dora": True,
        "bias": "none",
        "modules_to_save": ["lm_head"],
        "rank_pattern": {},
    }
    found = read(config)
    assert (found.format, found.model) == ("peft", "meta-llama/Llama-3.1-8B")
    assert found.workload == Training(
        method="lora", lora=Lora(rank=32, dropout=0.05, targets=("q_proj", "v_proj"), dora=True)
    )
    assert reason(found, "lora_alpha") == NEUTRAL
    assert reason(found, "bias") == reason(found, "rank_pattern") == "switched off"
    assert "fully trained" in reason(found, "modules_to_save")
    bare = read({"peft_type": "LORA", "bias": "all"})
    assert bare.workload.lora == Lora(rank=8, targets="all-linear")
    assert "biases" in reason(bare, "bias")
    assert read({"peft_type": "LORA", "target_modules": "all-linear"}).workload.lora.targets == "all-linear"
    pattern = read({"peft_type": "LORA", "target_modules": r".*\.q_proj"})
    assert pattern.workload.lora.targets == "all-linear"
    assert "a pattern of module names" in reason(pattern, "target_modules")
    with pytest.raises(RecipeError, match="peft_type is not estimated, got IA3"):
        read({"peft_type": "IA3"})
