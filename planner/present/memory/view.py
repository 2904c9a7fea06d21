"""A memory result ready for display: a sentence, its reason, a bar, a breakdown and the phases.

The rows are named tuples because their classes are created in a fifth of the time of dataclasses, at every start of
the command line.
"""

import re
from typing import Final, Literal, NamedTuple

from planner.memory.result import MemoryResult, Phase, Symbol, Term, TermPart, TermShare, Verdict
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, resolved_fit
from planner.plan.warnings import warnings_about
from planner.present import format as fmt
from planner.present.format import substitute_symbols, symbol_value
from planner.present.memory.verdict import (
    capacity_note,
    certainty_sentence,
    confidence_sentence,
    fewest_cards_note,
    gauge_facts,
    gauge_text,
    host_note,
    memory_answer,
    reserved_bytes,
    verdict_title,
)
from planner.present.names import (
    CERTAINTY_TITLES,
    FREE,
    OTHER_PROCESSES,
    OVERFLOW,
    PHASE_MOMENTS,
    PHASE_TITLES,
    RESERVED,
    TERM_TITLES,
    term_in_sentence,
    term_title,
)
from planner.present.plan.parallel import (
    DeviceRow,
    batch_note,
    cards_phrase,
    chosen_sharing_sentences,
    device_rows,
)
from planner.units import GIB
from planner.workload.workload import Inference

SegmentKind = Literal["term", "other", "free", "overflow"]
_TORCH_OPERATOR: Final = re.compile(r"\baten::(\w+)")
"""One of PyTorch's own operators, of which a sentence says only the name."""
_ORDER: Final = tuple(TERM_TITLES)
_WOULD: Final[dict[Verdict, str]] = {"fits": "fit", "tight": "fit only tightly", "does-not-fit": "not fit"}
_FAR: Final = 2
"""A context of twice the assumed prompt is far longer than it."""


class MemoryBarSegment(NamedTuple):
    """A segment of the memory bar, which begins at `start_bytes`; `share` is its fraction of the bar's length."""

    name: str
    title: str
    kind: SegmentKind
    start_bytes: int
    bytes: int
    share: float

    @property
    def text(self) -> str:
        """Return the segment's title and size: `Weights 14.9 GiB`."""
        return f"{self.title} {fmt.size(self.bytes)}"

    @property
    def tooltip(self) -> str:
        """Return the segment's title and exact size in bytes."""
        return f"{self.title}: {fmt.exact_bytes(self.bytes)}"


class SymbolRow(NamedTuple):
    """One symbol of a term's formula, with its value, meaning and origin."""

    name: str
    value: str
    meaning: str
    origin: str


class PartRow(NamedTuple):
    """A named part of a memory term."""

    title: str
    text: str
    exact: str
    how: str
    substituted: str
    source: str


class TermRow(NamedTuple):
    """A memory term with its evidence: `how` it is computed in words, formula, numbers, symbols, source and parts.

    `amount` is its size in the unit of the table of terms.
    """

    name: str
    title: str
    bytes: int
    amount: str
    share: float
    share_text: str
    how: str
    formula: str
    certainty: str
    range_text: str
    exact: str
    substituted: str
    symbols: tuple[SymbolRow, ...]
    source: str
    parts: tuple[PartRow, ...]


class PhaseRow(NamedTuple):
    """A phase of the run with the terms in memory; `share` is relative to the peak."""

    name: str
    title: str
    bytes: int
    text: str
    exact: str
    share: float
    is_peak: bool
    explanation: str
    parts: tuple[TermShare, ...]


class MemoryView(NamedTuple):
    """A memory result ready for display in the window or a terminal.

    `answer` is one sentence; `title` and `gauge` say the same in figures with `facts`, all empty without a verdict.
    `assumed` is what the plan left open and the memory depends on. `at_least` is a note on the fewest cards, for where
    nothing answers that better.
    """

    answer: str
    reason: str
    verdict: Verdict | None
    supported: bool
    total_bytes: int
    low_bytes: int
    high_bytes: int
    capacity_bytes: int | None
    bar_bytes: int
    segments: tuple[MemoryBarSegment, ...]
    terms: tuple[TermRow, ...]
    phases: tuple[PhaseRow, ...]
    notes: tuple[str, ...]
    at_least: tuple[str, ...] = ()
    devices: tuple[DeviceRow, ...] = ()
    confidence: str = ""
    certainty: str = ""
    sharing: str = ""
    title: str = ""
    gauge: str = ""
    facts: tuple[str, ...] = ()
    assumed: str = ""

    @property
    def headline(self) -> str:
        """Return the verdict with the gauge, or the answer without one: `Fits: 16.4 of 23.5 GiB · 98 % sure`."""
        return f"{self.title}: {self.gauge}" if self.title and self.gauge else self.answer

    @property
    def sureness(self) -> str:
        """Return how sure the verdict is, and what the peak's bytes are based on, for where the headline is not."""
        return " ".join(filter(None, (self.confidence, self.certainty)))

    @property
    def unit(self) -> str:
        """Return the unit of the table of terms: GiB, or MiB for a small network."""
        return fmt.table_unit(self.total_bytes)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the answer and what belongs to it, as sentences."""
        assumed = f"Assumed: {self.assumed}." if self.assumed else ""
        return tuple(filter(None, (self.answer, self.sureness, assumed, self.sharing, self.reason)))

    def as_text(self) -> str:
        """Return the whole memory result as plain text, for the clipboard."""
        unit = self.unit
        terms = [f"{row.title:<22}{row.amount:>10} {unit} {row.share_text:>6}  {row.how}" for row in self.terms]
        phases = [f"{row.title:<22}{fmt.table_size(row.bytes, self.total_bytes):>10} {unit}" for row in self.phases]
        cards = [f"{row.card:<32}{row.layers:>7} layers {row.needs:>10} of {row.usable} GiB" for row in self.devices]
        notes = [f"- {note}" for note in (*self.notes, *self.at_least)]
        blocks = (self.sentences, terms, phases, cards, notes)
        return "\n\n".join("\n".join(block) for block in blocks if block)

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return a CSV header and one row per memory term with exact bytes."""
        header = ("term", "bytes", "gib", "share", "certainty", "formula", "numbers", "source")
        rows = (
            (
                *(row.name, str(row.bytes), f"{row.bytes / GIB:.6f}", f"{row.share:.6f}", row.certainty),
                *(row.formula, row.substituted, row.source),
            )
            for row in self.terms
        )
        return (header, *rows)


def memory_view(
    memory: MemoryResult, card: str | None = None, count: int = 1, smallest: tuple[str, ...] = ()
) -> MemoryView:
    """Return `memory` on `count` cards named `card`, ready for display; `smallest` names the smallest fitting cards.

    If the card cannot run the plan, the answer has the reason and there are no numbers.
    """
    supported = not memory.unsupported
    bar_bytes = max(memory.capacity_bytes or 0, memory.total_bytes + memory.other_processes_bytes)
    return MemoryView(
        answer=memory_answer(memory, card, count, smallest),
        reason=_peak_sentences(memory) if supported else "",
        verdict=memory.verdict,
        supported=supported,
        total_bytes=memory.total_bytes,
        low_bytes=memory.low_bytes,
        high_bytes=memory.high_bytes,
        capacity_bytes=memory.capacity_bytes,
        bar_bytes=bar_bytes,
        segments=_bar_segments(memory, bar_bytes) if supported else (),
        terms=tuple(_term_row(term, memory) for term in _terms_in_order(memory.terms) if supported),
        phases=tuple(_phase_row(phase, memory) for phase in memory.phases if supported),
        notes=(
            *((*capacity_note(memory), *host_note(memory)) if supported else ()),
            *memory.notes,
        ),
        at_least=fewest_cards_note(memory),
        confidence=confidence_sentence(memory) if supported else "",
        certainty=certainty_sentence(memory) if supported else "",
        title=verdict_title(memory.verdict, memory.fit_probability) if memory.verdict else "",
        gauge=gauge_text(memory) if supported else "",
        facts=gauge_facts(memory, card, count) if supported else (),
    )


def evaluation_view(evaluation: Evaluation, catalog: Catalog) -> MemoryView:
    """Return the memory view of a whole plan, with its warnings as the first notes."""
    smallest = tuple(catalog.hardware.gpu(gpu_id).name for gpu_id in evaluation.smallest_fits)
    name = evaluation.gpu.name if evaluation.gpu else None
    workload, hardware = evaluation.plan.workload, catalog.hardware
    card = cards_phrase(workload, 1, name, hardware) if workload.gpus else name
    view = memory_view(evaluation.memory, card, evaluation.plan.count, smallest)
    if evaluation.plan.count > 1:
        rows, sharing = device_rows(evaluation.memory, hardware), chosen_sharing_sentences(evaluation)
        view = view._replace(devices=rows, sharing=sharing)
        if view.facts and evaluation.traced is None and (together := batch_note(evaluation.workload)):
            view = view._replace(facts=(*view.facts, f"batch {together}"))
    view = view._replace(assumed=_assumed_prompt(evaluation, catalog))
    warnings = (warning.sentence for warning in warnings_about(evaluation, catalog.software))
    return view._replace(notes=(*warnings, *view.notes)) if view.supported else view


def _assumed_prompt(evaluation: Evaluation, catalog: Catalog) -> str:
    """Return the sequences and the default prompt of a plan whose context is much longer, and what a full one changes.

    Empty if nothing was assumed. A program that computes whole prompts at once needs more for longer ones.
    """
    stated, settled = evaluation.plan.workload, evaluation.workload
    if not (isinstance(stated, Inference) and isinstance(settled, Inference)) or stated.prompt_length is not None:
        return ""
    prompt, context = settled.prompt_length or 0, settled.context_length or 0
    if evaluation.architecture is None or not 0 < _FAR * prompt <= context:
        return ""
    filled = evaluation.plan.evolve(workload=stated.evolve(prompt_length=context))
    full, now = resolved_fit(filled, catalog, evaluation.architecture).fit, evaluation.memory
    sequences = f"{fmt.plural(settled.batch, 'sequence')} of {fmt.integer(context)} tokens"
    assumed = f"{sequences}, {fmt.integer(prompt)} of them prompt"
    if full.total_bytes <= now.total_bytes:
        return assumed
    changed = "" if full.verdict in (None, now.verdict) else f" and would {_WOULD[full.verdict]}"
    return f"{assumed}. A prompt of {fmt.integer(context)} tokens would need {fmt.size(full.total_bytes)}{changed}"


def _terms_in_order(terms: tuple[Term, ...]) -> list[Term]:
    """Return the memory terms that are not zero, in the order of display."""
    return sorted((term for term in terms if term.bytes), key=lambda term: _ORDER.index(term.name))


def _peak_sentences(memory: MemoryResult) -> str:
    """Return which phase has the peak and why, and the peak's largest term."""
    if not any(term.bytes for term in memory.terms):
        return ""
    biggest = max(memory.terms, key=lambda term: term.bytes)
    amount = f"{fmt.size(biggest.bytes)}, {fmt.percent(biggest.bytes / memory.total_bytes)}"
    largest = f"{term_in_sentence(biggest.name, learns=_learns(memory))} ({amount})"
    sentence = f"Memory peaks {PHASE_MOMENTS[memory.peak_phase]}; largest part: {largest}."
    why = _TORCH_OPERATOR.sub(r"\1", memory.peak.explanation)
    return f"{sentence} {fmt.sentence(why)}" if why else sentence


def _bar_segments(memory: MemoryResult, bar_bytes: int) -> tuple[MemoryBarSegment, ...]:
    """Return the segments of the memory bar: terms, reserved and free memory, other programs and overflow."""
    pieces: list[tuple[str, str, SegmentKind, int]] = [
        (term.name, term_title(term.name, learns=_learns(memory)), "term", term.bytes)
        for term in _terms_in_order(memory.terms)
    ]
    other = memory.other_processes_bytes
    if memory.capacity_bytes is not None and bar_bytes > (used := other + sum(piece[3] for piece in pieces)):
        reserved = min(max(reserved_bytes(memory) - memory.total_bytes, 0), bar_bytes - used)
        spare = (("reserved", RESERVED, reserved), ("free", FREE, bar_bytes - used - reserved))
        pieces.extend((name, title, "free", size) for name, title, size in spare if size)
    if other:
        pieces.append(("other_processes", OTHER_PROCESSES, "other", other))
    segments, start = [], 0
    for name, title, kind, size in pieces:
        segments.append(MemoryBarSegment(name, title, kind, start, size, size / bar_bytes))
        start += size
    if memory.capacity_bytes is not None and start > memory.capacity_bytes:
        over = start - memory.capacity_bytes
        segments.append(
            MemoryBarSegment("overflow", OVERFLOW, "overflow", memory.capacity_bytes, over, over / bar_bytes)
        )
    return tuple(segments)


def _learns(memory: MemoryResult) -> bool:
    """Return whether the plan trains a model rather than only runs it."""
    return any(phase.name in ("backward", "step") for phase in memory.phases)


def _term_row(term: Term, memory: MemoryResult) -> TermRow:
    total, learns = memory.total_bytes, _learns(memory)
    share = term.bytes / total
    listed = _has_symbols_per_part(term)
    return TermRow(
        name=term.name,
        title=term_title(term.name, learns=learns),
        bytes=term.bytes,
        amount=fmt.table_size(term.bytes, total),
        share=share,
        share_text=fmt.percent(share),
        how=formula_in_words(term),
        formula=_parts_formula_text(term.parts) if listed else term.formula,
        certainty=CERTAINTY_TITLES[term.certainty],
        range_text=fmt.size_range(term.low_bytes, term.high_bytes),
        exact=fmt.exact_bytes(term.bytes),
        substituted=substitute_symbols(term.formula, term.symbols),
        symbols=()
        if listed
        else tuple(SymbolRow(one.name, symbol_value(one.value), one.meaning, one.origin) for one in term.symbols),
        source=term.source,
        parts=tuple(_part_row(part, term.symbols) for part in term.parts),
    )


def _has_symbols_per_part(term: Term) -> bool:
    """Return whether the symbols of `term` only number its parts, which are better shown by name."""
    named = [(symbol.value, symbol.meaning) for symbol in term.symbols]
    return bool(term.parts) and named == [(part.bytes, f"bytes: {part.name}") for part in term.parts]


def _parts_formula_text(parts: tuple[TermPart, ...]) -> str:
    """Return the formula of a term that is the sum of its parts, in words."""
    return parts[0].name if len(parts) == 1 else f"sum of its {len(parts):,} parts"


def _part_row(part: TermPart, symbols: tuple[Symbol, ...]) -> PartRow:
    return PartRow(
        title=part.name,
        text=fmt.size(part.bytes),
        exact=fmt.exact_bytes(part.bytes),
        how=part.formula,
        substituted=substitute_symbols(part.formula, symbols),
        source=part.source,
    )


def _phase_row(phase: Phase, memory: MemoryResult) -> PhaseRow:
    return PhaseRow(
        name=phase.name,
        title=PHASE_TITLES[phase.name],
        bytes=phase.bytes,
        text=fmt.size(phase.bytes),
        exact=fmt.exact_bytes(phase.bytes),
        share=phase.bytes / memory.total_bytes,
        is_peak=phase.name == memory.peak_phase,
        explanation=phase.explanation,
        parts=tuple(sorted(phase.shares, key=lambda part: _ORDER.index(part.name))),
    )


_LISTED_PARTS: Final = 2
_LARGE_NUMBER: Final = 1_000_000
_BYTES_OF: Final = re.compile(r"bytes(?: of|:) (?:the |a |one )?")
# Where the noun ends with which a symbol's meaning begins: `tokens for which logits are computed`.
_NOUN_END: Final = re.compile(
    r"[;:,(]| (?:of|for|that|in|per|on|at|with|inside|once|before|cached|decoded|alive|held|shared|summed|counted)\b"
)
_GROUP_OF_FACTORS: Final = re.compile(r"(?<!/ )(?<!\w)\(([^()+−]*)\)")
_OPERATOR: Final = re.compile("[×/+−]")
_BITS_TO_BYTES: Final = " / 8"


def formula_in_words(term: Term) -> str:
    """Return how many bytes `term` has, in words: its largest parts, or else its formula with numbers and nouns."""
    parts = [(part.name, part.bytes) for part in term.parts]
    if len(parts) < _LISTED_PARTS:
        parts = _summands(term)
    return _parts_text(parts, term.bytes) if len(parts) >= _LISTED_PARTS else _product_text(term)


def _summands(term: Term) -> list[tuple[str, int]]:
    """Return the names and sizes that the formula adds, if it only adds and subtracts sizes."""
    sizes = {symbol.name: symbol for symbol in term.symbols if _BYTES_OF.match(symbol.meaning)}
    words = term.formula.split(" ")
    if not all(word in sizes for word in words[::2]) or not {"+", "−"}.issuperset(words[1::2]):
        return []
    added = [sizes[name] for name, sign in zip(words[::2], ("+", *words[1::2]), strict=True) if sign == "+"]
    return [(_BYTES_OF.sub("", symbol.meaning, count=1), int(symbol.value)) for symbol in added]


def _parts_text(parts: list[tuple[str, int]], total_bytes: int) -> str:
    """Return the largest parts: `feed-forward blocks 2.00 GiB + norms 1.66 GiB + 1 more`."""
    largest = sorted(parts, key=lambda part: -part[1])
    texts = [_amount_text(*part) for part in largest[:_LISTED_PARTS]]
    if len(largest) > _LISTED_PARTS:
        texts.append(f"{fmt.integer(len(largest) - _LISTED_PARTS)} more")
    freed = sum(size for _, size in parts) - total_bytes
    return " + ".join(texts) + (f" − {fmt.size(freed)} already freed" if freed > 0 else "")


def _product_text(term: Term) -> str:
    formula = term.formula
    if not _OPERATOR.search(formula) and len(formula.split()) > 1:
        return fmt.substitute_symbols(formula, term.symbols)  # a formula that is words already
    while (simpler := _GROUP_OF_FACTORS.sub(r"\1", formula)) != formula:
        formula = simpler
    in_bits = any(symbol.meaning.startswith("bits ") for symbol in term.symbols)
    return fmt.replace_symbols(
        formula.replace(_BITS_TO_BYTES, "") if in_bits else formula,
        {symbol.name: _symbol_text(symbol) for symbol in term.symbols},
    )


def _symbol_text(symbol: Symbol) -> str:
    """Return a symbol's value with its noun: `8.03 B parameters`, `width 4,096`, `CUDA graphs 512 MiB`."""
    value = symbol.value
    if isinstance(value, str):
        return value
    if isinstance(value, int) and _BYTES_OF.match(symbol.meaning):
        return _amount_text(_BYTES_OF.sub("", symbol.meaning, count=1), value)
    noun = _NOUN_END.split(symbol.meaning.removeprefix("number of ").removeprefix("its "), maxsplit=1)[0]
    if noun.partition(" ")[0] == "share":
        return f"{fmt.percent(value)}{noun.removeprefix('share')}"
    if noun == "bytes" and value >= _LARGE_NUMBER:
        return fmt.size(round(value))
    number = fmt.parameters(round(value)) if value >= _LARGE_NUMBER else fmt.plain(value, 4)
    if not noun.endswith("s"):
        return f"{noun} {number}".strip()
    return f"{number} {noun.removesuffix('s') if value == 1 else noun}"


def _amount_text(name: str, size_bytes: int) -> str:
    """Return a name without its explanations, and its size: `GPU context 426 MiB`."""
    return f"{re.split(r'[;(]', name, maxsplit=1)[0].strip()} {fmt.size(size_bytes)}"
