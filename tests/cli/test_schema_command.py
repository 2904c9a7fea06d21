"""The command `schema`: what each command prints is as its schema says."""

import json
from pathlib import Path

import pytest
import scrapes
from fake_nvml_kit import A, card
from recording_kit import CARDS, sample, written

from planner.cli import main as cli
from planner.cli.automation.json_outputs import OUTPUTS
from planner.cli.automation.schema import json_schema
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.trace.files import save_recording
from planner.units import MIB
from planner.workload.workload import Inference

jsonschema = pytest.importorskip("jsonschema", reason="the extra `test` has it")
pytest.importorskip("recordings")

from recordings import training, two_steps  # noqa: E402  # after the check for the package above

LOG = """\
timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu
2026/01/03 15:36:53.500, 0, NVIDIA X, 90 %, 1024 MiB, 100.00 W, 50
2026/01/03 15:36:54.500, 0, NVIDIA X, 100 %, 2048 MiB, 200.00 W, 52
"""
LOADED = (
    "(EngineCore_0 pid=1) INFO 05-05 10:00:00 [gpu_model_runner.py:1] Model loading took 14.99 GiB and 3.0 seconds\n"
)
LLAMA = "meta-llama/Llama-3.1-8B"
SERVED = "serve-plan openai-community/gpt2 --rate 2/s --input 100 --output 20 --requests 40"
COMMANDS = {
    "completion": ["completion bash"],
    "cost": [
        f"cost {LLAMA} --gpu l40s --profile vllm --batch 8 --requests-per-day 2000 --tornado --carbon",
        "cost plan.json --own --versus l40s",
        f"cost {LLAMA} --gpu rtx-4090 --task training --method qlora --tokens 5e6",
        f"cost {LLAMA} --gpu rtx-3060-12-gb",
    ],
    "fit": [
        f"fit {LLAMA}",
        f"fit {LLAMA} --gpu rtx-4090 --advise --solve batch --solve gpu --versus l40s",
        f"fit {LLAMA} --task training --gpu h100-sxm5-80gb --count 8",
        "fit --preset unsloth-llama-3.1-8b --gpu rtx-4090",
        "fit plan.json --log vllm.log",
        "fit qlora.yml --gpu rtx-4090",
    ],
    "fit list-presets": ["fit --list-presets"],
    "fleet": ["fleet cards.prom", "fleet cards.prom server.prom --worst 1 --tariff 0.3"],
    "gpus": ["gpus rtx 40", "gpus h100 --sort price", "gpus --fits plan.json --limit 3", "gpus t4 --price-under 5000"],
    "gpus build": ["gpus --build rtx-5090", "gpus --build dgx-a100-640gb"],
    "gpus here": ["gpus --here"],
    "gpus own": ["gpus --own"],
    "gpus systems": ["gpus --systems dgx --sort rent", "gpus --systems dgx --fits plan.json"],
    "launch": ["launch plan.json --for vllm --on slurm"],
    "man": ["man"],
    "models": ["models llama"],
    "models show": [f"models --show {LLAMA}", "models --show config.json"],
    "models supported": ["models --supported"],
    "monitor": ["monitor --once"],
    "monitor doctor": ["monitor --doctor"],
    "monitor export": [
        "monitor --replay run.gpurec --export run.csv",
        "monitor --replay run.gpurec --export runs --as tensorboard",
    ],
    "monitor import": ["monitor --import smi.csv --record imported.gpurec"],
    "monitor summary": ["monitor --summary run.gpurec --tariff 0.3"],
    "prices": ["prices runpod --limit 5"],
    "recommend": [f"recommend {LLAMA} --task training --method qlora --tokens 5e6 --limit 3"],
    "report": ["report plan.json -o report.md"],
    "serve-plan": [f"{SERVED} --gpu l40s --ttft p95=2s --own --counts 1"],
    "serve-plan curve": [f"{SERVED} --gpu l40s --curve"],
    "serve-plan measured": ["serve-plan openai-community/gpt2 --gpu l40s --measured bench.json"],
    "serve-plan simulation": [f"{SERVED} --gpu l40s --count 1 --ttft p95=2s --goodput 90%,e2e=60s"],
    "trace": ["trace run.trace.json.gz --gpu rtx-4090", "trace run.trace.json.gz"],
    "verify": ["verify plan.json"],
    "verify log": ["verify plan.json --log vllm.log"],
}
"""Commands whose output each schema describes."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    workload = Inference(profile="vllm", batch=4, context_length=4096)
    save_plan("plan.json", Plan(model=ModelChoice(id=LLAMA), workload=workload, gpu="l40s"))
    readings = {"utilization_fraction": 1.0, "clock_reasons": 4.0, "energy_joules": 100.0}
    (tmp_path / "run.gpurec").write_bytes(written([CARDS, *(sample(float(at), a=readings) for at in range(9))]))
    (tmp_path / "smi.csv").write_text(LOG)
    (tmp_path / "cards.prom").write_text(scrapes.DCGM)
    (tmp_path / "server.prom").write_text('vllm:num_requests_running{model_name="m"} 1\n')
    measured = Path(__file__).parent.parent / "corpus" / "serving-results" / "vllm-bench.json"
    (tmp_path / "bench.json").write_bytes(measured.read_bytes())
    (tmp_path / "vllm.log").write_text(LOADED)
    network = {"model_type": "gpt2", "n_positions": 1024, "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps(network))
    (tmp_path / "qlora.yml").write_text(
        f"base_model: {LLAMA}\nadapter: qlora\nload_in_4bit: true\nsequence_len: 2048\n"
    )
    save_recording("run.trace.json.gz", two_steps(MIB, training(batch=8)))
    return tmp_path


def test_every_output_is_tried():
    assert set(COMMANDS) == {name for name in OUTPUTS if name not in ("plan", "workload")}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_output_is_as_its_schema_says(name, folder, capsys, request):
    if name in ("monitor", "monitor doctor", "gpus here"):
        fake = request.getfixturevalue("near_nvml")
        fake.say(card(0, A))
    schema = json_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for command in COMMANDS[name]:
        code = cli.main([*command.split(), "--json"])
        out = capsys.readouterr()
        assert code == 0, out.err
        errors = [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(json.loads(out.out))]
        assert errors == [], command


def test_the_lines_of_a_replay_are_as_their_schema_says(folder, capsys):
    validator = jsonschema.Draft202012Validator(json_schema("monitor"))
    assert cli.main(["monitor", "--replay", "run.gpurec", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 9
    assert [list(validator.iter_errors(line)) for line in lines] == [[]] * 9


def test_files_of_plans_and_workloads_are_as_their_schemas_say(folder):
    validator = jsonschema.Draft202012Validator(json_schema("plan"))
    plan = json.loads((folder / "plan.json").read_text())
    assert validator.is_valid(plan)
    assert validator.is_valid({"model": {"id": LLAMA}}), "what has a default may be left out"
    assert not validator.is_valid({**plan, "gpus": 3})
    workload = jsonschema.Draft202012Validator(json_schema("workload"))
    assert workload.is_valid({"task": "training", "method": "qlora", "lora": {"rank": 8}})
    assert not workload.is_valid({"task": "training", "method": "qlorra"})
    assert not workload.is_valid({"task": "inference", "method": "qlora"})


def test_a_schema_refuses_what_is_missing_and_what_is_unknown(folder, capsys):
    assert cli.main(["fit", LLAMA, "--gpu", "rtx-4090", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    validator = jsonschema.Draft202012Validator(json_schema("fit"))
    assert validator.is_valid(printed)
    assert not validator.is_valid({**printed, "more": 1})
    del printed["memory"]["verdict"]
    assert not validator.is_valid(printed)


def test_the_command_prints_schemas_and_lists_them(capsys):
    assert cli.main(["schema", "monitor", "--summary"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary == json_schema("monitor summary")
    assert (summary["title"], summary["type"]) == ("gpu-planner monitor summary", "object")
    assert cli.main(["schema"]) == 0
    assert "monitor summary the summary of a recording" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["schema", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"] == "the file of a plan"
    assert cli.main(["schema", "fitt"]) == 2
    assert "Did you mean fit?" in capsys.readouterr().err
    assert cli.main(["schema", "zzz"]) == 2
    assert "lists what is described" in capsys.readouterr().err


def test_fields_are_described():
    memory = json_schema("fit")["$defs"]["MemoryResult"]["properties"]
    assert memory["peak_phase"]["description"]
    engine = json_schema("workload")["$defs"]["Inference"]["properties"]["engine"]
    assert "memory_utilization" in str(engine) or "memory_utilization" in str(json_schema("workload")["$defs"])


def test_the_fields_of_an_evaluation_are_described():
    fields = json_schema("fit")["properties"]
    assert [name for name, field in fields.items() if "description" not in field] == []
    assert "null for other plans" in fields["sharing"]["description"]
