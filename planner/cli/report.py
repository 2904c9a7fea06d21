"""Text report on the memory of a plan: the answer first, the evidence below."""

from collections.abc import Iterator
from typing import Final

from planner.cli.table import NO_BREAK, TableColumn, prose_width, table, wrap, wrap_phrase
from planner.present import format as fmt
from planner.present.memory.view import MemoryView, PartRow, TermRow

_CARD_HEADS: Final = (
    TableColumn("GPUs", flexible=True),
    TableColumn("Layers", "right"),
    TableColumn("Needs GiB", "right"),
    TableColumn("Usable", "right"),
    TableColumn("Free", "right"),
    TableColumn(""),
    TableColumn(""),
)


def memory_report(
    view: MemoryView,
    subject: str,
    defaults: tuple[str, ...],
    width: int | None,
    *,
    explain: bool = False,
    more: tuple[str, ...] = (),
) -> str:
    """Return the memory report: answer, reason, terms, phases, notes and the defaults used.

    `subject` is the plan as a phrase; with `explain` each term has its formula, numbers and sources. `more` are further
    blocks below the phases.
    """
    prose = prose_width(width)
    blocks = [
        "\n".join(wrap(sentence, prose) for sentence in view.sentences),
        wrap_phrase(subject, prose),
        _term_table(view, width) if view.terms else "",
        *(_explained_term(row, prose) for row in view.terms if explain),
        _phase_table(view, width) if view.phases else "",
        _card_table(view, width) if view.devices else "",
        *more,
        "\n".join(wrap(note, prose, "- ") for note in (*view.notes, *view.at_least)),
        wrap(f"Defaults used: {_joined_options(defaults)}", prose).replace(NO_BREAK, " ") if defaults else "",
    ]
    return "\n\n".join(block for block in blocks if block)


def _term_table(view: MemoryView, width: int | None) -> str:
    heads = (
        TableColumn("Term", flexible=True),
        TableColumn(view.unit, "right"),
        TableColumn("Share", "right"),
        TableColumn("Certainty", flexible=True),
        TableColumn("How", flexible=True),
    )
    rows = [[row.title, row.amount, row.share_text, row.certainty, row.how] for row in view.terms]
    whole = view.total_bytes
    return table(heads, [*rows, ["Total", fmt.table_size(whole, whole), "", "", fmt.exact_bytes(whole)]], width)


def _phase_table(view: MemoryView, width: int | None) -> str:
    heads = (TableColumn("Phase"), TableColumn(view.unit, "right"), TableColumn(""), TableColumn("Why", flexible=True))
    amounts = (fmt.table_size(row.bytes, view.total_bytes) for row in view.phases)
    rows = [
        [row.title, amount, "peak" if row.is_peak else "", row.explanation]
        for row, amount in zip(view.phases, amounts, strict=True)
    ]
    return table(heads, rows, width)


def _card_table(view: MemoryView, width: int | None) -> str:
    rows = [[row.card, row.layers, row.needs, row.usable, row.free, row.verdict, row.scarcity] for row in view.devices]
    return table(_CARD_HEADS, rows, width)


def _explained_term(row: TermRow, width: int) -> str:
    head = f"{row.title}: {row.exact} ({row.range_text}), {row.certainty}"
    return "\n".join([head, *(wrap(line, width, "    ", "      ") for line in _evidence_lines(row))])


def _evidence_lines(row: TermRow) -> Iterator[str]:
    yield f"= {row.formula}"
    if row.substituted != row.formula:
        yield f"= {row.substituted}"
    for symbol in row.symbols:
        origin = "GPU" if symbol.origin == "card" else symbol.origin
        yield f"{symbol.name} = {symbol.value}: {symbol.meaning} (from the {origin})"
    yield from map(_part_line, row.parts)
    if not all(part.source in row.source for part in row.parts) or not row.parts:
        yield f"source: {row.source}"


def _part_line(part: PartRow) -> str:
    how = "" if part.substituted in part.exact else f" = {part.substituted}"
    return f"{part.title}: {part.exact}{how} [{part.source}]"


def _joined_options(options: tuple[str, ...]) -> str:
    """Return the options joined so that no line break separates an option from its value."""
    return " ".join(option.replace(" ", NO_BREAK) for option in options)
