"""Training files of other programs become the workloads that those programs would run."""

import pytest
from training_files import AXOLOTL_QLORA, FSDP_2, LLAMA_FACTORY, TRL, ZERO_2, read

from planner.errors import RecipeError
from planner.workload.recipes.detect import detect_format
from planner.workload.recipes.recipe import FORMATS

EXAMPLES = {
    "axolotl": AXOLOTL_QLORA,
    "trl": TRL,
    "transformers": {"per_device_train_batch_size": 4, "bf16": True, "output_dir": "out"},
    "deepspeed": ZERO_2,
    "accelerate": FSDP_2,
    "llama-factory": LLAMA_FACTORY,
}


@pytest.mark.parametrize(("kind", "config"), EXAMPLES.items())
def test_the_program_is_told_by_its_keys_and_every_key_has_an_account(kind, config):
    recipe = read(config)
    assert recipe.format == kind == detect_format(config)
    assert recipe.title == FORMATS[kind].title
    told = {entry.key.partition(".")[0] for entry in (*recipe.read, *recipe.ignored)}
    assert set(config) <= told
    assert not [entry.key for entry in recipe.ignored if entry.reason == "unknown"]


def test_torchtune_is_refused_by_name():
    with pytest.raises(RecipeError, match="is a configuration of torchtune, which is not read"):
        read({"model": {"_component_": "torchtune.models.llama3_1.lora_llama3_1_8b"}, "batch_size": 2})
