"""The memory of a plan or a trace in a report: sentences, the bar, the parts, the phases and the cards."""

from collections.abc import Iterator

from planner.present import format as fmt
from planner.present.memory.view import MemoryView
from planner.present.report.document import Block, Bullets, Prose, ReportColumn, ReportTable
from planner.present.report.figures import memory_figure


def memory_blocks(view: MemoryView) -> Iterator[Block]:
    """Yield the blocks on a memory result; of a plan that its card cannot run, only the reason and the notes."""
    if not view.supported:
        yield Prose(view.answer)
        yield Bullets(view.notes)
        return
    yield from map(Prose, (view.answer, view.sharing, view.reason, view.certainty))
    yield memory_figure(view)
    yield _terms_table(view)
    yield _phases_table(view)
    yield _devices_table(view)


def _terms_table(view: MemoryView) -> ReportTable:
    columns = (
        ReportColumn("Part"),
        ReportColumn(view.unit, "right"),
        ReportColumn("Share", "right"),
        ReportColumn("Range", "right"),
        ReportColumn("Certainty"),
    )
    rows = [(row.title, row.amount, row.share_text, row.range_text, row.certainty) for row in view.terms]
    total = fmt.table_size(view.total_bytes, view.total_bytes)
    whole = ("Total", total, "", fmt.size_range(view.low_bytes, view.high_bytes), "")
    return ReportTable(columns, (*rows, whole), last_is_total=True)


def _phases_table(view: MemoryView) -> ReportTable:
    columns = (ReportColumn("Phase"), ReportColumn("Memory", "right"), ReportColumn(""), ReportColumn("Why"))
    rows = ((row.title, row.text, "peak" if row.is_peak else "", fmt.sentence(row.explanation)) for row in view.phases)
    return ReportTable(columns, tuple(rows))


def _devices_table(view: MemoryView) -> ReportTable:
    heads = ("Cards", "Layers", "Needs, GiB", "Usable", "Free", "", "")
    rows = tuple(
        (row.card, row.layers, row.needs, row.usable, row.free, row.verdict, row.scarcity) for row in view.devices
    )
    return ReportTable(tuple(ReportColumn(head, "right" if head in heads[1:5] else "left") for head in heads), rows)
