"""What the lists of accelerators and of systems have in common: the query, what it finds, and the table."""

import argparse
from collections.abc import Iterable, Sequence
from typing import TypeVar

from planner.cli.table import Head, table, terminal_width
from planner.errors import SpecError
from planner.hardware.query import Query, select
from planner.hardware.vocabulary import AnyRecord, Fits, Prices
from planner.present.columns import Column, Row

AnyQuery = TypeVar("AnyQuery", bound=Query)


def query_of(kind: type[AnyQuery], arguments: argparse.Namespace) -> AnyQuery:
    """Return the query that WORDS, --where and --sort write.

    Raises:
        SpecError: If an expression or a key cannot be understood; it names the option.
    """
    try:
        return kind(text=" ".join(arguments.words), where=arguments.where or "", sort=tuple(arguments.sort))
    except SpecError as error:
        hint = error.hint or "`gpu-planner gpus --help` lists the fields and the comparisons."
        raise SpecError(f"--{error.field}", error.reason, hint) from error


def selected(
    records: Iterable[AnyRecord], query: Query, fits: Fits | None, prices: Prices | None
) -> tuple[AnyRecord, ...]:
    """Return what `query` finds among `records`.

    Raises:
        SpecError: If it uses a word that needs a plan, and there is none.
    """
    try:
        return select(records, query, fits, prices)
    except SpecError as error:
        hint = "Add --fits MODEL." if error.field in query.words.judged else error.hint
        raise SpecError(error.field, error.reason, hint) from error


def columns_of(columns: Sequence[Column[Row]], usual: Sequence[str], asked: Iterable[str]) -> list[Column[Row]]:
    """Return the usual columns by their keys, and then those that the list is filtered or sorted by."""
    by_key, wanted = {column.key: column for column in columns}, set(asked)
    return [by_key[key] for key in (*usual, *(key for key in by_key if key in wanted and key not in usual))]


def listing(rows: Sequence[Row], columns: Sequence[Column[Row]], flexible: Sequence[str] = ("name",)) -> str:
    """Return `rows` as a table; the columns whose keys are `flexible` give way where it is too wide."""
    heads = [Head(column.title, column.align, column.key in flexible, column.unit) for column in columns]
    return table(heads, [[column.text(row) for column in columns] for row in rows], terminal_width())
