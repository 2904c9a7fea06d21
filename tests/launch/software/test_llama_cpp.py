from launched import PLANS, serving

import planner
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()


def values(plan):
    return {row.key: row.value for row in launch_settings(plan, CATALOG, "llama-server").settings}


def test_the_context_is_for_all_slots_together():
    chosen = values(PLANS["gguf"])
    assert (chosen["--parallel"], chosen["--ctx-size"]) == (3, 3 * 8192)
    assert chosen["--kv-unified"] is True
    assert chosen["--fit"] == "off"
    assert chosen["--model"] == "./Llama-3.1-8B-Q4_K_M.gguf"


def test_a_file_of_ones_own_keeps_its_name():
    model = planner.ModelChoice.of_file("mine", CATALOG.models.model("meta-llama/Llama-3.1-8B"), "/models/my file.gguf")
    plan = serving("llama.cpp", weights="Q4_K_M").evolve(model=model)
    assert values(plan)["--model"] == "/models/my file.gguf"
    assert "'/models/my file.gguf'" in launch_settings(plan, CATALOG, "llama-server").files[0].text


def test_weights_as_stored_have_a_file_without_a_format():
    plan = serving("llama.cpp", weights="bf16")
    assert values(plan)["--model"].endswith(".gguf")


def test_layers_on_several_gpus_are_those_of_the_estimate():
    assert values(PLANS["gguf on 2"])["--tensor-split"] == "17,15"
    own = serving("llama.cpp", count=2, weights="Q8_0", parallel={"pipeline": 2, "pipeline_layers": (20, 12)})
    assert values(own)["--tensor-split"] == "20,12"
    unexpressed = {row.field for row in launch_settings(own, CATALOG, "llama-server").not_expressed}
    assert "parallel.pipeline_layers" not in unexpressed


def test_slots_besides_the_batch_are_left_to_the_clients():
    plan = serving("llama.cpp", weights="Q4_K_M", batch=2, engine={"slots": 4})
    settings = launch_settings(plan, CATALOG, "llama-server")
    assert "batch" in {row.field for row in settings.not_expressed}


def test_experts_in_ram_are_the_first_layers_or_named_ones():
    chosen = values(PLANS["gguf with experts in ram"])
    assert (chosen["--n-cpu-moe"], chosen["--load-mode"]) == (12, "none")
    chosen = values(PLANS["gguf with experts of 2 in ram"])
    assert chosen["--override-tensor"] == (r"blk\.(0|1|2|3|12|13|14|15)\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU")
    assert (chosen["--tensor-split"], "--n-cpu-moe" in chosen) == ("12,12", False)
    assert "--load-mode" not in values(PLANS["gguf"])
