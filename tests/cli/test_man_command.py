"""The command `man`: a page that man's own programs read without a warning."""

import json
import re
import shutil
import subprocess
from datetime import date

import pytest

from planner.cli import main as cli
from planner.cli.automation.declarations import DeclaredCommand, DeclaredOption, declared_commands
from planner.cli.automation.manual_page import manual_page, run

DAY = date(2026, 11, 28)


@pytest.fixture(scope="module")
def page():
    return manual_page(declared_commands(), DAY)


def test_the_page_has_every_command_and_option(page, capsys):
    assert run([], DAY) == 0
    assert capsys.readouterr().out == page
    assert cli.main(["man", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page"].splitlines()[1:] == page.splitlines()[1:]
    for command in declared_commands():
        assert f'.SS "gpu\\-planner {command.name}"' in page
        for option in command.options:
            assert all(f"{name}".replace("-", "\\-") in page for name in option.names)


def test_lines_that_begin_like_a_macro_are_text():
    option = DeclaredOption(("--x",), "N", ".hidden \\ ~ ^ 'x'", 1, False, (), None, "group")
    command = DeclaredCommand("odd", "odd", "'quoted'\n\n.dotted", "", (option,), ())
    lines = manual_page([command], DAY).splitlines()
    assert "\\&'quoted'" in lines
    assert "\\&.dotted" in lines
    assert "\\&.hidden \\e \\(ti \\(ha 'x'" in lines


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="needs mandoc")
def test_mandoc_finds_nothing_to_warn_of(page, tmp_path):
    (tmp_path / "gpu-planner.1").write_text(page)
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", tmp_path / "gpu-planner.1"], capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_formats_it_without_a_warning(page):
    command = ["groff", "-K", "utf8", "-ww", "-man", "-Tutf8"]
    done = subprocess.run(command, input=page, capture_output=True, text=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert "EXIT STATUS" in re.sub(".\x08", "", done.stdout), "bold is a letter struck twice"
