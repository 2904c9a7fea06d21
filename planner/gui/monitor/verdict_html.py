"""A diagnosis and the list of what to optimise as rich text."""

from collections.abc import Iterable
from html import escape

from planner.gui.theme import Theme
from planner.present.monitor.diagnosis import ChecklistRow, EvidenceRow, Said

_HEADS = ("Quantity", "Seen", "Threshold", "Whose")


def verdict_html(found: Said, checklist: tuple[ChecklistRow, ...], theme: Theme) -> str:
    """Return what was seen, what to try, and what there is to optimise at all, each under its heading."""
    muted = theme.color("muted").name()
    parts = []
    if found.evidence:
        seen = _paragraph(f"For {found.lasted}; seen in the last minutes:")
        parts += [_head("What was seen"), seen, _table(found.evidence, theme)]
    if found.advice:
        parts += [_head("What to try, the likeliest first"), _listed("ol", found.advice)]
    parts.append(_head("What to optimise next, in the order of the guides"))
    parts += [_item(number, row, muted) for number, row in enumerate(checklist, start=1)]
    return "".join(parts)


def _head(text: str) -> str:
    return f"<h4>{escape(text)}</h4>"


def _paragraph(text: str, color: str = "") -> str:
    style = f' style="color: {color}"' if color else ""
    return f"<p{style}>{escape(text)}</p>"


def _listed(tag: str, sentences: Iterable[str]) -> str:
    return f"<{tag}>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</{tag}>"


def _table(rows: Iterable[EvidenceRow], theme: Theme) -> str:
    head = "".join(f'<th align="left">{head}</th>' for head in _HEADS)
    body = "".join(f"<tr>{_cells(row.quantity, row.seen, row.threshold, row.source)}</tr>" for row in rows)
    return f'<table cellspacing="0" cellpadding="{theme.spacing.tiny}"><tr>{head}</tr>{body}</table>'


def _cells(*texts: str) -> str:
    return "".join(f"<td>{escape(text)}</td>" for text in texts)


def _item(number: int, row: ChecklistRow, muted: str) -> str:
    """Return one thing to do: how it stands, why, what was seen, how, and by which guide."""
    title = f"<p><b>{number}. {escape(row.title)}</b>: {escape(row.standing)}<br>{escape(row.why)}</p>"
    seen = _paragraph(row.seen) if row.seen else ""
    return f"{title}{seen}{_listed('ul', row.how)}{_paragraph(f'Source: {row.source}', muted)}"
