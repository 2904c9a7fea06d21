"""A made-up engine, which also trains: one record and its two behaviors are all that it takes."""

import json
import sys
from collections.abc import Hashable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Annotated, cast

import pytest
from pydantic import Field

from planner.cli.main import main
from planner.errors import SpecError
from planner.memory.inference.timeline import inference_timeline
from planner.memory.phases import PhaseSnapshots
from planner.memory.software.transformers import Transformers
from planner.models.architecture import Architecture
from planner.performance.software.engine import Engine
from planner.plan.advice.advise import advise
from planner.plan.catalog import Catalog
from planner.plan.editing import resolve_conflicts
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.plan.settings import adjustments_sentence
from planner.serving.software import scheduling_of
from planner.workload.fields import all_fields, fields_of
from planner.workload.presentation import Presentation
from planner.workload.software import registry
from planner.workload.software.software import EngineSettings, ServingSupport, Software, TrainingSupport
from planner.workload.workload import Inference, Training

MODEL = "meta-llama/Llama-3.1-8B"


class WaveSettings(EngineSettings):
    """Settings of the made-up engine."""

    wave_tokens: Annotated[
        int | None,
        Field(ge=1, le=4096, title="Tokens in a wave", description="WaveServe: tokens that are read together"),
        Presentation(explanation="The activations grow with it."),
    ] = None


RECORD = Software(
    name="waveserve",
    module="waveserve",
    title="WaveServe",
    version="WaveServe 1.0",
    serving=ServingSupport(settings=WaveSettings, cache_formats=("bf16", "fp8")),
    training=TrainingSupport(loss="chunked", zero_limit=2),
)


class WaveMemory(Transformers):
    """It reads a prompt in waves, so that activations are those of one wave."""

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        settings = workload.engine
        wave = settings.wave_tokens if isinstance(settings, WaveSettings) else None
        return inference_timeline(architecture, workload.evolve(prompt_length=wave or workload.prompt_length))


SPEED = Engine(name="waveserve", layer_seconds=20e-6, source="a test", chunk_tokens=64)


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for place, name, value in (("memory", "SERVING", WaveMemory()), ("performance", "ENGINE", SPEED)):
        module = cast("ModuleType", SimpleNamespace(__spec__=object(), **{name: value}))
        monkeypatch.setitem(sys.modules, f"planner.{place}.software.waveserve", module)
    for table in (registry.SOFTWARE, registry.SERVERS, registry.TRAINERS):
        monkeypatch.setitem(table, RECORD.name, RECORD)
    _forget_fields()
    yield
    monkeypatch.undo()
    _forget_fields()


def _forget_fields() -> None:
    all_fields.cache_clear()
    fields_of.cache_clear()


def plan(**changes: object) -> Plan:
    workload = Inference().evolve(profile="waveserve", context_length=8192, prompt_length=4096, **changes)
    return Plan(model=ModelChoice(id=MODEL), workload=workload, gpu="rtx-4090")


def test_its_bytes_and_its_time_are_estimated(catalog: Catalog):
    whole, waves = (evaluate(plan(engine=engine), catalog) for engine in ({}, {"wave_tokens": 64}))
    assert whole.memory.term("weights") == waves.memory.term("weights")
    assert waves.memory.total_bytes < whole.memory.total_bytes
    assert waves.time is not None
    usual = evaluate(plan().evolve(workload=Inference(context_length=8192, prompt_length=4096)), catalog).time
    assert usual is not None
    assert waves.time.output_token_seconds < usual.output_token_seconds


def test_its_settings_name_it_and_are_checked_in_its_own_words(catalog: Catalog):
    named_by_a_setting = Plan(model=ModelChoice(id=MODEL), workload=Inference(engine={"wave_tokens": 64}))
    assert evaluate(named_by_a_setting, catalog).workload.profile == "waveserve"
    with pytest.raises(SpecError, match="wave_tokens is a setting of WaveServe"):
        Inference(profile="vllm", engine={"wave_tokens": 64})
    with pytest.raises(SpecError, match="wave_tokens is a setting of WaveServe, but slots"):
        Inference(engine={"wave_tokens": 64, "slots": 2})
    with pytest.raises(SpecError, match="WaveServe has no q8_0 KV cache; choose bf16 or fp8"):
        Inference(profile="waveserve", kv_cache="q8_0")
    assert json.loads(plan(engine={"wave_tokens": 64}).model_dump_json())["workload"]["engine"]["wave_tokens"] == 64


def test_editing_moves_what_it_does_not_have(catalog: Catalog):
    before = Plan(model=ModelChoice(id=MODEL), workload=Inference(profile="llama.cpp", weights="Q4_K_M", gpu_layers=3))
    found = resolve_conflicts(before, {"workload.profile": "waveserve", "workload.weights": "bf16"}, catalog)
    assert (found.plan.workload.profile, found.plan.workload.weights) == ("waveserve", "bf16")
    assert "gpu_layers" in found.adjustments
    assert "GPU layers to all" in adjustments_sentence(found.adjustments, found.plan.workload)


def test_the_command_line_offers_and_runs_it(capsys: pytest.CaptureFixture[str]):
    assert main(["fit", "--help-all"]) == 0
    assert "WaveServe: tokens that are read together" in " ".join(capsys.readouterr().out.split())
    asked = ["fit", MODEL, "--gpu", "rtx-4090", "--profile", "waveserve", "--set", "engine.wave_tokens=64"]
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["workload"]["engine"]["wave_tokens"] == 64


def test_it_trains_as_plain_pytorch_at_the_pace_of_transformers_within_its_limits(catalog: Catalog):
    own, usual = (
        evaluate(
            Plan(model=ModelChoice(id=MODEL), workload=Training(profile=name, loss="chunked"), gpu="h200-sxm-141gb"),
            catalog,
        )
        for name in ("waveserve", "hf")
    )
    assert own.memory.term("activations") == usual.memory.term("activations")
    assert own.time == usual.time
    assert own.time is not None
    with pytest.raises(SpecError, match="WaveServe"):
        evaluate(
            Plan(
                model=ModelChoice(id=MODEL),
                workload=Training(profile="waveserve", parallel={"zero": 3}),
                gpu="h200-sxm-141gb",
                count=2,
            ),
            catalog,
        )


def test_what_would_help_is_found_for_it(catalog: Catalog):
    assert advise(plan(batch=64), catalog)


def test_without_a_scheduler_it_answers_one_batch_after_the_other(catalog: Catalog):
    workload, gpu = plan(batch=3).workload, catalog.hardware.gpu("rtx-4090")
    assert isinstance(workload, Inference)
    found = scheduling_of(workload, catalog.models.model(MODEL), gpu, prefix_cache=True)
    assert (found.static_batching, found.sequences) == (True, 3)
