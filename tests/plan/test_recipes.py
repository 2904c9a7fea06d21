"""Presets, and training files on disk, which are read with care, whoever wrote them."""

import json

import pytest
from effort import refused_at_once
from hypothesis import given
from hypothesis import strategies as st
from recordings import training, two_steps

from planner import load_presets, plan_of_preset, with_preset
from planner.errors import CatalogError, RecipeError, SpecError
from planner.plan.catalog import load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.files import load_plan, save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recipes import (
    MAX_BYTES,
    Preset,
    find_preset,
    is_recipe_file,
    load_recipe,
    parse_recipe,
    plan_of_recipe,
    with_recipe,
)
from planner.present.plan.starting_points import preset_detail, preset_notes, recipe_details, recipe_summary
from planner.trace.analysis.memory import facts_of
from planner.units import GIB
from planner.workload.parallel import CardCount
from planner.workload.recipes.detect import read_recipe
from planner.workload.recipes.keys import (
    AXOLOTL_NEUTRAL,
    AXOLOTL_OTHERS,
    LLAMA_FACTORY_NEUTRAL,
    LLAMA_FACTORY_OTHERS,
    TRAINER_NEUTRAL,
    TRAINER_OTHERS,
    TRL_NEUTRAL,
    TRL_OTHERS,
)
from planner.workload.recipes.recipe import split_keys
from planner.workload.workload import Inference, Training

YAML = """\
base_model: meta-llama/Llama-3.1-8B  # a comment
sequence_len: 4096
micro_batch_size: 2
learning_rate: 2e-5
wandb_project:
datasets:
  - path: a/b
    type: alpaca
"""


KEYS = sorted(
    split_keys(
        "base_model adapter micro_batch_size sequence_len bf16 fp16 tf32 lora_r lora_dropout plugins fsdp fsdp_config "
        "deepspeed optimizer optim zero_optimization stage offload_optimizer device distributed_type deepspeed_config "
        "zero_stage num_processes mixed_precision use_peft load_in_4bit loss_type max_length dtype finetuning_type "
        "quantization_bit pure_bf16 flash_attn per_device_train_batch_size gradient_checkpointing max_grad_norm type "
        "enabled train_batch_size train_micro_batch_size_per_gpu unfrozen_parameters parallelism_config tp_size"
    )
)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 10)
    | st.floats()
    | st.sampled_from(["auto", "qlora", "lora", "bf16", "cpu", "nvme", "full", "FSDP", "DEEPSPEED", "no", "8", "1e-3"])
    | st.text(max_size=6)
)


CONFIGS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_training_file_becomes_a_plan(tmp_path):
    file = write(tmp_path / "full.yml", YAML)
    recipe = load_recipe(file)
    assert recipe.workload.sequence_length == 4096
    plan = plan_of_recipe(recipe, file, load_catalog().models)
    assert (plan.model.id, plan.workload, plan.count) == ("meta-llama/Llama-3.1-8B", recipe.workload, 1)


def test_a_plan_gets_the_number_of_cards_of_the_file():
    plan = Plan(model=ModelChoice(id="x"), count=2)
    assert with_recipe(plan, read_recipe({"distributed_type": "MULTI_GPU", "num_processes": 8}, "")).count == 8
    assert with_recipe(plan, read_recipe({"base_model": "x", "tensor_parallel_size": 4}, "")).count == 4
    assert with_recipe(plan, read_recipe({"base_model": "x"}, "")).count == 2


def test_the_cards_of_a_recipe_that_shares_nothing_are_replicas():
    plan = Plan(model=ModelChoice(id="x"), count=2)
    for fields in ({"distributed_type": "MULTI_GPU", "num_processes": 8}, {"zero_optimization": {"stage": 0}}):
        parallel = with_recipe(plan, read_recipe(fields, "")).workload.parallel
        assert (parallel.sharing, parallel.is_plain) == ("manual", True)
    assert with_recipe(plan, read_recipe({"base_model": "x"}, "")).workload.parallel.is_open


def test_the_model_may_be_the_users_own_file(tmp_path):
    fields = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    fields |= {"num_attention_heads": 4, "vocab_size": 1000}
    config = write(tmp_path / "config.json", json.dumps(fields))
    recipe = read_recipe({"base_model": str(config)}, "x.yml")
    assert plan_of_recipe(recipe, tmp_path / "x.yml", load_catalog().models).model.architecture is not None


@pytest.mark.parametrize(
    ("config", "said", "hint"),
    [
        ({"base_model": "no/such-model"}, "'no/such-model' is not in the catalog", "hf:no/such-model"),
        ({"zero_optimization": {"stage": 1}}, "names no model", "gpu-planner fit MODEL"),
    ],
)
def test_an_unknown_model_is_an_error(tmp_path, config, said, hint):
    with pytest.raises(RecipeError, match=r"recipe\.yml") as caught:
        plan_of_recipe(read_recipe(config, ""), tmp_path / "recipe.yml", load_catalog().models)
    assert said in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("name", "content", "is_one"),
    [
        ("a.yaml", "", True),
        ("a.YML", "x: 1", True),
        ("ds.json", '{"zero_optimization": {"stage": 2}}', True),
        ("args.json", '{"per_device_train_batch_size": 1}', True),
        ("config.json", '{"model_type": "llama", "optim": 1}', False),
        ("plan.json", '{"schema_version": 1}', False),
        ("workload.json", '{"task": "training", "optim": "x"}', False),
        ("broken.json", "{", False),
        ("model.safetensors", "", False),
    ],
)
def test_training_files_are_recognized(tmp_path, name, content, is_one):
    assert is_recipe_file(write(tmp_path / name, content)) is is_one


def test_a_linked_deepspeed_file_is_read(tmp_path):
    write(tmp_path / "zero3.json", json.dumps({"zero_optimization": {"stage": 3}}))
    assert load_recipe(write(tmp_path / "a.yml", YAML + "deepspeed: zero3.json\n")).workload.parallel.zero == 3
    launch = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ./zero3.json\n"
    assert load_recipe(write(tmp_path / "b.yml", launch)).workload.parallel.zero == 3


@pytest.mark.parametrize("name", ["gone.json", "../zero3.json", "zero3.txt", "/etc/hostname.json", "a\\0.json"])
def test_files_outside_the_folder_are_not_read(tmp_path, name):
    write(tmp_path / "zero3.json", json.dumps({"zero_optimization": {"stage": 3}}))
    folder = tmp_path / "below"
    folder.mkdir()
    launch = f'distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: "{name}"\n'
    for recipe in (
        load_recipe(write(folder / "a.yml", YAML + f'deepspeed: "{name}"\n')),
        load_recipe(write(folder / "b.yml", launch)),
    ):
        assert recipe.workload.parallel.zero != 3
        assert any("a configuration file" in entry.reason for entry in recipe.not_estimated)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x00a", "is not text in UTF-8"),
        (b"a: 1\na: 2", "the key 'a' occurs a second time in line 2"),
        (b"x:\n  b: 1\n  b: 2", "the key 'b' occurs a second time in line 3"),
        (b"a: &a [*a]", "line 1 uses the reference *a"),
        (b"a: &a [1]\nb: [*a, *a]", "uses the reference"),
        (b"a: !!python/object/apply:os.system [ls]", "has a tag"),
        (b"a: !!binary aGVsbG8=", "has a tag"),
        (b"[" * 50_000, "nest"),  # newer versions of libyaml have a limit of their own, in other words
        (b"a: " + b"[" * 40 + b"]" * 40, "nested too deep"),
        (b"a: 1\n---\nb: 2", "is not YAML"),
        (b"a: [1", "is not YAML"),
        (b"a: 2001-99-99", "is not YAML"),
        (b"a: \x01", "is not YAML"),
        (b"? [1, 2]\n: 3", "is not YAML"),
        (b"- 1", "has no keys, but a list"),
        (b"", "has no keys, but nothing"),
        (b"k: v\n" * 60_000, "a training file has at most"),
        (b"a: " + b"9" * 5_000, "is not YAML"),
        (b"[a, b" + b", c" * 30_000, "the file is too large"),
    ],
)
def test_hostile_yaml_is_refused_at_once(tmp_path, content, said):
    file = write(tmp_path / "x.yml", content)
    with refused_at_once(), pytest.raises(RecipeError) as caught:
        load_recipe(file)
    assert str(file) in caught.value.message
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "a: a number of too many digits"),
        (b"{", "is not JSON"),
        (b"3", "has no keys, but a single value"),
    ],
)
def test_hostile_json_is_refused(content, said):
    with pytest.raises(RecipeError) as caught:
        parse_recipe(content, "x.json", is_json=True)
    assert said in caught.value.message


def test_folders_and_missing_files_are_errors(tmp_path):
    for path in (tmp_path, tmp_path / "gone.yml"):
        with pytest.raises(RecipeError, match=path.name):
            load_recipe(path)
    with pytest.raises(RecipeError, match="at most"):
        parse_recipe(b" " * (MAX_BYTES + 1), "x.yml", is_json=False)


def is_named(recipe_of):
    """Return whether it gives a recipe whose every key is told of, or an error with the file's name."""
    try:
        recipe = recipe_of()
    except RecipeError as error:
        return error.message.startswith("file.x: ")
    told = len(recipe_details(recipe, "file.x")) > len(recipe.read) + len(recipe.assumed) + len(recipe.ignored)
    return bool(recipe_summary(recipe, "file.x")) and told


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_give_a_recipe_or_a_named_error(data, is_json):
    assert is_named(lambda: read_recipe(parse_recipe(data, "file.x", is_json=is_json), "file.x"))


@given(st.text(alphabet="base_model: x\n-[]{}&*!|>'\"#%?,0", max_size=60))
def test_any_yaml_gives_a_recipe_or_a_named_error(text):
    assert is_named(
        lambda: read_recipe(parse_recipe(f"base_model: x\n{text}".encode(), "file.x", is_json=False), "file.x")
    )


@given(st.dictionaries(st.sampled_from(KEYS), CONFIGS, max_size=10))
def test_any_values_give_a_recipe_or_a_named_error(config):
    assert is_named(lambda: read_recipe(parse_recipe(json.dumps(config).encode(), "file.x", is_json=True), "file.x"))


def test_neutral_keys_are_not_estimated_ones():
    assert not AXOLOTL_NEUTRAL & set(AXOLOTL_OTHERS)
    assert not (TRAINER_NEUTRAL | TRL_NEUTRAL) & set(TRAINER_OTHERS | TRL_OTHERS)
    assert not (TRAINER_NEUTRAL | LLAMA_FACTORY_NEUTRAL) & set(TRAINER_OTHERS | LLAMA_FACTORY_OTHERS)


def test_the_folder_of_an_adapter_becomes_its_training(tmp_path, catalog):
    config = {"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-3.2-1B", "r": 4}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    assert is_recipe_file(tmp_path)
    plan = plan_of_recipe(load_recipe(tmp_path), tmp_path, catalog.models)
    assert (plan.model.id, plan.workload.method, plan.workload.lora.rank) == ("meta-llama/Llama-3.2-1B", "lora", 4)
    (tmp_path / "config.json").write_text("{}")
    assert not is_recipe_file(tmp_path)


PRESETS = load_presets()
OWN = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="rtx-4090")


def plan_of(preset: Preset) -> Plan:
    return plan_of_preset(preset) if preset.own_model else with_preset(OWN, preset)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.id)
def test_every_preset_is_estimated_on_its_model(preset, catalog):
    plan = plan_of(preset)
    evaluation = evaluate(plan, catalog)
    assert evaluation.memory.total_bytes > 0
    assert sum(term.bytes for term in evaluation.memory.terms) == evaluation.memory.total_bytes
    if plan.gpu is not None and preset.id != "trl-sft":
        assert (evaluation.memory.fit_probability or 0) >= 0.05, "its source says that it runs there"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.id)
def test_every_preset_has_dated_sources(preset, catalog):
    assert all(source.startswith("https://") for source in preset.sources)
    assert preset.summary.endswith(".")
    assert preset.as_of in ("2026-11-21",)
    assert preset_detail(preset, catalog.hardware)
    assert preset_notes(preset)[0].startswith(preset.title)


def test_the_model_of_a_preset_is_saved_with_a_plan(tmp_path):
    plan = plan_of_preset(find_preset(PRESETS, "megatron-gpt3-175b"))
    save_plan(tmp_path / "plan.json", plan)
    assert load_plan(tmp_path / "plan.json") == plan
    assert plan.model.architecture is not None
    assert 174e9 < plan.model.architecture.parameters < 176e9


def test_training_presets_come_first():
    tasks = [preset.workload.task for preset in PRESETS]
    assert tasks == sorted(tasks, reverse=True)
    assert {"training", "inference"} == set(tasks)


def test_a_preset_is_found_by_its_id_in_any_case():
    assert find_preset(PRESETS, " Vicuna-7B ").id == "vicuna-7b"
    with pytest.raises(SpecError) as caught:
        find_preset(PRESETS, "llama-3")
    assert "axolotl-llama-3-qlora" in caught.value.hint
    with pytest.raises(SpecError) as caught:
        find_preset(PRESETS, "")
    assert "--list-presets" in caught.value.hint


def test_a_preset_for_any_model_needs_a_model():
    with pytest.raises(SpecError, match="for any model"):
        plan_of_preset(find_preset(PRESETS, "llama-server"))


def test_a_preset_keeps_the_plans_model_and_other_programs():
    held = OWN.evolve(workload=Inference(other_processes_bytes=5))
    plan = with_preset(held, find_preset(PRESETS, "zephyr-7b-sft"))
    assert (plan.model, plan.gpu, plan.count) == (OWN.model, "a100-sxm4-80gb", 8)
    assert isinstance(plan.workload, Training)
    assert plan.workload.other_processes_bytes == 5


def test_a_preset_for_any_model_keeps_batch_and_lengths_that_it_does_not_state():
    asked = OWN.evolve(workload=Inference(batch=50, context_length=8_192, prompt_length=6_000))
    served = with_preset(asked, find_preset(PRESETS, "vllm-serve")).workload
    assert (served.profile, served.batch, served.context_length, served.prompt_length) == ("vllm", 50, 8_192, 6_000)
    tuned = OWN.evolve(workload=Training(micro_batch=3, sequence_length=512))
    assert with_preset(tuned, find_preset(PRESETS, "trl-sft")).workload.micro_batch == 8
    assert with_preset(tuned, find_preset(PRESETS, "vllm-serve")).workload.batch == 1


def test_a_preset_without_cards_keeps_unequal_cards():
    cards = (CardCount(id="rtx-4090"), CardCount(id="rtx-3090"))
    unequal = Plan(model=OWN.model, workload=Inference(gpus=cards))
    assert with_preset(unequal, find_preset(PRESETS, "trl-sft")).workload.gpus == cards
    assert with_preset(unequal, find_preset(PRESETS, "alpaca-lora-7b")).workload.gpus == ()


def test_a_preset_is_refused_for_a_traced_module():
    traced = Plan(model=ModelChoice.of_trace(facts_of(two_steps(GIB, training()))))
    with pytest.raises(SpecError, match="traced"):
        with_preset(traced, PRESETS[0])


def test_two_presets_with_one_id_are_an_error(tmp_path):
    record = json.loads(PRESETS[0].model_dump_json(exclude_unset=True))
    (tmp_path / "twice.json").write_text(json.dumps([record, record]), encoding="utf-8")
    with pytest.raises(CatalogError, match="another record has this id"):
        load_presets(tmp_path)
    assert len({hash(preset) for preset in PRESETS}) == len(PRESETS)
