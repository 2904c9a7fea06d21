"""How long it takes, as a sentence, with the parts of the time below."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.performance.result import Basis, Bound, TimeResult, TimeTerm, TimeTermName
from planner.present import format as fmt
from planner.present.format import put_in, symbol_value
from planner.present.memory.view import SymbolRow
from planner.present.names import CERTAINTY_WORDS

TIME_TITLES: Final[dict[TimeTermName, str]] = {
    "matrix_products": "Matrix products",
    "attention": "Attention",
    "elementwise": "Element by element",
    "loss_head": "Logits and loss",
    "convolutions": "Convolutions",
    "prefill": "Reading the prompt",
    "weights_read": "Reading the weights",
    "cache_read": "Reading the cache",
    "decode_compute": "Computing the answer",
    "recomputation": "Recomputation",
    "dequantisation": "Unpacking weights",
    "host": "Host and launches",
    "bubble": "Pipeline bubble",
    "gradient_exchange": "Exchange of gradients",
    "parameter_gathering": "Gathering parameters",
    "tensor_exchange": "Exchange between tensor parts",
    "context_exchange": "Exchange between context parts",
    "expert_exchange": "Exchange between experts",
    "pipeline_transfers": "Passing on between stages",
    "optimizer": "Optimizer",
    "offload": "Offloading",
    "input": "Waiting for data",
}
BOUND_WORDS: Final[dict[Bound, str]] = {
    "compute": "what the cards compute",
    "memory bandwidth": "the cards' memory bandwidth",
    "communication": "what the cards exchange",
    "host": "the host, which launches the work",
    "input": "loading the data",
}
BASIS_WORDS: Final[dict[Basis, str]] = {
    "measured": "by your measurement",
    "same card": "from measurements on this card",
    "family": "from measurements on cards of its family",
}


class TimeRow(NamedTuple):
    """A part of the time, and what it shows when it is opened; `share` is of the whole time."""

    name: str
    title: str
    text: str
    seconds: float
    share: float
    share_text: str
    overlapped: str
    how: str
    numbers_put_in: str
    certainty: str
    symbols: tuple[SymbolRow, ...]
    source: str


class TimeView(NamedTuple):
    """Everything a tab or a terminal shows of an estimate of time; `reason` says why there is none."""

    answer: str
    reason: str
    rows: tuple[TimeRow, ...]
    notes: tuple[str, ...]


def time_view(time: TimeResult) -> TimeView:
    """Return what to show of `time`."""
    if time.seconds is None:
        return TimeView("", no_time(time), (), time.notes)
    rows = tuple(_row(term, time.seconds) for term in _in_order(time))
    return TimeView(time_answer(time), " ".join(_reasons(time)), rows, time.notes)


def no_time(time: TimeResult) -> str:
    """Return why there is no time, as a sentence; empty where there is one."""
    reason = time.unsupported
    return fmt.sentence(f"How long it takes is not known: {reason}") if reason else ""


def time_answer(time: TimeResult) -> str:
    """Return the one sentence that says how long it takes."""
    assert time.seconds is not None  # asked only where there is a time
    whole = fmt.duration_with_range(time.seconds, time.low_seconds, time.high_seconds)
    if time.kind == "step":
        return f"One step takes {whole}{_pace(time, ': ')}."
    return f"{fmt.listing(tuple(_request(time, whole)))}{_pace(time, '; ')}."


def _request(time: TimeResult, whole: str) -> Iterator[str]:
    """Yield how long a request takes, its first token and the further ones; without an answer it is its prompt."""
    reads_only = time.first_token_seconds == time.seconds
    yield f"Reading a prompt takes {whole}" if reads_only else f"A request takes {whole}"
    if time.first_token_seconds is not None and not reads_only:
        first = (time.first_token_seconds, time.low_first_token_seconds, time.high_first_token_seconds)
        yield f"the first token comes after {fmt.duration_with_range(*first)}"
    if time.output_token_seconds is not None:
        further = (time.output_token_seconds, time.low_output_token_seconds, time.high_output_token_seconds)
        yield f"{'a token after it' if reads_only else 'each next one after'} {fmt.duration_with_range(*further)}"


def pace_phrase(time: TimeResult | None) -> str:
    """Return the pace in a few words, for the plan bar: `6,610 tokens/s`, `212 samples/s`; empty where not known."""
    if time is None or time.seconds is None:
        return ""
    if time.tokens_per_second is not None:
        return f"{fmt.significant(time.tokens_per_second)} tokens/s"
    if time.samples_per_second is not None:
        return f"{fmt.significant(time.samples_per_second)} samples/s"
    return f"{fmt.duration(time.seconds)} a {'step' if time.kind == 'step' else 'request'}"


def _pace(time: TimeResult, before: str) -> str:
    if time.tokens_per_second is not None:
        pace = fmt.number_range(time.tokens_per_second, time.low_tokens_per_second, time.high_tokens_per_second)
        return f"{before}{pace} tokens/s"
    if time.samples_per_second is not None:
        return f"{before}{fmt.significant(time.samples_per_second)} samples/s"
    return ""


def _reasons(time: TimeResult) -> Iterator[str]:
    if time.bound is not None:
        token = time.token_bound or time.bound
        after = "" if token == time.bound else f", each token after the prompt by {BOUND_WORDS[token]}"
        yield f"It is bound by {BOUND_WORDS[time.bound]}{after}."
    if time.mfu_fraction is not None:
        yield f"The model's operations take {fmt.percent(time.mfu_fraction)} of what the cards could do (MFU)."
    yield f"Known {BASIS_WORDS[time.basis]}."


def _in_order(time: TimeResult) -> list[TimeTerm]:
    return sorted((term for term in time.terms if term.seconds), key=lambda term: -term.exposed_seconds)


def _row(term: TimeTerm, whole: float) -> TimeRow:
    share = term.exposed_seconds / whole
    return TimeRow(
        name=term.name,
        title=TIME_TITLES[term.name],
        text=fmt.duration(term.exposed_seconds) if term.exposed_seconds else "hidden",
        seconds=term.exposed_seconds,
        share=share,
        share_text=fmt.percent(share),
        overlapped=f"{fmt.duration(term.overlapped_seconds)} beside other work" if term.overlapped_seconds else "",
        how=term.formula,
        numbers_put_in=put_in(term.formula, term.symbols),
        certainty=CERTAINTY_WORDS[term.certainty],
        symbols=tuple(
            SymbolRow(symbol.name, symbol_value(symbol.value), symbol.meaning, symbol.origin) for symbol in term.symbols
        ),
        source=term.source,
    )
