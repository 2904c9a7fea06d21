"""The options of `gpu-planner trace` and the request that they make."""

import pytest

from planner.cli.parser import Parser
from planner.cli.trace.options import (
    add_trace_options,
    default_option_texts_of_trace,
    given_option_names,
    request_from_arguments,
)
from planner.errors import SpecError
from planner.trace.request import Argument, Target, TensorInput, TraceLora, TraceParallel

TARGET = Target(kind="file", place="net.py", name="Net")


@pytest.fixture
def parsed():
    """Return a way to read options."""
    parser = Parser("gpu-planner trace", "", "")
    add_trace_options(parser)
    return lambda *words: parser.parse_args(words)


@pytest.fixture
def request_of(parsed, catalog):
    """Return a way to read options into a request for an RTX 4090."""
    gpu = catalog.hardware.gpu("rtx-4090")
    return lambda *words: request_from_arguments(parsed(*words), TARGET, gpu)


def test_nothing_given_is_inference_on_cuda(request_of):
    request = request_of()
    assert (request.task, request.device, request.compute_capability) == ("inference", "cuda", "8.9")
    assert (request.card.name, request.card.multiprocessors) == ("NVIDIA GeForce RTX 4090", 128)
    assert request.target == TARGET


def test_sizes_may_have_separators(request_of):
    request = request_of("--batch", "1,024", "--seq", "2048", "--decode", "16")
    assert (request.batch, request.sequence_length, request.decode_tokens) == (1024, 2048, 16)


def test_the_cpu_has_no_compute_capability(request_of):
    assert request_of("--device", "cpu").compute_capability is None


def test_inputs_are_read_in_order(request_of):
    first, second = request_of("--input", "8x3:float32", "--input", "mask=8:bool").inputs
    assert (first.name, first.value) == ("", TensorInput(shape=(8, 3)))
    assert (second.name, second.value) == ("mask", TensorInput(shape=(8,), dtype="bool"))


def test_arguments_are_json_or_else_text(request_of):
    words = ("--arg", "width=64", "--arg", "rate=0.5", "--arg", "kind=relu", "--arg", "sizes=[1, 2]", "--arg", "a=b=c")
    values = {argument.name: argument.value for argument in request_of(*words).arguments}
    assert values == {"width": 64, "rate": 0.5, "kind": "relu", "sizes": (1, 2), "a": "b=c"}


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("AdamW", "AdamW", ()),
        ("adamw", "AdamW", ()),
        ("SGD(momentum=0.9, nesterov=True)", "SGD", (("momentum", 0.9), ("nesterov", True))),
        ("AdamW(fused=True,lr=1e-4)", "AdamW", (("fused", True), ("lr", 1e-4))),
        ("Adam(betas=(0.9, 0.95))", "Adam", (("betas", (0.9, 0.95)),)),
        ("sgd", "SGD", ()),
        ("sgd-momentum", "SGD", (("momentum", 0.9),)),
        ("Adafactor()", "Adafactor", ()),
    ],
)
def test_optimizers(request_of, text, name, arguments):
    request = request_of("--task", "training", "--optimizer", text)
    assert request.optimizer == name
    assert request.optimizer_arguments == tuple(Argument(name=key, value=value) for key, value in arguments)


@pytest.mark.parametrize(
    ("words", "lora"),
    [
        (["--lora"], TraceLora()),
        (["--lora", "8"], TraceLora(rank=8)),
        (
            ['--lora={"rank": 4, "targets": ["q_proj"], "dropout": 0.1}'],
            TraceLora(rank=4, targets=("q_proj",), dropout=0.1),
        ),
    ],
)
def test_lora(request_of, words, lora):
    assert request_of(*words).lora == lora


def test_ranks_are_ddp_unless_said_otherwise(request_of):
    assert request_of("--ranks", "8").parallel == TraceParallel(ranks=8, strategy="ddp")
    assert request_of("--ranks", "8", "--strategy", "fsdp").parallel == TraceParallel(ranks=8, strategy="fsdp")


def test_parts_are_frozen_by_pattern(request_of):
    assert request_of("--task", "training", "--freeze", "encoder.*", "--freeze", "head").freeze == ("encoder.*", "head")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--batch", "4"], "--task inference --device cuda"),
        (
            ["--task", "training", "--optimizer", "SGD", "--steps", "3"],
            "--device cuda --accumulate 1 --zero-grad after-step --checkpointing none",
        ),
        (["--task", "training", "--step", "gan.py:turn"], "--steps 2 --device cuda --checkpointing none"),
        (["--step", "gan.py:turn"], "--task inference --steps 2 --device cuda"),
    ],
)
def test_defaults_that_mattered_are_told(parsed, words, told):
    arguments = parsed(*words)
    assert " ".join(default_option_texts_of_trace(arguments, request_from_arguments(arguments, TARGET, None))) == told


def test_models_have_defaults_of_their_own(parsed):
    target = Target(kind="config", place="gpt2", config="{}")
    told = default_option_texts_of_trace(parsed(), request_from_arguments(parsed(), target, None))
    assert told == ("--task inference", "--batch 1", "--attention sdpa", "--device cuda", "--decode 0")


def test_what_was_given_is_known(parsed):
    assert given_option_names(parsed()) == ()
    words = ("--task", "training", "--arg", "a=1", "--lora", "--ranks", "2")
    assert given_option_names(parsed(*words)) == ("--task", "--arg", "--lora", "--ranks")


@pytest.mark.parametrize(
    ("words", "field", "reason"),
    [
        (["--task", "dreaming"], "--task", "choose training or inference"),
        (["--batch", "0"], "--batch", "must be at least 1"),
        (["--batch", "many"], "--batch", "not a whole number"),
        (["--dtype", "fp8"], "--dtype", "choose fp32,"),
        (["--autocast", "fp32"], "--autocast", "choose bf16 or fp16"),
        (["--device", "tpu"], "--device", "choose cpu or cuda"),
        (["--input", "x=8y3"], "--input", "8y3"),
        (["--arg", "width"], "--arg", "'width' is not NAME=VALUE"),
        (["--arg", "a={}"], "--arg", ""),
        (["--optimizer", "AdamW"], "--optimizer", "applies to training, but the task is inference"),
        (["--freeze", "a"], "--freeze", "applies to training"),
        (["--task", "training", "--decode", "4"], "--decode", "applies to inference, but the task is training"),
        (["--task", "training", "--optimizer", "AdamW(1)"], "--optimizer", "needs its name"),
        (["--task", "training", "--optimizer", "AdamW(**a)"], "--optimizer", "is not valid"),
        (["--task", "training", "--optimizer", "AdamW(lr=f())"], "--optimizer", "lr is not valid"),
        (["--task", "training", "--optimizer", "import os"], "--optimizer", "is not a class or a call"),
        (["--task", "training", "--optimizer", "a.b"], "--optimizer", "is not a class or a call"),
        (["--task", "training", "--optimizer", "Adam(lr=[[1]])"], "--optimizer", "lr is not valid"),
        (["--lora", "net.py:Net"], "--lora", "'net.py:Net' is neither a rank nor JSON"),
        (["--lora", "0"], "--lora", "must be at least 1"),
        (["--lora", '{"rang": 1}'], "--lora", "there is no such field"),
        (["--ranks", "0"], "--ranks", "must be at least 1"),
        (["--strategy", "ddp"], "--strategy", "needs more than one rank"),
        (["--ranks", "2", "--strategy", "zero"], "--strategy", "choose none, ddp or fsdp"),
        (["--ranks", "2", "--strategy", "none"], "--strategy", "several ranks need a strategy"),
    ],
)
def test_wrong_values_name_their_option(request_of, words, field, reason):
    with pytest.raises(SpecError) as caught:
        request_of(*words)
    assert caught.value.field.split()[0] == field
    assert reason in caught.value.reason
    assert caught.value.hint


def test_a_script_decides_most_itself(parsed, catalog):
    script = Target(kind="script", place="train.py")
    arguments = parsed("--device", "cpu", "--steps", "3")
    request = request_from_arguments(arguments, script, catalog.hardware.gpu("rtx-4090"))
    assert (request.task, request.steps, request.device) == ("training", 3, "cpu")
    assert default_option_texts_of_trace(parsed(), request_from_arguments(parsed(), script, None)) == (
        "--steps 2",
        "--device cuda",
    )
    for words in (("--batch", "4"), ("--input", "4x3"), ("--optimizer", "SGD"), ("--ranks", "2"), ("--lora", "8")):
        with pytest.raises(SpecError, match="decided by the script itself") as caught:
            request_from_arguments(parsed(*words), script, None)
        assert caught.value.field == words[0]
