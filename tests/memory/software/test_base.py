"""Reasons why PyTorch cannot run a workload on a card, communicators, servers, and subclasses that differ."""

import pytest
from deep_networks import training
from small_models import bundled, llama, small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.software import memory_of, serving_memory, training_memory
from planner.memory.software.base import ServingMemory, pytorch_reasons
from planner.memory.software.pytorch import TrainingMemory
from planner.units import GIB
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.software.registry import SERVERS
from planner.workload.training import Training
from planner.workload.workload import Inference

DEEP = small_llama(num_hidden_layers=8)


def communicators(workload):
    return memory_of(DEEP, workload).communicators(workload)


@pytest.mark.parametrize(("cards_", "size"), [(2, 544 * 10**6), (4, 688 * 10**6)])
def test_a_communicator_takes_what_was_measured(cards_, size):
    own = communicators(training(data=cards_))
    assert [part.bytes for part in own] == [size]
    assert memory_of(DEEP, training()).most_communicator_bytes(own) == size + 512 * 2**20


def test_each_group_has_a_communicator():
    workload = training(data=2, tensor=4, pipeline=2, context=2, expert=2)
    names = [part.name for part in communicators(workload)]
    assert names == [
        "NCCL communicator, 4 GPUs (data)",
        "NCCL communicator, 4 GPUs (tensor)",
        "NCCL communicator, 2 GPUs (pipeline)",
        "NCCL communicator, 2 GPUs (context)",
        "NCCL communicator, 2 GPUs (expert)",
    ]


def test_engines_have_communicators_of_their_own():
    vllm = communicators(Inference(profile="vllm", parallel=Parallel(tensor=2)))
    assert vllm[0].bytes == pytest.approx(1.82 * GIB, rel=1e-3)
    assert communicators(Inference(profile="llama.cpp", parallel=Parallel(tensor=2))) == ()
    assert communicators(Inference(profile="hf", parallel=Parallel(pipeline=4))) == ()


ANSWERED = {name: with_defaults(Inference(profile=name), llama(), 1) for name in SERVERS}


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_has_a_behavior(name: str):
    program = serving_memory(name, llama())
    assert isinstance(program, ServingMemory)
    asked = with_defaults(Inference(profile=name), llama(), 1)
    assert memory_of(llama(), asked) is program
    assert program.timeline(llama(), asked).peak().total > llama().parameters


def test_a_program_of_its_own_is_a_subclass_with_what_it_does_otherwise(monkeypatch: pytest.MonkeyPatch):
    class Frugal(TrainingMemory):
        """A trainer whose vocabulary is padded, and that says so."""

        def differences_from_transformers(self, _architecture):
            return ("As Frugal 1.0 does.",)

        def vocabulary_multiple(self, _tensor):
            return 1_000

    usual = training_memory("hf")
    asked = Training(parallel=Parallel(tensor=2))
    before = estimate_memory(llama(vocab_size=32_001), asked, count=2)
    monkeypatch.setattr("planner.memory.software.pytorch.TRAINING", Frugal())
    after = estimate_memory(llama(vocab_size=32_001), asked, count=2)
    assert training_memory("hf") is not usual
    assert after.total_bytes > before.total_bytes
    assert "As Frugal 1.0 does." in after.notes


def test_only_some_programs_hand_outputs_back():
    timelines = [serving_memory(name, llama()).timeline(llama(), asked) for name, asked in ANSWERED.items()]
    for (name, asked), timeline in zip(ANSWERED.items(), timelines, strict=True):
        back = serving_memory(name, llama()).with_returned_outputs(timeline, timeline, asked)
        assert (back is timeline) == (name != "hf")


def gpu(name):
    return bundled().hardware.gpu(name)


@pytest.mark.parametrize(
    ("name", "workload", "words"),
    [
        ("tpu-v5e", Inference(), "XLA"),
        ("trainium3", Inference(), "Neuron"),
        ("apple-m1", Inference(weights="nf4"), "bitsandbytes"),
        ("apple-m1", Training(optimizer="adamw-8bit"), "bitsandbytes"),
        ("tesla-k80", Inference(weights="nf4"), "bitsandbytes"),
        ("gtx-1080", Inference(weights="int8"), "bitsandbytes"),
        ("quadro-rtx-4000", Inference(attention="flash"), "FlashAttention"),
        ("apple-m1", Inference(attention="flash"), "FlashAttention"),
        ("radeon-rx-6900-xt", Inference(attention="flash"), "FlashAttention"),
        ("apple-m1", Training(method="qlora"), "bitsandbytes"),
        ("apple-m1", Training(optimizer="paged-lion-8bit"), "bitsandbytes"),
        ("gtx-1080", Training(method="lora", weights="int8"), "bitsandbytes"),
        ("rtx-4090", Training(attention="flash", compute="fp32"), "fp16 and bf16 only"),
        ("gtx-1080", Training(profile="liger"), "Triton"),
        ("apple-m1", Training(profile="unsloth"), "Triton"),
        ("rtx-3090", Inference(weights="fp8-block128"), "8.9"),
        ("tesla-v100-sxm2-16gb", Inference(weights="mxfp4"), "7.5"),
    ],
)
def test_what_a_card_cannot_run_gets_a_reason_and_no_verdict(name, workload, words):
    reasons = memory_of(llama(), workload).unsupported_reasons(workload, gpu(name))
    assert any(words in reason for reason in reasons)
    available = bundled().hardware.usable_memory(gpu(name))
    result = estimate_memory(small_llama(), workload, gpu(name), available)
    assert result.verdict is None
    assert result.unsupported == reasons


def test_gaudi_is_told_apart_from_other_cards_of_its_maker():
    gaudi = [card for card in bundled().hardware.gpus if card.architecture == "Gaudi"]
    assert gaudi
    assert all("Gaudi" in pytorch_reasons(Inference(), card)[0] for card in gaudi)
    assert not pytorch_reasons(Inference(weights="nf4"), gpu("max-1100"))


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        ("gtx-1080", Inference(weights="nf4")),
        ("rtx-4090", Inference(weights="int8", attention="flash")),
        ("instinct-mi325x", Training(optimizer="adamw-8bit", attention="flash")),
        ("apple-m1", Inference(weights="Q4_K_M")),
        ("tesla-v100-sxm2-16gb", Training(profile="liger", compute="amp-bf16")),
        ("instinct-mi325x", Training(profile="unsloth", method="qlora")),
        ("rtx-4090", Inference(weights="fp8-block128")),
        ("apple-m1", Training(optimizer="adafactor-transformers")),
    ],
)
def test_what_it_can_run_has_none(name, workload):
    assert not memory_of(llama(), workload).unsupported_reasons(workload, gpu(name))
