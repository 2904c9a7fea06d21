"""The README and the manual: commands run, links lead somewhere, generated pages and tables are current."""

import importlib
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlparse

import pytest
import yaml
from fake_nvml_kit import A, card
from huggingface_hub import constants
from recording_kit import CARDS, sample, written
from recordings import training, two_steps

from planner.cli.commands import COMMANDS as NAMES
from planner.cli.main import main
from planner.cost.price_feeds.registry import HOSTS
from planner.gui.manual import heading_slug
from planner.models.readers.hub import _HUB_DOMAINS
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.present.format import THIN
from planner.trace.files import save_recording
from planner.units import MIB
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
README = TEXTS["README.md"]
START = 'python3 -m venv .venv && .venv/bin/pip install ".[app,hub]" && .venv/bin/gpu-planner'
TEST = 'python3 -m venv .venv && .venv/bin/pip install -e ".[test]" && .venv/bin/pytest'


def _blocks(language: str) -> list[tuple[str, str]]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [(page, block) for page, text in TEXTS.items() for block in pattern.findall(text)]


LINES = sorted({line for _, block in _blocks("sh") for line in block.splitlines() if not line.startswith("# ")})
COMMANDS = [line for line in LINES if line.startswith("gpu-planner ")]
TRACES = [line for line in COMMANDS if line.startswith("gpu-planner trace")]
LIVE = [line for line in COMMANDS if line.split()[1:] == ["monitor"] or re.search(r"monitor --record", line)]
ONE_SHOT = [line for line in COMMANDS if line not in (*TRACES, *LIVE)]
SERVED = Plan(
    model=ModelChoice(id="Qwen/Qwen3-0.6B"),
    workload=Inference(profile="vllm", context_length=2048),
    gpu="h100-sxm5-80gb",
)
LORA = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-70B"),
    workload=Training(method="lora", activation_checkpointing="full", parallel=Parallel(zero=3)),
    gpu="h100-sxm5-80gb",
    count=8,
)
QLORA = LORA.evolve(
    model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
    workload=Training(method="qlora", activation_checkpointing="full"),
    gpu="rtx-4090",
    count=1,
)
NET = """
from torch import nn

def Net(depth=18):
    blocks = [nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(depth)]
    return nn.Sequential(nn.Conv2d(3, 16, 7, 4), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
"""
SCRIPT = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--lr", type=float, default=1e-3)
options = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=options.lr)
for _ in range(1000):
    loss = net(torch.randn(options.batch_size, 64, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
AXOLOTL = """\
base_model: meta-llama/Llama-3.1-8B
adapter: qlora
load_in_4bit: true
sequence_len: 2048
micro_batch_size: 2
gradient_checkpointing: true
"""
LOG = """\
timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu
2026/01/03 15:36:53.500, 0, NVIDIA X, 90 %, 1024 MiB, 100.00 W, 50
2026/01/03 15:36:54.500, 0, NVIDIA X, 100 %, 2048 MiB, 200.00 W, 52
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with the files that the commands name."""
    monkeypatch.chdir(tmp_path)
    save_plan("lora.json", LORA)
    save_plan("plan.json", QLORA)
    save_plan("small.json", SERVED)
    (tmp_path / "net.py").write_text(NET, encoding="utf-8")
    (tmp_path / "package").mkdir()
    for name in ("train.py", "package/train.py"):
        (tmp_path / name).write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "n_positions": 4096, "n_layer": 2}', encoding="utf-8")
    (tmp_path / "qlora.yml").write_text(AXOLOTL, encoding="utf-8")
    (tmp_path / "nvidia-smi.csv").write_text(LOG, encoding="utf-8")
    truth = ROOT / "tests" / "truth" / "exporters"
    (scrape,) = truth.glob("*l40s*load.metrics")
    (tmp_path / "node1.prom").write_bytes(scrape.read_bytes())
    measured = ROOT / "tests" / "corpus" / "serving-results" / "vllm-bench.json"
    (tmp_path / "bench.json").write_bytes(measured.read_bytes())
    samples = (sample(float(at), a={"energy_joules": 360.0 * at, "utilization_fraction": 1.0}) for at in range(5))
    (tmp_path / "run.gpurec").write_bytes(written([CARDS, *samples]))
    save_recording("run.trace.json.gz", two_steps(MIB, training(batch=8)))
    return tmp_path


@pytest.mark.parametrize(("page", "program"), _blocks("python"))
def test_each_python_program_runs_and_prints(page, program, capsys):
    if page.startswith("docs/reference/"):
        pytest.skip("signatures are no programs")
    exec(compile(program, page, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("line", ONE_SHOT)
def test_each_command_runs_and_prints(line, folder, near_nvml, capsys):
    near_nvml.say(card(0, A))
    assert main(shlex.split(line)[1:]) == 0
    printed = capsys.readouterr()
    assert printed.out.strip()
    assert printed.err == ""


@pytest.mark.parametrize("line", LIVE)
def test_each_live_command_runs_until_it_is_interrupted(line, folder, fake_nvml):
    fake_nvml.say(card(0, A))
    (folder / "run.gpurec").unlink()
    words = [sys.executable, "-m", "planner", *shlex.split(line)[1:]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=fake_nvml.environment, text=True) as process:
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert first.strip() or rest.strip()
    assert process.returncode in (0, 130)


@pytest.mark.oracle
@pytest.mark.parametrize("line", TRACES)
def test_each_trace_runs_and_prints(line, folder, capsys):
    assert main(shlex.split(line, comments=True)[1:]) == 0
    assert "Traced in" in capsys.readouterr().out


def test_the_workflow_checks_a_plan(folder, capsys):
    """Run what the example for GitHub Actions runs after its set-up, and check that it names existing steps."""
    (block,) = (block for page, block in _blocks("yaml") if page == "docs/automation.md")
    workflow = yaml.safe_load(block)
    (job,) = workflow["jobs"].values()
    assert all(step.keys() & {"uses", "run"} for step in job["steps"])
    lines = [line for step in job["steps"] for line in step.get("run", "").splitlines()]
    checked = [line.partition(" > ")[0] for line in lines if line.startswith("gpu-planner ")]
    assert [main(shlex.split(line)[1:]) for line in checked] == [0]
    assert '"verdict"' in capsys.readouterr().out
    save_plan("plan.json", LORA.evolve(gpu="rtx-4090", count=1))
    assert main(shlex.split(checked[-1])[1:]) == 1, "a plan that does not fit fails the build"
    installed = next(line for line in lines if "pip install" in line)
    assert installed == "python -m pip install ./gpu-planner"


def test_every_command_has_an_example():
    assert {line.split()[1] for line in COMMANDS} == set(NAMES)


def test_the_readme_shows_what_its_first_command_prints(capsys):
    main(shlex.split(next(line for line in README.splitlines() if line.startswith("gpu-planner fit")))[1:])
    printed = " ".join(capsys.readouterr().out.replace(THIN, " ").split())
    shown = next(block for page, block in _blocks("text") if page == "README.md" and block.startswith("Fits on"))
    for line in shown.splitlines():
        assert line in printed


def test_the_readme_is_one_page():
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("command", [START, TEST])
def test_the_readme_has_both_set_up_commands(command):
    assert command in README.splitlines()


def test_the_checks_run_the_test_command_as_it_is_written():
    assert TEST in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_set_up_commands_are_the_only_ones_that_are_not_run_here():
    assert set(LINES) - set(COMMANDS) == {START, TEST}


def test_every_host_that_is_reached_is_in_the_manual():
    rows = [line for line in TEXTS["docs/first-steps.md"].splitlines() if line.startswith("| `")]
    named = {host for row in rows for host in re.findall(r"`([a-z0-9.-]+\.(?:com|co))`", row.split("|")[1])}
    assert named == {*HOSTS, urlparse(constants.ENDPOINT).hostname, *_HUB_DOMAINS}


@pytest.mark.parametrize("page", TEXTS)
def test_links_within_the_project_lead_to_a_file_and_a_heading(page):
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", TEXTS[page]):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.is_file(), link
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(heading_slug, headings), link


def test_the_contents_page_links_every_page():
    linked = set(re.findall(r"\]\(([^)]+\.md)\)", TEXTS["docs/index.md"]))
    assert linked == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}


def _script(folder: str, name: str, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / folder))
    return importlib.import_module(name)


def test_the_reference_is_what_the_code_says(monkeypatch):
    pages = _script(".ci", "reference", monkeypatch).pages()
    assert {str(page.relative_to(DOCS)) for page in (DOCS / "reference").iterdir()} < set(pages)
    stale = [name for name, text in pages.items() if text != (DOCS / name).read_text(encoding="utf-8")]
    assert stale == [], "run python .ci/reference.py"


@pytest.mark.parametrize("name", ["accuracy", "throughput_accuracy"])
def test_tables_of_accuracy_are_what_the_benchmarks_measure(name, monkeypatch, tmp_path, capsys):
    benchmark, tables = _script("benchmarks", name, monkeypatch), _script("benchmarks", "tables", monkeypatch)
    page = tmp_path / "accuracy.md"
    page.write_text(TEXTS["docs/accuracy.md"], encoding="utf-8")
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "--table", "--check"])
    assert benchmark.main() == 0, "an aim is not met"
    assert page.read_text(encoding="utf-8") == TEXTS["docs/accuracy.md"], f"run python benchmarks/{name}.py --table"


def test_every_table_of_the_manual_is_filled():
    for page, text in TEXTS.items():
        for name, table in re.findall(r"<!-- table: ([\w-]+) -->\n(.*?)<!-- end -->", text, re.DOTALL):
            assert table.strip(), f"{page}: {name}"
