"""Commands that measure a plan, and what they should show."""

import ast
import json
from types import SimpleNamespace

import pytest
from launched import serving, training
from recordings import training as traced_training
from recordings import two_steps

import planner
from planner.errors import SpecError
from planner.launch.software import LAUNCHERS
from planner.launch.verify import plan_checks
from planner.memory.logs.read import read_log
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import compare_plan
from planner.trace.analysis.memory import facts_of
from planner.workload.workload import Inference


def expected(checks):
    return {amount.name: amount for check in checks for amount in check.expected}


def test_vllm_is_started_with_the_share_that_the_estimate_is_for(catalog):
    plan = serving("vllm", batch=4, context_length=8192, prompt_length=8000)
    start, bench, smi = plan_checks(plan, catalog)
    memory = evaluate(plan, catalog).memory
    assert f"--gpu-memory-utilization {memory.cache_pool.utilization} " in start.command
    assert start.command.endswith("2>&1 | tee vllm.log")
    assert " --ignore-eos " in bench.command
    assert "--random-input-len 8000 --random-output-len 192 --max-concurrency 4" in bench.command
    found = expected((start, bench))
    assert found["pool"].value == memory.cache_pool.bytes
    assert found["cache-tokens"].value == memory.cache_pool.tokens
    assert found["cache-tokens"].low < found["cache-tokens"].value < found["cache-tokens"].high
    assert "first-token" not in found  # four requests do not read their prompts together
    assert "state" not in found
    # nvidia-smi shows the pool, of which the plan needs only a part.
    assert expected((smi,))["process"].value > memory.total_bytes
    alone = expected(plan_checks(serving("vllm", context_length=8192, prompt_length=8000), catalog))
    assert (
        alone["first-token"].value
        == evaluate(serving("vllm", context_length=8192, prompt_length=8000), catalog).time.first_token_seconds
    )


def test_a_log_that_shows_what_is_expected_agrees_everywhere(catalog):
    plan = serving("vllm", batch=4, context_length=8192, prompt_length=8000)
    found = expected(plan_checks(plan, catalog))
    text = (
        f"Model loading took {found['weights'].value / 2**30:.4f} GiB and 3 seconds\n"
        f"Available KV cache memory: {found['pool'].value / 2**30:.2f} GiB\n"
        f"GPU KV cache size: {int(found['cache-tokens'].value):,} tokens\n"
    )
    comparison = compare_plan(plan, catalog, read_log(text))
    assert all(row.is_in_range or row.agrees for row in comparison.rows if row.name != "kv_cache")
    assert [figure.is_in_range for figure in comparison.figures] == [True]


def test_llama_cpp_is_measured_by_its_own_benchmark_with_the_same_settings(catalog):
    plan = serving("llama.cpp", weights="Q4_K_M", kv_cache="q8_0", context_length=8192, prompt_length=8000)
    start, bench, _smi = plan_checks(plan, catalog)
    assert "--ctx-size 8192 --parallel 1 " in start.command
    prompt, generation = bench.command.splitlines()
    assert prompt.startswith("llama-bench -m ./Llama-3.1-8B-Q4_K_M.gguf -ctk q8_0 ")
    assert prompt.endswith("-ngl 33 -o jsonl -p 8000 -n 0")
    assert generation.endswith("-p 0 -n 192 -d 8000")
    assert set(expected((start, bench))) == {"weights", "kv_cache", "working", "host", "prompt", "generation"}


def test_several_requests_and_gpus_of_llama_cpp_are_measured_together(catalog):
    plan = serving("llama.cpp", weights="Q4_K_M", batch=3, context_length=8192, engine={"slots": 4})
    start, bench, _smi = plan_checks(plan, catalog)
    assert "--ctx-size 32768 --parallel 4 " in start.command
    assert bench.command.startswith("llama-batched-bench ")
    assert bench.command.endswith("-c 24576 -npp 4096 -ntg 4096 -npl 3")
    split = plan_checks(serving("llama.cpp", count=2, weights="Q8_0", parallel={"pipeline": 2}), catalog)
    assert "-sm layer -ts 16/16 " in split[1].command or "-ts " in split[1].command
    assert "," not in split[1].command.partition("-ts ")[2].partition(" ")[0]


class Cuda:
    """As much of `torch.cuda` as the lines use, without a GPU."""

    def memory_stats(self):
        return {"allocated_bytes.all.peak": 10 * 2**30, "reserved_bytes.all.peak": 11 * 2**30}

    def synchronize(self):
        pass


class Words:
    """As much of `torch` as the lines use."""

    cuda = Cuda()

    def randint(self, low, high, shape, device):
        assert (low, device) == (0, "cuda")
        return (high, shape)


def printed(check, monkeypatch, capsys, **names):
    """Run the lines of a check with the names that a user's script has, and return what they print."""
    monkeypatch.setitem(__import__("sys").modules, "torch", Words())
    ast.parse(check.command)
    exec(check.command, names)
    return capsys.readouterr().out


def test_the_lines_around_a_training_step_print_what_is_read_back(catalog, monkeypatch, capsys):
    plan = training(micro_batch=4, gradient_accumulation=2, method="lora", sequence_length=1024)
    lines, _smi = plan_checks(plan, catalog)
    assert "# yours: forward and backward of 2 × 4 × 1,024 tokens, then optimizer.step()" in lines.command
    steps = []
    text = printed(lines, monkeypatch, capsys, train_step=lambda: steps.append(1))
    assert len(steps) == 8
    assert set(json.loads(text)) == {"seconds_per_step", "allocated_bytes.all.peak", "reserved_bytes.all.peak"}
    found = compare_plan(plan, catalog, read_log(text))
    assert [row.name for row in found.rows] == ["allocated", "reserved"]
    assert found.figures[0].is_of_plan
    assert found.rows[0].predicted_bytes == expected((lines,))["allocated"].value


def test_the_lines_around_a_generation_print_what_is_read_back(catalog, monkeypatch, capsys):
    plan = serving("hf", batch=2, context_length=1024, prompt_length=1000)
    lines, _smi = plan_checks(plan, catalog)
    asked = []

    def generate(prompts, **options):
        asked.append((prompts, options["max_new_tokens"], options["min_new_tokens"]))

    model = SimpleNamespace(config=SimpleNamespace(vocab_size=99), generate=generate)
    text = printed(lines, monkeypatch, capsys, model=model)
    assert asked == [((99, (2, 1000)), tokens, tokens) for tokens in (2, 1, 24)]
    found = compare_plan(plan, catalog, read_log(text))
    assert {figure.measured.name for figure in found.figures} >= {"first-token"}
    assert all(figure.is_of_plan for figure in found.figures)


def test_a_server_without_commands_of_its_own_has_only_the_gpus(catalog, monkeypatch):
    monkeypatch.setitem(LAUNCHERS, "vllm", LAUNCHERS["vllm"]._replace(measure=None))
    (smi,) = plan_checks(serving("vllm"), catalog)
    assert smi.command.startswith("nvidia-smi")


def test_a_traced_step_is_called_as_it_was_traced(catalog):
    facts = facts_of(two_steps(2**30, traced_training()))
    traced = planner.Plan(model=planner.ModelChoice.of_trace(facts), gpu="l40s")
    lines = plan_checks(traced, catalog)[0]
    assert "one step as it was traced" in lines.command
    assert expected((lines,))["allocated"].value > 0


def test_other_networks_are_measured_as_a_whole(catalog):
    bert = planner.Plan(model=planner.ModelChoice(id="google-bert/bert-base-uncased"), gpu="l40s")
    lines, _smi = plan_checks(bert, catalog)
    assert "request()  # yours" in lines.command
    assert {"request", "allocated"} <= set(expected((lines,)))


def test_images_are_counted_as_samples(catalog):
    vit = planner.Plan(
        model=planner.ModelChoice(id="google/vit-base-patch16-224"),
        gpu="l40s",
        workload=planner.Training(micro_batch=8),
    )
    assert "8 × " in plan_checks(vit, catalog)[0].command


def test_what_was_measured_before_is_no_part_of_what_is_expected(catalog):
    plan = training(method="lora")
    measured = plan.evolve(timing=plan.timing.evolve(measured={"value": 9.0, "unit": "seconds/step"}))
    assert plan_checks(measured, catalog) == plan_checks(plan, catalog)


def test_cards_of_other_makers_have_no_nvidia_smi(catalog):
    plan = serving("hf", gpu="instinct-mi300x")
    assert len(plan_checks(plan, catalog)) == 1
    assert len(plan_checks(plan.evolve(gpu=None), catalog)) == 2
    with pytest.raises(SpecError, match="the plan has no GPU"):
        plan_checks(serving("vllm").evolve(gpu=None), catalog)


def test_a_plan_that_does_not_fit_its_server_says_so(catalog):
    with pytest.raises(SpecError):
        plan_checks(serving("vllm", gpu="tesla-t4"), catalog)


def test_a_plan_without_an_answer_is_expected_as_it_is_measured(catalog):
    plan = serving("hf", context_length=1024)
    (amount,) = [one for one in plan_checks(plan, catalog)[0].expected if one.name == "first-token"]
    shorter = Inference(profile="hf", context_length=1024, prompt_length=896)
    assert amount.value == evaluate(plan.evolve(workload=shorter), catalog).time.first_token_seconds
