"""The declarations of the workload's fields."""

import json
from typing import Annotated

import pytest
from pydantic import Field

from planner.base import Spec
from planner.workload import fields
from planner.workload.fields import all_fields, fields_of, find_field
from planner.workload.presentation import GROUPS, FieldContext, Presentation, command_line_only
from planner.workload.training import Lora, Training
from planner.workload.workload import Inference

PARTS = {"lora", "parallel", "diffusion", "engine", "task"}


@pytest.mark.parametrize("model", [Training, Inference])
def test_every_field_is_declared(model):
    declared = {name.partition(".")[0] for name in fields_of(model().task)}
    assert declared | PARTS >= set(model.model_fields)
    assert not any(name in declared for name in ("task",))


@pytest.mark.parametrize("field", all_fields(), ids=lambda field: f"{field.name} {' '.join(field.tasks)}")
def test_a_field_says_what_it_is(field):
    assert field.title[:1].isupper()
    assert field.title != field.name
    assert field.help
    assert not field.help.endswith(".")
    assert field.group in GROUPS
    assert field.option.mnemonic in field.title.lower()
    if field.option.details is not None:
        assert all(field.option.details(value) for value in field.choices(None))


def test_titles_are_told_apart_within_a_task():
    for task in ("training", "inference"):
        titles = [field.title for field in fields_of(task).values()]
        assert len(titles) == len(set(titles))


def test_a_schema_has_titles_and_help():
    schema = Training.model_json_schema()["properties"]["micro_batch"]
    assert (schema["title"], schema["description"]) == (
        "Micro-batch size",
        "number of sequences per GPU and forward pass",
    )
    assert json.dumps(Inference.model_json_schema())


def test_what_pydantic_knows_is_read():
    rank, images = find_field("lora.rank"), find_field("images")
    assert (rank.kind, rank.is_optional, rank.default) == ("number", False, 16)
    assert (rank.bound("ge", 0), rank.bound("le", 0)) == (1, 65_536)
    assert (images.kind, images.is_optional, images.default) == ("number", True, None)
    assert find_field("lora.dropout").kind == find_field("engine.memory_utilization").kind == "share"
    assert find_field("other_processes_bytes").kind == "bytes"
    assert find_field("other_processes_bytes").bound("le", 7) == 7
    assert find_field("parallel.pipeline_layers").kind == "list"
    assert find_field("engine.enforce_eager").choices(None) == {False: "No", True: "Yes"}
    assert find_field("micro_batch").choices(None) == {}
    assert find_field("attention", "inference").choices(None) == {}
    assert find_field("micro_batch", "inference") is find_field("colour") is None


def test_settings_are_asked_of_the_program_that_has_them(catalog):
    architecture = catalog.models.model("meta-llama/Llama-3.1-8B")
    asked = {
        name: {
            field.name for field in fields_of("inference").values() if field.is_shown(FieldContext(used, architecture))
        }
        for name in ("hf", "vllm", "llama.cpp")
        for used in (Inference(profile=name),)
    }
    assert "engine.slots" in asked["llama.cpp"] - asked["vllm"] - asked["hf"]
    assert "gpu_layers" in asked["llama.cpp"] - asked["vllm"] - asked["hf"]
    assert "attention" in asked["hf"] - asked["vllm"]


def test_one_option_is_one_declaration(monkeypatch):
    class Wider(Lora):
        alpha: Annotated[
            float | None, Field(title="LoRA alpha", description="scale"), Presentation(shown_when=command_line_only)
        ] = None

    class Host(Spec):
        lora: Wider = Wider()

    monkeypatch.setitem(fields.TASKS, "training", Host)
    declared = fields_of.__wrapped__("training")
    assert declared["lora.alpha"].title == "LoRA alpha"
    assert declared["lora.rank"].option is find_field("lora.rank").option


def test_what_stands_for_a_value_in_the_help():
    names = ("lora.rank", "lora.targets", "context_length", "kv_cache", "image_size")
    assert [find_field(name).metavar for name in names] == ["N", "NAMES", "TOKENS", "NAME", "WxH"]


def test_training_is_asked_by_its_own_conditions(catalog):
    architecture = catalog.models.model("meta-llama/Llama-3.1-8B")
    asked = {
        field.name
        for field in fields_of("training").values()
        if field.is_shown(FieldContext(Training(), architecture, from_scratch=True))
    }
    assert {"micro_batch", "optimizer_step"} <= asked
    assert not asked & {"method", "trainable", "lora.rank", "parallel.tensor"}
