import json
from pathlib import Path

import pytest
from launched import LLAMA, PLANS, differences, read_back, serving, training, written
from recordings import training as traced_training
from recordings import two_steps

import planner
from planner.errors import PlannerError, SpecError
from planner.launch.launch import launch_settings, program_for, save_launch_files
from planner.launch.places import PLACES
from planner.launch.software import LAUNCHERS, REFUSED
from planner.memory.corrections import Correction
from planner.trace.analysis.memory import facts_of

CATALOG = planner.load_catalog()
KEYS = json.loads((Path(__file__).parents[1] / "truth" / "launch-keys.json").read_text())
SECTIONS = {"fsdp_config": "accelerate", "parallelism_config": "parallelism", "deepspeed": "deepspeed"}
OF_LAUNCHERS = {
    "--config_file", "--config", "--num_processes", "--num_gpus", "--launcher", "-f",
    "--nproc_per_node", "--standalone", "-m",
    "FORCE_TORCHRUN", "NPROC_PER_NODE",
}  # fmt: skip
"""Options of what starts a training, and variables of it."""
OF_LIBRARIES = {"bnb_4bit_use_double_quant", "lr"}
"""Keys that are handed on to bitsandbytes and to PyTorch's optimizer."""


def pairs(places):
    return [(name, program, place) for name in PLANS for program in LAUNCHERS for place in places]


@pytest.mark.parametrize("places", [("shell",), tuple(PLACES)[1:]], ids=["shell", "elsewhere"])
def test_what_is_written_gives_the_plan_again_without_our_comments(places, tmp_path):
    chosen = pairs(places) if places == ("shell",) else pairs(places)[::5]
    launched = [(case, written(PLANS[case[0]], CATALOG, *case[1:])) for case in chosen]
    done = [(case, settings) for case, settings in launched if not isinstance(settings, SpecError)]
    assert len(done) > 40

    wrong = {}
    for case, settings in done:
        folder = tmp_path / " ".join(case)
        folder.mkdir()
        recipe = read_back(settings, folder)
        unknown = [key.key for key in recipe.ignored if key.reason.startswith("unknown")]
        wrong[case] = differences(settings, recipe, CATALOG) + unknown
    assert {case: found for case, found in wrong.items() if found} == {}


def test_each_program_and_place_writes_some_plan():
    programs = {
        case[1] for case in pairs(("shell",)) if not isinstance(written(PLANS[case[0]], CATALOG, *case[1:]), SpecError)
    }
    assert programs == set(LAUNCHERS)


def test_each_key_is_one_that_the_named_version_knows():
    ours = {"llama-server": {"llama-server"}, "ollama": {"llama-server"}, "accelerate": {"accelerate"}}
    unknown = set()
    for name, program, place in pairs(("shell",)):
        settings = written(PLANS[name], CATALOG, program, place)
        for row in () if isinstance(settings, SpecError) else settings.settings:
            *sections, key = row.key.partition(":")[0].split(".")
            owners = {SECTIONS.get(section, program) for section in sections[:1]} or ours.get(program, {program})
            known = {one for owner in owners | ours.get(program, set()) if owner in KEYS for one in KEYS[owner]["keys"]}
            spellings = {key, key.removeprefix("--").replace("-", "_"), key.removeprefix("fsdp_")}
            spellings |= {key.removeprefix("parallelism_config_"), key.removeprefix("no-")}
            if program == "ollama" and not key.startswith("LLAMA_ARG_"):
                continue  # a Modelfile has no source that is read
            if key not in OF_LAUNCHERS | OF_LIBRARIES and not spellings & known:
                unknown.add((program, row.key))
    assert unknown == set()


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("vllm", "served"),
        ("sglang", "served by sglang"),
        ("tensorrt-llm", "served by tensorrt"),
        ("llama-server", "gguf"),
        ("ollama", "gguf"),
        ("accelerate", "full in fsdp"),
        ("deepspeed", "full in zero-2"),
        ("torchtitan", "in stages"),
        ("trl", "lora"),
        ("axolotl", "qlora"),
        ("llama-factory", "qlora"),
    ],
)
def test_the_files_of_a_program_in_each_place_are_known(program, name, golden):
    blocks = []
    for place in PLACES:
        found = written(PLANS[name], CATALOG, program, place)
        files = () if isinstance(found, SpecError) else found.files
        blocks += [f"===== {place}: refused: {found.message}\n"] if isinstance(found, SpecError) else []
        blocks += [f"===== {place}: {file.name}\n{file.text}" for file in files]
    golden(f"launch/{program}.txt", "\n".join(blocks))


def test_each_setting_says_what_it_is_for():
    settings = launch_settings(PLANS["qlora"], CATALOG, "axolotl")
    assert all(row.comment for row in settings.settings)
    assert {"method", "micro_batch", "sequence_length"} <= {field for row in settings.settings for field in row.fields}


def test_fields_that_a_program_has_no_key_for_are_named_in_the_result_and_the_file():
    plan = training(method="lora", lora={"rank": 8}, other_processes_bytes=2**30, activation_checkpointing="full")
    settings = launch_settings(plan, CATALOG, "accelerate")
    named = {row.field: row for row in settings.not_expressed}
    assert {"model", "gpu", "method", "lora.rank", "micro_batch", "other_processes_bytes"} <= set(named)
    assert named["lora.rank"].reason == "your script sets it"
    assert "# Not expressed: lora.rank = 8: your script sets it" in settings.files[0].text


def test_a_plan_that_leaves_its_program_open_is_for_the_one_that_is_named():
    plan = planner.Plan(model=LLAMA, gpu="l40s", workload=planner.Inference(batch=2))
    assert launch_settings(plan, CATALOG, "vllm").plan.workload.profile == "vllm"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_program_that_is_not_written_is_refused_with_the_reason(name):
    with pytest.raises(SpecError, match="no files are written for") as refused:
        launch_settings(PLANS["served"], CATALOG, name)
    assert REFUSED[name] in refused.value.message


@pytest.mark.parametrize(
    ("plan", "program", "place", "message"),
    [
        (PLANS["served"], "vlm", "shell", "no program is called 'vlm'. Did you mean vllm"),
        (PLANS["served"], "vllm", "cluster", "no place is called 'cluster'"),
        (PLANS["served"], "accelerate", "shell", "the plan is for inference"),
        (PLANS["served"], "llama-server", "shell", "the plan is for vllm, which llama-server does not run"),
        (PLANS["gguf"], "ollama", "kubernetes", "no files are written for Ollama in Kubernetes"),
        (PLANS["served"].evolve(gpu=None), "vllm", "shell", "the plan has no GPU"),
        (training(micro_batch=64), "accelerate", "shell", "does not fit"),
        (serving("vllm", gpu="tesla-t4"), "vllm", "shell", "bf16"),
        (serving(None, weights="Q4_K_M", gpu_layers=20), "vllm", "shell", "gpu_layers is a setting of llama.cpp"),
        (training(count=12, parallel={"zero": 3}, activation_checkpointing="full"), "trl", "shell", "whole nodes"),
        (training(count=16, parallel={"zero": 3}, activation_checkpointing="full"), "trl", "slurm", "nodes of TRL"),
        (
            training(count=16, parallel={"zero": 3}, activation_checkpointing="full"),
            "accelerate",
            "shell",
            "nodes of shell",
        ),
    ],
)
def test_what_cannot_run_so_is_refused_by_name(plan, program, place, message):
    with pytest.raises(SpecError, match=message):
        launch_settings(plan, CATALOG, program, place)


def test_the_training_of_a_pipeline_has_a_script_of_its_own():
    model = planner.ModelChoice(id="stable-diffusion-v1-5/stable-diffusion-v1-5")
    plan = planner.Plan(model=model, workload=planner.Training(), gpu="rtx-4090")
    with pytest.raises(SpecError, match="training of image pipelines"):
        launch_settings(plan, CATALOG, "trl")


def test_a_traced_module_has_no_settings_and_a_correction_is_named():
    traced = planner.ModelChoice.of_trace(facts_of(two_steps(2**30, traced_training())))
    with pytest.raises(SpecError, match="a script of its own"):
        launch_settings(PLANS["served"].evolve(model=traced), CATALOG, "vllm")
    correction = Correction(
        terms=(),
        gpu="l40s",
        model_type="llama",
        profile="vllm",
        task="inference",
        log="vllm",
        date="2026-11-01",
        digest="ab",
    )
    named = launch_settings(PLANS["served"].evolve(corrections=(correction,)), CATALOG, "vllm").not_expressed
    assert "corrections" in {row.field for row in named}


def test_files_are_not_replaced_by_others(tmp_path):
    settings = launch_settings(PLANS["served"], CATALOG, "vllm")
    save_launch_files(settings, tmp_path / "a")
    save_launch_files(settings, tmp_path / "a")
    (tmp_path / "a" / "run.sh").write_text("mine")
    with pytest.raises(PlannerError, match="exists with another content"):
        save_launch_files(settings, tmp_path / "a")
    with pytest.raises(PlannerError, match="cannot be written"):
        save_launch_files(settings, tmp_path / "a" / "run.sh")


def test_nothing_secret_is_written(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    texts = [file.text for place in PLACES for file in launch_settings(PLANS["lora"], CATALOG, "trl", place).files]
    assert not any("hf_secret" in text for text in texts)


def test_an_objective_that_a_program_has_not_is_refused():
    with pytest.raises(SpecError, match="no files are written for DPO in torchtitan") as refused:
        launch_settings(training(alignment={"method": "dpo"}), CATALOG, "torchtitan")
    assert "trl" in refused.value.hint


def test_a_plan_beside_another_is_for_its_own_program_on_a_port_of_its_own():
    plan = serving("vllm", gpu="h100-sxm5-80gb")
    assert program_for(plan) == "vllm"
    assert program_for(serving("llama.cpp", weights="Q4_K_M")) == "llama-server"
    beside = launch_settings(plan, CATALOG, "vllm", ports_on=2)
    assert "--port 8002" in beside.files[0].text
    assert "--port" not in launch_settings(plan, CATALOG, "vllm").files[0].text
    with pytest.raises(SpecError, match="no files are written for the program of"):
        program_for(serving("gpt-fast"))


@pytest.mark.parametrize(
    ("profile", "program", "key"),
    [
        ("sglang", "sglang", "--speculative-draft-model-path"),
        ("tensorrt-llm", "tensorrt-llm", "speculative_config.speculative_model_dir"),
        ("llama.cpp", "llama-server", "--spec-draft-model"),
    ],
)
def test_a_head_that_is_not_named_has_a_place_beside_the_model(profile, program, key):
    weights = {"weights": "Q4_K_M"} if profile == "llama.cpp" else {}
    plan = serving(profile, gpu="h100-sxm5-80gb", speculation={"method": "eagle3"}, **weights)
    found = {row.key: row for row in launch_settings(plan, CATALOG, program).settings}
    assert "Llama-3.1-8B-eagle3" in found[key].value
    assert "speculation.model" not in found[key].fields


def test_a_draft_is_named_as_programs_know_it():
    plan = serving("vllm", speculation={"model": "llama3.2:1b"})
    found = {row.key: row.value for row in launch_settings(plan, CATALOG, "vllm").settings}
    assert '"meta-llama/Llama-3.2-1B"' in found["--speculative-config"]


def test_guesses_from_repeated_words_have_a_size_of_their_own_in_llama_server():
    plan = serving("llama.cpp", weights="Q4_K_M", speculation={"method": "ngram", "tokens": 8})
    found = {row.key: row.value for row in launch_settings(plan, CATALOG, "llama-server").settings}
    assert found["--spec-ngram-simple-size-m"] == 8
    assert "--spec-draft-n-max" not in found
