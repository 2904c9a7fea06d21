import json
from datetime import date
from pathlib import Path

import pytest

from planner.cli import main as cli
from planner.cli.serve_plan import command
from planner.cli.serve_plan.request import parse_goodput, parse_rate
from planner.errors import SpecError
from planner.plan.files import load_plan
from planner.plan.serving.answer import ServingAnswer
from planner.serving.result import ServingSimulation
from planner.serving.targets import Goodput

TODAY = date(2026, 11, 22)
SMALL = ("openai-community/gpt2", "--input", "100", "--output", "20", "--requests", "60")
GIVEN = (*SMALL, "--gpu", "l40s", "--count", "1")
SEARCHED = (*SMALL, "--gpu", "l40s", "--rate", "2/s", "--ttft", "p95=2s", "--counts", "1", "--own")


def serve(*arguments: str) -> int:
    return command.run(list(arguments), TODAY)


def test_given_gpus_are_simulated(capsys):
    assert serve(*GIVEN, "--rate", "120/min", "--ttft", "p95=2s", "--itl", "1s", "--goodput", "90%,e2e=60s") == 0
    told = capsys.readouterr().out
    setting = "1 × L40S with vLLM, for 2 requests/s, prompts of 100 tokens, answers of 20."
    assert told.startswith(f"All latency targets are met.\n\n{setting}\n")
    assert told.count("met") == 4
    assert "p95 time between tokens ≤ 1\u2009s" in told
    assert "The GPUs wait for requests most of the time." in told


def test_the_simulation_is_printed_as_json(capsys):
    assert serve(*GIVEN, "--rate", "2", "--json") == 0
    found = ServingSimulation.model_validate_json(capsys.readouterr().out)
    assert found.requests == 60
    assert found.seed == 0


def test_another_seed_is_another_sample(capsys):
    serve(*GIVEN, "--rate", "2", "--seed", "7", "--json")
    assert json.loads(capsys.readouterr().out)["seed"] == 7


def test_a_curve_has_a_row_for_each_rate(capsys):
    assert serve(*SMALL, "--gpu", "l40s", "--rate", "2", "--curve") == 0
    assert "Keeps up" in capsys.readouterr().out
    serve(*SMALL, "--gpu", "l40s", "--rate", "2", "--curve", "--json")
    rates = [point["requests_per_second"] for point in json.loads(capsys.readouterr().out)["curve"]]
    assert rates == sorted(rates)
    assert 2.0 in rates


def test_what_cannot_be_simulated_says_why(capsys):
    assert serve("bert-base-uncased", "--gpu", "l40s", "--count", "1", "--rate", "1", "--check") == 1
    assert "This service cannot be simulated" in capsys.readouterr().out


def test_a_missed_target_has_its_code(capsys):
    assert serve(*GIVEN, "--rate", "2", "--ttft", "p95=0.01ms", "--check") == 1
    assert "missed" in capsys.readouterr().out


def test_hardware_is_searched_without_a_number_of_gpus(capsys, tmp_path):
    file = tmp_path / "best.json"
    assert serve(*SEARCHED, "--save", str(file)) == 0
    told = capsys.readouterr().out
    assert "Best: 1 × L40S, owned" in told
    assert "What would change it:" in told
    assert load_plan(file).gpu == "l40s"


def test_the_search_is_printed_as_json_and_its_number_may_be_found_anew(capsys):
    assert serve(*SEARCHED, "--count", "4", "--search", "--json") == 0
    answer = ServingAnswer.model_validate_json(capsys.readouterr().out)
    assert answer.complete
    assert [option.cards for option in answer.options] == [1]


def test_several_options_are_a_table(capsys):
    wide = (*SEARCHED, "--try-kv-cache", "fp8", "--limit", "1")
    assert serve(*wide) == 0
    assert "1 of 2 options listed; --all lists them all" in capsys.readouterr().out
    assert serve(*wide, "--all") == 0
    assert "KV cache in fp8" in capsys.readouterr().out


def test_nothing_found_shows_what_comes_closest(capsys):
    assert serve(*SEARCHED, "--e2e", "p95=0.01ms", "--most-gpus", "2", "--check") == 1
    told = capsys.readouterr().out
    assert "No hardware within the limits meets the targets." in told
    assert "Closest to the targets: 2 × L40S" in told


def test_presets_bring_lengths_and_targets(capsys):
    assert (
        serve(
            "openai-community/gpt2",
            "--traffic",
            "batch",
            "--gpu",
            "l40s",
            "--search",
            "--rate",
            "0.1",
            "--input",
            "500",
            "--output",
            "20",
            "--requests",
            "40",
            "--counts",
            "1",
        )
        == 0
    )
    assert "p95 time to the last token ≤ 60\u2009min" in capsys.readouterr().out
    serve(*GIVEN, "--traffic", "chat", "--clients", "4", "--json")
    assert json.loads(capsys.readouterr().out)["offered_requests_per_second"] is None


def test_beginnings_conversations_and_bursts_are_options(capsys):
    shared = ("--shared-prefix", "50", "--prefixes", "2", "--turns", "2", "--think-seconds", "1", "--burstiness", "0.5")
    assert serve(*GIVEN, "--rate", "1", *shared) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "2 shared prefixs of 50 tokens" in told
    assert "in bursts" in told
    assert "from the prefix cache" in told
    serve(*GIVEN, "--rate", "1", *shared, "--no-prefix-cache", "--router", "least-loaded")
    assert "prompt tokens come from" not in " ".join(capsys.readouterr().out.split())


def test_replicas_may_be_disaggregated(capsys):
    spread = (*SMALL, "--gpu", "l40s", "--count", "2", "--dp", "2", "--rate", "1", "--disaggregate", "1+1")
    assert serve(*spread) == 0
    assert "2 × L40S" in capsys.readouterr().out


def test_lengths_may_differ(capsys):
    assert (
        serve(
            "openai-community/gpt2",
            "--gpu",
            "l40s",
            "--count",
            "1",
            "--rate",
            "1",
            "--input",
            "100:200",
            "--requests",
            "40",
        )
        == 0
    )
    assert "prompts of 100 tokens (one in ten over 200), answers of 300" in capsys.readouterr().out


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "requests.csv"
    rows = "\n".join(f"{number / 2},{100 + number},20" for number in range(40))
    file.write_text(f"arrival_seconds,input_tokens,output_tokens\n{rows}\n")
    return str(file)


def test_a_trace_is_played_at_its_own_rate_or_another(capsys, trace):
    played = ("openai-community/gpt2", "--gpu", "l40s", "--count", "1", "--trace", trace, "--json")
    rates = []
    for more in ((), ("--speed", "2"), ("--rate", "8/s")):
        assert serve(*played, *more) == 0
        rates.append(json.loads(capsys.readouterr().out)["offered_requests_per_second"])
    assert rates == pytest.approx([2, 4, 8])


@pytest.mark.parametrize(
    ("arguments", "field", "reason"),
    [
        ((), "--rate", "is missing"),
        (("--rate", "4/week"), "--rate", "is not a rate"),
        (("--rate", "many"), "--rate", "many"),
        (("--rate", "0"), "--rate", "more than 0"),
        (("--rate", "1", "--clients", "2"), "--clients", "cannot be combined"),
        (("--rate", "1", "--ttft", "1h"), "--ttft", "not a target"),
        (("--rate", "1", "--ttft", "1s", "--ttft", "2s"), "--ttft", "one limit only"),
        (("--rate", "1", "--goodput", "99%"), "--goodput", "no limit"),
        (("--rate", "1", "--goodput", "99%,ttft=soon"), "--goodput", "not a goodput target"),
        (("--rate", "1", "--goodput", "990%,ttft=1s"), "--goodput", "at most 1"),
        (("--rate", "1", "--input", "1:2:3"), "--input", "not a length"),
        (("--rate", "1", "--input", "200:100"), "--input", "p90_tokens"),
        (("--rate", "1", "--traffic", "cat"), "--traffic", "unknown preset"),
        (("--traffic", "chat", "--clients", "2", "--turns", "3"), "--traffic", "clients"),
        (("--rate", "1", "--router", "random"), "--router", "round-robin"),
        (("--rate", "1", "--disaggregate", "two"), "--disaggregate", "not a split into replicas"),
        (("--rate", "1", "--requests", "0"), "--requests", "between 1 and"),
    ],
)
def test_wrong_options_are_named(arguments, field, reason):
    with pytest.raises(SpecError) as caught:
        serve("openai-community/gpt2", "--gpu", "l40s", "--count", "1", *arguments)
    assert (caught.value.field, reason in caught.value.reason) == (field, True), caught.value


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--objective", "fame"), "--objective"),
        (("--counts", "0"), "--counts"),
        (("--vendor", "Acme"), "--vendor"),
        (("--most-gpus", "100000"), "--most-gpus"),
        (("--budget", "0"), "--budget"),
        (("--modes", "free"), "--modes"),
    ],
)
def test_wrong_wishes_are_named(arguments, field):
    with pytest.raises(SpecError) as caught:
        serve(*SMALL, "--rate", "1", "--ttft", "1s", *arguments)
    assert caught.value.field == field


def test_a_search_needs_a_target():
    with pytest.raises(SpecError, match="at least one latency target"):
        serve(*SMALL, "--rate", "1")


@pytest.mark.parametrize("more", [("--input", "5"), ("--clients", "2"), ("--speed", "2", "--rate", "1")])
def test_a_trace_has_its_own_traffic(trace, more):
    with pytest.raises(SpecError, match="cannot be combined"):
        serve("openai-community/gpt2", "--gpu", "l40s", "--count", "1", "--trace", trace, *more)


def test_requests_at_the_same_moment_have_no_rate(tmp_path):
    file = tmp_path / "requests.csv"
    file.write_text("arrival_seconds,input_tokens,output_tokens\n0,5,5\n0,5,5\n")
    with pytest.raises(SpecError) as caught:
        serve(*GIVEN[:1], "--gpu", "l40s", "--count", "1", "--trace", str(file), "--rate", "2")
    assert caught.value.field == "--rate"


def test_a_rate_is_read_in_any_unit():
    assert [parse_rate(text) for text in ("4", "4/s", "120/min", "1.8k/h", "86,400 req/day")] == [4, 4, 2, 0.5, 1]


def test_a_goodput_target_is_a_share_with_limits():
    assert parse_goodput("0.9,ttft=500ms,tpot=50ms") == Goodput(share=0.9, ttft_seconds=0.5, tpot_seconds=0.05)


def test_the_command_is_known(capsys):
    assert cli.COMMANDS["serve-plan"].about


CORPUS = Path(__file__).parent.parent / "corpus"


def test_a_measured_run_stands_beside_its_simulation(capsys):
    file = str(CORPUS / "serving-results" / "sglang-bench.jsonl")
    assert serve("openai-community/gpt2", "--gpu", "l40s", "--measured", file) == 0
    told = capsys.readouterr().out
    assert told.startswith("Measured by a result file of SGLang's bench_serving: 4 requests/s")
    assert "Simulated on 1 × L40S with SGLang." in told
    assert "First token, p99" in told


def test_measured_runs_are_printed_as_json(capsys):
    file = str(CORPUS / "serving-results" / "vllm-bench.json")
    assert serve("openai-community/gpt2", "--gpu", "l40s", "--profile", "sglang", "--measured", file, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["program"] == "sglang"
    assert found["figures"]


def test_a_scrape_needs_the_rate_of_its_requests(capsys):
    scrape = ("openai-community/gpt2", "--gpu", "l40s", "--measured", str(CORPUS / "serving-metrics" / "vllm.metrics"))
    with pytest.raises(SpecError, match="does not say how many requests arrive"):
        serve(*scrape)
    assert serve(*scrape, "--rate", "1/s", "--input", "100", "--output", "20") == 0
    assert "Measured by vLLM's /metrics: 1 requests/s" in capsys.readouterr().out


def test_a_measured_run_on_no_gpu_says_why_nothing_is_simulated(capsys):
    serve("openai-community/gpt2", "--measured", str(CORPUS / "serving-results" / "vllm-bench.json"))
    assert "This service cannot be simulated: the plan has no GPU." in capsys.readouterr().out
