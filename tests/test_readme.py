"""What the README shows works as it is written there."""

import re
import shlex
from pathlib import Path

import pytest

from planner.cli.main import main

README = Path(__file__).parents[1] / "README.md"
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?gpu-planner (?P<arguments>(?:fit|gpus|models)\b.*)$", re.MULTILINE)


def blocks(*languages: str) -> list[str]:
    """Return the fenced blocks of the README in one of `languages`."""
    text = README.read_text(encoding="utf-8")
    return [match["body"] for match in FENCE.finditer(text) if match["language"] in languages]


def commands() -> list[str]:
    """Return the arguments of each line that asks the command line something."""
    lines = "\n".join(blocks("sh", "console", "shell", "bash")).replace("\\\n", " ")
    return [match["arguments"].partition(" #")[0].strip() for match in COMMAND.finditer(lines)]


@pytest.mark.parametrize("arguments", commands() or [None])
def test_a_command_of_the_readme_answers(arguments, tmp_path, monkeypatch, capsys):
    if arguments is None:
        pytest.skip("the README shows no command")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(arguments)) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("program", blocks("python", "py") or [None])
def test_a_program_of_the_readme_runs(program, tmp_path, monkeypatch, capsys):
    if program is None:
        pytest.skip("the README shows no Python")
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})


def test_pictures_of_the_readme_are_there():
    for path in re.findall(r"!\[[^\]]*\]\((?!http)([^)]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / path).is_file(), path
