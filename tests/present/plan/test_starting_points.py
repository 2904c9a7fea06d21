"""Presets and training files of other programs as text."""

from planner.plan.recipes import find_preset, load_presets
from planner.present.plan.starting_points import preset_detail, preset_notes, recipe_details, recipe_summary
from planner.workload.recipes.config_reader import RecipeBuilder
from planner.workload.recipes.detect import read_recipe


def test_the_summary_lists_the_keys_read_assumed_and_ignored():
    recipe = read_recipe({"base_model": "x", "learning_rate": 1, "torch_compile": True, "zzz": [1]}, "")
    said = " ".join(recipe_summary(recipe, "a.yml"))
    assert "Read from a.yml (axolotl): base_model x." in said
    assert "Not counted: torch_compile (not estimated: compilation of the model), zzz (unknown)." in said
    assert "Ignored: 1 key without effect on memory." in said
    details = recipe_details(recipe, "a.yml")
    assert "    base_model: x → Model" in details
    assert details[-1] == "    learning_rate: does not change memory"
    bare = RecipeBuilder().finish("trl", "")
    assert recipe_summary(bare, "a.yml") == ("Nothing was read from a.yml.",)
    assert recipe_details(bare, "a.yml") == ("Read from a.yml (TRL):",)
    many = read_recipe({"base_model": "x", "a": 1, **{f"key_{number}": 1 for number in range(20)}}, "")
    assert " and 13 more." in " ".join(recipe_summary(many, "a.yml"))


def test_a_preset_names_its_model_and_its_cards(catalog):
    presets = load_presets()
    named = find_preset(presets, "megatron-gpt3-175b")
    assert preset_detail(named, catalog.hardware).endswith(f"{named.count} × {catalog.hardware.gpu(named.gpu).name}")
    open_to_all = next(preset for preset in presets if preset.model is None and preset.gpu is None)
    assert preset_detail(open_to_all, catalog.hardware) == "any model"


def test_the_notes_on_a_preset_end_with_its_sources():
    preset = find_preset(load_presets(), "megatron-gpt3-175b")
    notes = preset_notes(preset)
    assert notes[0] == f"{preset.title}: {preset.summary}"
    assert notes[1:-1] == preset.notes
    assert notes[-1] == "Sources, read on 21 November 2026:"
