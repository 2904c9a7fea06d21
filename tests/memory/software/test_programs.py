"""Every program says what it does to memory, and what it does not say is plain PyTorch."""

import pytest
from small_models import bundled, llama

from planner.memory.estimate import estimate_memory
from planner.memory.parallel.sharding import ShardedStep
from planner.memory.parallel.shares import PersistentBuffers
from planner.memory.software import memory_of, serving_memory, sharding_strategy_of, training_memory
from planner.memory.software.base import ServingMemory
from planner.memory.software.pytorch import TrainingMemory
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.software.registry import SERVERS, TRAINERS
from planner.workload.training import Training
from planner.workload.workload import Inference

ANSWERED = {name: with_defaults(Inference(profile=name), llama(), 1) for name in SERVERS}


@pytest.mark.parametrize("name", TRAINERS)
def test_every_trainer_has_a_behaviour(name: str):
    program = training_memory(name)
    assert isinstance(program, TrainingMemory)
    assert program is training_memory(name)
    filled = with_defaults(Training(profile=name, compute="bf16"), llama(), 1)
    assert program.timeline(llama(), filled).peak().total > 2 * llama().parameters


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_has_a_behaviour(name: str):
    program = serving_memory(name, llama())
    assert isinstance(program, ServingMemory)
    asked = with_defaults(Inference(profile=name), llama(), 1)
    assert memory_of(llama(), asked) is program
    assert program.timeline(llama(), asked).peak().total > llama().parameters


def test_a_pipeline_of_images_is_run_by_diffusers():
    network = bundled().models.model("stabilityai/stable-diffusion-xl-base-1.0")
    assert type(serving_memory("hf", network)).__name__ == "Diffusers"
    assert type(serving_memory(None, llama())).__name__ == "Transformers"


def test_a_program_of_its_own_is_a_subclass_with_what_it_does_otherwise(monkeypatch: pytest.MonkeyPatch):
    class Frugal(TrainingMemory):
        """A trainer whose vocabulary is padded, and that says so."""

        def differences(self, _architecture):
            return ("As Frugal 1.0 does.",)

        def vocabulary_multiple(self, _tensor):
            return 1_000

    usual = training_memory("hf")
    asked = Training(parallel=Parallel(tensor=2))
    before = estimate_memory(llama(vocab_size=32_001), asked, count=2)
    monkeypatch.setattr("planner.memory.software.transformers_training.TRAINING", Frugal())
    after = estimate_memory(llama(vocab_size=32_001), asked, count=2)
    assert training_memory("hf") is not usual
    assert after.total_bytes > before.total_bytes
    assert "As Frugal 1.0 does." in after.notes


@pytest.mark.parametrize(
    ("profile", "zero", "called"),
    [("hf", 3, "FSDP"), ("hf", 2, "ZeRO-2"), ("deepspeed", 3, "ZeRO-3"), ("megatron", 1, "distributed optimizer")],
)
def test_what_spreads_a_step_has_a_name(profile: str, zero: int, called: str):
    workload = Training(profile=profile, parallel=Parallel(zero=zero, data=8))
    assert sharding_strategy_of(workload).stage_name(zero) == called
    plain = sharding_strategy_of(Training(parallel=Parallel(data=8)))
    assert (plain.stage_name(0), plain.shares_states, plain.gathers_layers) == ("DDP", False, False)


def test_plain_replicas_hold_what_one_card_does():
    workload = with_defaults(Training(), llama(), 1)
    found = training_memory("hf").timeline(llama(), workload)
    step = ShardedStep(llama(), workload, workload, found, (), PersistentBuffers())
    assert sharding_strategy_of(workload).timeline(step) is found


def test_only_some_programs_hand_outputs_back():
    timelines = [serving_memory(name, llama()).timeline(llama(), asked) for name, asked in ANSWERED.items()]
    for (name, asked), timeline in zip(ANSWERED.items(), timelines, strict=True):
        back = serving_memory(name, llama()).with_returned_outputs(timeline, timeline, asked)
        assert (back is timeline) == (name != "hf")
