"""Options turned into a workload."""

import json

import pytest

from planner.cli.options import (
    add_workload_options,
    default_option_texts,
    naming_options,
    option_text,
    read_workload,
    workload_from_arguments,
)
from planner.cli.parser import Parser
from planner.errors import PlannerError, SpecError
from planner.workload.training import Lora
from planner.workload.workload import Inference, Parallel, Training


def _arguments(*words):
    parser = Parser("gpu-planner fit", "", "")
    add_workload_options(parser)
    return parser.parse_args(words)


def _workload(*words, base=None):
    return workload_from_arguments(_arguments(*words), base)


def test_without_options_the_workload_is_the_default_inference():
    assert _workload() == Inference()


def test_formats_are_taken_in_any_case():
    made = _workload("--kv-cache", "Q8_0", "--weights", "q4_k_m", "--gpu-layers", "12", "--set", "engine.n_ubatch=256")
    assert (made.kv_cache, made.weights, made.gpu_layers, made.engine.n_ubatch) == ("q8_0", "Q4_K_M", 12, 256)


def test_a_setting_of_another_engine_is_refused_in_one_sentence():
    with pytest.raises(SpecError, match=r"n_ubatch is a setting of llama\.cpp, but the profile is vLLM\b"):
        _workload("--profile", "vllm", "--set", "engine.n_ubatch=5")


def test_options_of_inference():
    made = _workload(
        "--batch", "4", "--context", "8,192", "--prompt", "1024", "--kv-cache", "FP8", "--weights", "q4_k_m"
    )
    assert made == Inference(batch=4, context_length=8192, prompt_length=1024, kv_cache="fp8", weights="Q4_K_M")


def test_options_of_training():
    words = (
        "--task training --optimizer adamw-8bit --micro-batch 2 --accumulate 8 --seq 4096 --checkpointing full --dp 4"
    )
    assert _workload(*words.split()) == Training(
        optimizer="adamw-8bit",
        micro_batch=2,
        gradient_accumulation=8,
        sequence_length=4096,
        activation_checkpointing="full",
        parallel=Parallel(data=4),
    )


def test_an_option_that_sets_another_field_of_each_task_sets_that_of_the_task():
    words = ("--lora-rank", "32", "--lora-targets", "q_proj,v_proj")
    trained = _workload("--task", "training", "--method", "lora", *words)
    assert trained.lora == Lora(rank=32, targets=("q_proj", "v_proj"))
    served = _workload("--profile", "vllm", "--lora-slots", "2", *words)
    assert (served.adapters.rank, served.adapters.targets) == (32, ("q_proj", "v_proj"))


def test_a_wrong_rank_is_named_by_its_option_in_training_also():
    with pytest.raises(SpecError) as caught:
        _workload("--task", "training", "--method", "lora", "--lora-rank", "0")
    assert caught.value.field == "--lora-rank"


def test_options_change_the_base_and_keep_the_rest():
    base = Inference(batch=4, context_length=8192)
    assert _workload("--batch", "2", base=base) == Inference(batch=2, context_length=8192)


def test_another_task_starts_afresh_but_keeps_the_cards():
    base = Inference(batch=4, parallel=Parallel(data=2), other_processes_bytes=7)
    assert _workload("--task", "training", base=base) == Training(parallel=Parallel(data=2), other_processes_bytes=7)


def test_set_takes_json_names_sizes_and_nested_fields():
    made = _workload(
        "--set",
        "batch=3",
        "--set",
        "other_processes_bytes=2GiB",
        "--set",
        "parallel.data=2",
        "--set",
        "attention=eager",
    )
    assert made == Inference(batch=3, other_processes_bytes=2 * 2**30, parallel=Parallel(data=2), attention="eager")


def test_set_and_an_option_of_the_same_group_meet():
    base = Inference(parallel=Parallel(data=8))
    assert _workload("--set", "parallel.data=2", base=base).parallel == Parallel(data=2)
    assert _workload("--dp", "3", "--set", "parallel.data=2").parallel == Parallel(data=2)


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("--task dance", "--task: unknown task 'dance'", "Choose inference or training."),
        ("--optimizer adamw", "--optimizer: applies to training, but the task is inference", "add --task training"),
        (
            "--task training --batch 2",
            "--batch: applies to inference, but the task is training",
            "add --task inference",
        ),
        ("--set optimizer=sgd", "--set optimizer: applies to training", "add --task training"),
        ("--batch four", "--batch: 'four' is not a whole number", "Type a whole number"),
        ("--batch 0", "--batch: must be at least 1, not 0", "--help"),
        ("--batch -1", "--batch: must be at least 1", "--help"),
        ("--context 1e30", "--context: ", "--help"),
        ("--task training --optimizer adamm", "--optimizer: there is no 'adamm'; choose adamw,", "adamw."),
        ("--weights q9", "--weights: there is no 'q9'; choose fp32, bf16", "--help"),
        ("--weights Q4_KM", "--weights: there is no 'Q4_KM'", "Close names: Q4_K_M, "),
        ("--kv-cache q4", "--kv-cache: there is no 'q4'; choose fp32, bf16", "Close names: q4_"),
        ("--image-size big", "--image-size: 'big' is not a size in pixels: write width and height", "--help"),
        ("--set engine=3", "engine: 3 is not an object of named fields", "--help"),
        ("--set engine.n_ubatchh=3", "engine.n_ubatchh: there is no such field", "Close names: engine.n_ubatch, "),
        ("--task training --method qlora --compute fp32", "qlora cannot compute in fp32 here", "--help"),
        ("--task training --set checkpoint_every=4", "checkpoint_every needs --checkpointing full", "--help"),
        ("--dp 0", "--dp: must be at least 1", "--help"),
        ("--set colour=red", "colour: there is no such field", "--help-all"),
        ("--set batch", "--set: 'batch' is not NAME=VALUE", "--set batch=4"),
        ("--set other_processes_bytes=lots", "bytes: 'lots' is not a size", "24 GiB"),
        ("--frobnicate", "unrecognized arguments: --frobnicate", "--help"),
        ("--batch-size 4", "unrecognized arguments: --batch-size", "Did you mean --batch or --micro-batch?"),
        ("--qlora", "unrecognized arguments: --qlora", "Did you mean --task training --method qlora?"),
        ("--max-model-len 8192", "unrecognized arguments: --max-model-len", "Did you mean --context?"),
        ("--task train", "--task: unknown task 'train'", "Fine-tuning is training with a method"),
        ("--weights awq4", "--weights: there is no 'awq4'", "Close names: awq4-64, awq4-128."),
        ("--optimiser sgd", "unrecognized arguments: --optimiser", "Did you mean --optimizer?"),
        (
            "--profile hugging face",
            "unrecognized arguments: face",
            'Quote a name of several words: --profile "hugging face"',
        ),
        ("stray", "unrecognized arguments: stray", "--help"),
        ("--cont 5", "unrecognized arguments: --cont", "--help"),
    ],
)
def test_wrong_values_name_the_option(words, message, hint):
    with pytest.raises(PlannerError) as raised:
        _workload(*words.split())
    assert message in raised.value.message
    assert hint in raised.value.hint


def test_a_workload_file_is_the_base(tmp_path):
    path = tmp_path / "workload.json"
    path.write_text(json.dumps({"task": "training", "micro_batch": 4}))
    assert _workload("--workload", str(path), "--seq", "512") == Training(micro_batch=4, sequence_length=512)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 5000, "is nested too deep"),
        (b'{"batch": 1e30}', "batch: 1e+30 is not a number below 10³⁰"),
        (b"[1]", "is not a JSON object"),
        (b'{"task": "sing"}', "unknown task 'sing'"),
        (b'{"task": ["training"]}', "unknown task ['training']"),
        (b'{"batch": -2}', "batch: must be at least 1"),
        (b'{"bacth": 2}', "bacth: there is no such field"),
    ],
)
def test_a_workload_file_that_is_none(tmp_path, content, reason):
    path = tmp_path / "workload.json"
    path.write_bytes(content)
    with pytest.raises(PlannerError) as raised:
        read_workload(path)
    assert reason in raised.value.message
    assert raised.value.hint


def test_a_workload_file_that_cannot_be_read(tmp_path):
    for path, reason in ((tmp_path, "is a folder"), (tmp_path / "none.json", "No such file")):
        with pytest.raises(PlannerError, match=reason):
            read_workload(path)


def test_defaults_that_were_used_are_told_as_options():
    asked = Inference(batch=2, weights=None)
    used = asked.evolve(
        weights="bf16", profile="hf", context_length=4096, prompt_length=4096, parallel=Parallel(data=1)
    )
    assert " ".join(default_option_texts(asked, used)) == (
        "--weights bf16 --compute bf16 --context 4096 --prompt 4096 --kv-cache bf16 --attention sdpa --profile hf "
        "--dp 1"
    )


def test_defaults_beside_what_was_given_of_the_same_part_are_told():
    asked = Training(method="lora", lora=Lora(dora=True))
    assert "--lora-rank 16 --lora-targets usual" in " ".join(default_option_texts(asked, asked))


def test_errors_carry_the_field():
    with pytest.raises(SpecError) as raised:
        _workload("--batch", "0")
    assert raised.value.field == "--batch"


def test_an_option_of_two_fields_is_that_of_the_task():
    trained = _workload("--task", "training", "--method", "lora", "--lora-rank", "4", "--lora-targets", "to_q,to_k")
    assert trained.lora == Lora(rank=4, targets=("to_q", "to_k"))
    served = _workload("--profile", "vllm", "--lora-slots", "2", "--lora-rank", "32")
    assert (served.adapters.slots, served.adapters.rank) == (2, 32)
    error = naming_options(SpecError("lora.targets", "no linear layer has this name"))
    assert error.field == "--lora-targets"


def test_several_values_are_written_as_an_option_takes_them():
    assert option_text("workload.image_size", (1024, 768)) == "--image-size 1024x768"
    assert option_text("workload.lora.targets", ("to_q", "to_out.0")) == "--lora-targets to_q,to_out.0"
    assert option_text("workload.lora.targets", "all-linear") == "--lora-targets all-linear"
