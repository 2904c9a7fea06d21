"""Every numeric option of the command line reads forty spellings of numbers as the one parser does."""

import argparse
from importlib import import_module

import pytest

from planner.cli.commands import COMMANDS
from planner.cli.money_options import JOB_OPTIONS, TERM_OPTIONS, add_money_options, money_from
from planner.cli.options import add_workload_options, workload_from_arguments
from planner.cli.parser import Parser
from planner.cost.terms import CostTerms
from planner.errors import SpecError
from planner.numbers import NumberKind, kind_at, parse_number
from planner.workload.fields import WorkloadField, all_fields
from planner.workload.rules import field_reader

SPELLINGS = (
    *("7", "128k", "32K", "30M", "1.2k", "1e5", "1E3", "1.5e2", "2048", "4,096", "4 096", "4\u2009096", "4_096"),
    *("4'096", "4\u2019096", "1,500", "1.500", "1.500.000", "1,500.5", "1.500,5", "1,5", "0,5", ".5", "5."),
    *("+8", "½", "10²", "１２８", "٣٢", "8x2048", "8 × 2k", "2 GiB", "2GB", "2 g", "$1,200", "1.2k USD"),
    *("50 %", "450 W", "24h", "32k tokens", "2024", "1 50", "1,50,000", "4-8", "nan", "1e999", "many", "0x10"),
)
NUMERIC = [field for field in all_fields() if field.number_kind is not None]


def parsed(text: str, kind: NumberKind) -> tuple[float | None, str]:
    try:
        return parse_number(text, kind), ""
    except SpecError as error:
        return None, error.reason


@pytest.mark.parametrize("field", NUMERIC, ids=lambda field: f"{field.name}-{field.tasks[0]}")
def test_the_options_of_the_workload(field: WorkloadField):
    parser = Parser("test", "", "")
    add_workload_options(parser)
    task = ("--task", field.tasks[0])
    for option in filter(None, (field.option.flag, "--set")):
        for text in SPELLINGS:
            said = f"--set={field.name}={text}" if option == "--set" else f"{option}={text}"
            number, reason = parsed(text, field.number_kind)
            try:
                workload = workload_from_arguments(parser.parse_args([*task, said]))
            except SpecError as error:
                # A number that is read may still lie outside the bounds of the field, or need another answer.
                is_named = error.field.startswith(option) and error.reason == reason
                failed = [] if number is not None or is_named else [said]
            else:
                failed = [] if field_reader(workload)(field.name) == number else [said]
            assert failed == []


MONEY = [flag for flag in (*JOB_OPTIONS, *TERM_OPTIONS) if kind_at(CostTerms, flag.field) is not None]


@pytest.mark.parametrize("flag", MONEY, ids=lambda flag: flag.name)
def test_the_options_of_the_job_and_of_money(flag):
    parser = Parser("test", "", "")
    add_money_options(parser)
    for text in SPELLINGS:
        number, reason = parsed(text, kind_at(CostTerms, flag.field))
        try:
            terms = money_from(parser.parse_args([f"{flag.name}={text}"]), CostTerms())
        except SpecError as error:
            failed = [] if number is not None or (error.field, error.reason) == (flag.name, reason) else [text]
        else:
            *outer, name = flag.field.split(".")
            part = getattr(terms, outer[0]) if outer else terms
            failed = [] if getattr(part, name) == number else [text]
        assert failed == []


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.module)
def test_no_option_reads_numbers_by_itself(command):
    """Python's `int` reads ۳ and 1_0 in its own way, and no k."""
    parser = getattr(import_module(command.module), "make_parser", None)
    everything = {"with_workload": True} if command.module == "planner.cli.gpus.command" else {}
    actions: list[argparse.Action] = [] if parser is None else parser(**everything)._actions
    assert [action.option_strings for action in actions if action.type in (int, float)] == []
