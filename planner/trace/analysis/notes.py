"""What to say beside the figures of a trace: what it assumed, and what no dispatcher sees."""

from collections.abc import Iterator

from planner.trace.facts import TracedFacts
from planner.trace.recording import Difference
from planner.trace.request import Parallel
from planner.units import MIB


def notes_on(facts: TracedFacts) -> tuple[str, ...]:
    """Return the notes on a trace, the most important first."""
    return tuple(_notes(facts))


def _notes(facts: TracedFacts) -> Iterator[str]:
    if not facts.tested:
        yield f"PyTorch {facts.torch} is not a version that tracing was tested with; compare with a run of your own."
    if facts.request.device == "cpu":
        yield "Traced with the CPU's operators: a CUDA build takes others in places, with other memory."
    yield from _distribution(facts.request.parallel)
    yield from map(_sentence, facts.differences)
    yield from facts.notes


def _distribution(parallel: Parallel) -> Iterator[str]:
    if parallel.strategy == "none":
        return
    how = {"ddp": "holds the whole model (DDP)", "fsdp": "holds its shard of the model (FSDP)"}[parallel.strategy]
    yield f"The figures are of one rank of {parallel.ranks:,}; each {how}."


def _sentence(difference: Difference) -> str:
    sentence = f"{difference.name}: {difference.explanation}"
    if difference.low_bytes == difference.high_bytes == difference.bytes:
        return sentence
    low, high = (f"{count / MIB:,.1f}" for count in (difference.low_bytes, difference.high_bytes))
    return f"{sentence} (counted as {difference.bytes / MIB:,.1f} MiB; between {low} and {high} MiB)"
