"""The README's programs and commands run, and what it points to is there."""

import re
import shlex
from itertools import chain
from pathlib import Path

import pytest

from planner.cli.main import main
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.present.format import THIN
from planner.workload.parallel import Parallel
from planner.workload.workload import Training

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCREENSHOTS = ROOT / "resources" / "screenshots"
START = "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/gpu-planner"
TEST = 'python3 -m venv .venv && .venv/bin/pip install -e ".[test]" && .venv/bin/pytest'


def _blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


SHELL_LINES = list(chain.from_iterable(block.splitlines() for block in _blocks("sh")))
COMMANDS = [line for line in SHELL_LINES if re.match(r"gpu-planner (fit|gpus|models)\b", line)]
TRACES = [line for line in SHELL_LINES if line.startswith("gpu-planner trace")]
LORA = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-70B"),
    workload=Training(method="lora", activation_checkpointing="full", parallel=Parallel(zero=3)),
    gpu="h100-sxm5-80gb",
    count=8,
)
"""What the README saves before it compares hardware for it."""
LINKS = re.findall(r"\]\((?!https?:)([^)#]+)", README)


@pytest.mark.parametrize("program", _blocks("python"))
def test_each_python_program_runs_and_prints(program, capsys):
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_runs_and_prints(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_plan("lora.json", LORA)
    assert main(shlex.split(line)[1:]) == 0
    printed = capsys.readouterr()
    assert printed.out.strip()
    assert printed.err == ""


NET = """
from torch import nn

def Net(depth=18):
    blocks = [nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(depth)]
    return nn.Sequential(nn.Conv2d(3, 16, 7, 4), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
"""


@pytest.mark.oracle
@pytest.mark.parametrize("line", TRACES)
def test_each_trace_runs_and_prints(line, tmp_path, monkeypatch, capsys):
    (tmp_path / "net.py").write_text(NET, encoding="utf-8")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "n_positions": 4096, "n_layer": 2}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(line)[1:]) == 0
    assert "Traced in" in capsys.readouterr().out


def test_there_are_programs_and_commands_of_every_kind():
    assert _blocks("python")
    assert {line.split()[1] for line in COMMANDS} == {"fit", "gpus", "models"}
    assert TRACES


def test_the_answer_that_is_shown_is_what_the_first_command_says(capsys):
    in_a_shell = README[README.index("## In a shell") :]
    main(shlex.split(next(line for line in COMMANDS if line in in_a_shell))[1:])
    printed = " ".join(capsys.readouterr().out.replace(THIN, " ").split())
    shown = next(block for block in _blocks("text") if block.startswith("Fits on"))
    for line in shown.splitlines():
        assert line in printed


@pytest.mark.parametrize("command", [START, TEST])
def test_both_set_up_commands_are_there(command):
    assert command in SHELL_LINES


def test_the_checks_run_the_test_command_as_it_is_written():
    assert TEST in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("link", sorted(set(LINKS)))
def test_what_is_linked_is_there(link):
    path = ROOT / link
    if path.parent == SCREENSHOTS and not SCREENSHOTS.is_dir():
        pytest.skip("this copy has no screenshots")
    assert path.is_file()
