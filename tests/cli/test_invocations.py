"""Invocations as people write them, each with the answer that is meant, or the hint that leads to it in one step.

`invocations.tsv` holds what people ask and paste in public threads, shortened to the command or the question: what is
typed behind `gpu-planner`, what is meant, and the thread (`owner/repository#number` is one of GitHub). What is meant is
the plan, a text of the answer, or a text of the hint; a command in a hint is read, too, and must name a plan.
"""

import csv
import shlex
from pathlib import Path

import pytest

from planner.cli import cost, fit
from planner.cli.commands import COMMANDS
from planner.cli.main import main
from planner.cli.plan_arguments import plan_from_arguments

with (Path(__file__).parent / "invocations.tsv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
READ_ELSEWHERE = ("hf:", "/root/")  # the Hub, and a folder of another machine
PARSERS = {"fit": fit.make_parser, "cost": cost.make_parser}


def plan_text(words, catalog):
    """Return the plan that a command describes, as the table writes it."""
    plan = plan_from_arguments(PARSERS[words[0]]().parse_args(words[1:]), catalog).plan
    kinds = ", ".join(f"{kind.count} x {kind.id}" for kind in plan.workload.gpus)
    cards = f"{plan.count} x {plan.gpu}" if plan.gpu else kinds or "no card"
    weights = f", {plan.workload.weights}" if plan.workload.weights else ""
    return f"{plan.model.id} on {cards}, {plan.workload.task}{weights}"


def check(row, catalog, capsys):
    """Type what a person typed, and compare what is printed with what is meant."""
    words = shlex.split(row["typed"])
    if " on " in row["meant"] and words[0] in PARSERS and not row["meant"].startswith("gpu-planner"):
        assert plan_text(words, catalog) == row["meant"]
        return
    code = main(words)
    printed = capsys.readouterr()
    assert code in (0, 2)
    assert row["meant"] in (printed.out if code == 0 else printed.err.partition("hint: ")[2])
    command = shlex.split(row["meant"])[1:] if row["meant"].startswith("gpu-planner ") else []
    if command and command[0] in PARSERS and not command[1].startswith(READ_ELSEWHERE):
        assert plan_text(command, catalog)


def test_two_hundred_invocations_of_public_threads_are_understood(catalog, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    failed = []
    for row in ROWS:
        try:
            check(row, catalog, capsys)
        except Exception as error:  # noqa: BLE001 - all rows that fail are named
            failed.append(f"{row['typed']}: {error}")
    assert not failed, "\n".join(failed)


def test_the_table_is_large_and_each_row_has_a_source():
    assert len(ROWS) >= 200
    assert len({row["typed"] for row in ROWS}) == len(ROWS)
    assert len({row["source"] for row in ROWS}) > 80
    assert all(row["source"].partition("#")[0].count("/") or "." in row["source"] for row in ROWS)


@pytest.mark.parametrize("words", [["qqqq"], ["qqqq", "me", "a", "story"], ["7", "8"]])
def test_words_that_resemble_no_model_card_or_command_get_the_list_of_commands(words, capsys):
    assert main(words) == 2
    assert f"The commands are {', '.join(COMMANDS)}." in capsys.readouterr().err
