"""Corrections from the user's own logs: measured minus estimated bytes, as a separate part of each memory term."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from pydantic import Field

from planner.base import Spec
from planner.memory.overhead import FrameworkOverhead
from planner.memory.phases import DeferredTerm, PhaseSnapshots
from planner.memory.result import Term, TermName, TermPart
from planner.memory.terms import term
from planner.units import GIB
from planner.workload.workload import Inference, Training

_OVERHEAD: Final = "framework_overhead"
_FORMULA: Final = "measured − estimated"


class TermCorrection(Spec):
    """Correction of one memory term: a factor if the term grows with the workload, otherwise added bytes.

    `part` is used for the framework's overhead only: inside PyTorch's allocator (slack) or outside (context).
    """

    term: TermName
    added_bytes: int = 0
    factor: float = Field(default=1.0, gt=0.01, lt=100)
    part: Literal["context", "slack"] = "context"

    @property
    def title(self) -> str:
        """Return the name of the corrected term with spaces: `kv cache`, or `allocator slack`."""
        if self.term == _OVERHEAD:
            return "allocator slack" if self.part == "slack" else "GPU context"
        return self.term.replace("_", " ")

    def correction_bytes(self, size_bytes: int) -> int:
        """Return the bytes to add to a term of `size_bytes`; the corrected term never becomes negative."""
        return max(round(size_bytes * (self.factor - 1)) + self.added_bytes, -size_bytes)


class Correction(Spec):
    """Corrections of memory terms derived from one log, valid for one model type, task, program and GPU."""

    terms: tuple[TermCorrection, ...]
    gpu: str = Field(description="id of the GPU in the catalog")
    model_type: str
    profile: str = Field(description="profile of the workload: the name of the engine or training program")
    task: Literal["training", "inference"]
    log: str = Field(description="format of the log")
    date: str = Field(description="date of the log, as in 2026-10-03")
    digest: str = Field(description="first hexadecimal digits of the log file's SHA-256")

    @property
    def source(self) -> str:
        """Return the citation of the log: `your log of 2026-10-03 (vllm, SHA-256 1a2b…)`."""
        return f"your log of {self.date} ({self.log}, SHA-256 {self.digest}…)"

    @property
    def changes(self) -> str:
        """Return a summary of the changed terms: `−0.58 GiB activations, +0.19 GiB allocator slack`."""
        return ", ".join(f"{_change_text(item)} {item.title}" for item in self.terms)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return the key of the correction (profile, task, card, model type); a newer one with this key replaces it."""
        return self.profile, self.task, self.gpu, self.model_type


def with_correction(corrections: tuple[Correction, ...], correction: Correction) -> tuple[Correction, ...]:
    """Return `corrections` with `correction` added; it replaces a correction for the same kind of run."""
    return (*(known for known in corrections if known.key != correction.key), correction)


def applicable_corrections(
    corrections: tuple[Correction, ...], workload: Training | Inference, model_type: str, gpu: str | None
) -> tuple[Correction, ...]:
    """Return the `corrections` that were measured on `gpu` with this model type, program and task.

    `workload` has its defaults filled in.
    """
    key = (workload.profile, workload.task, gpu, model_type)
    return tuple(correction for correction in corrections if correction.key == key)


def corrected_timeline(snapshots: PhaseSnapshots, corrections: tuple[Correction, ...]) -> PhaseSnapshots:
    """Return `snapshots` with `corrections` applied to every term except the framework's overhead.

    Bytes are added to a term in every snapshot, a factor only where the term is alive.
    """
    for correction in corrections:
        changed = tuple(
            snapshot.with_terms(
                [
                    *_corrected_terms(snapshot.terms, correction),
                    *_terms_missing_in_estimate(snapshot.terms, correction),
                ]
            )
            for snapshot in snapshots.snapshots
        )
        snapshots = snapshots._replace(snapshots=changed)
    return snapshots


def corrected_overhead(overhead: FrameworkOverhead, corrections: tuple[Correction, ...]) -> FrameworkOverhead:
    """Return `overhead` with `corrections` applied to the GPU context and the allocator's slack."""
    for correction in corrections:
        for item in correction.terms:
            if item.term == _OVERHEAD:
                base = overhead.slack if item.part == "slack" else overhead.context
                added = item.correction_bytes(base)
                overhead = overhead._replace(
                    low=max(overhead.low + added, 0),
                    high=overhead.high + added,
                    context=overhead.context + (added if item.part == "context" else 0),
                    slack=overhead.slack + (added if item.part == "slack" else 0),
                )
    return overhead


def corrected_term(uncorrected: Term, added_bytes: int, source: str) -> Term:
    """Return the term `uncorrected` with `added_bytes` as a separate part named "correction by your log"."""
    if not added_bytes:
        return uncorrected
    parts = uncorrected.parts or (
        TermPart(name="estimated", bytes=uncorrected.bytes, formula=uncorrected.formula, source=uncorrected.source),
    )
    return replace(
        uncorrected,
        bytes=uncorrected.bytes + added_bytes,
        low_bytes=max(uncorrected.low_bytes + added_bytes, 0),
        high_bytes=uncorrected.high_bytes + added_bytes,
        parts=(*parts, TermPart(name="correction by your log", bytes=added_bytes, formula=_FORMULA, source=source)),
    )


def correction_sources_text(corrections: Iterable[Correction]) -> str:
    """Return the citations of all `corrections`, joined with semicolons."""
    return "; ".join(correction.source for correction in corrections)


def unused_correction_note(correction: Correction) -> str:
    """Return the note that `correction` does not apply to this run, with the kind of run that it applies to."""
    return (
        f"The correction from {correction.source} does not apply here: it is for {correction.model_type} in "
        f"{correction.profile} ({correction.task}) on {correction.gpu}."
    )


def applied_correction_note(correction: Correction) -> str:
    """Return the note that the estimate was corrected by a log, with a summary of the changed terms."""
    return f"Corrected by {correction.source}: {correction.changes}."


def _change_text(item: TermCorrection) -> str:
    """Return factor and added bytes of one correction as text: `× 1.050 and +0.19 GiB`."""
    factor = f"× {item.factor:.3f}" if item.factor != 1 else ""
    added = f"{item.added_bytes / GIB:+.2f} GiB".replace("-", "−") if item.added_bytes else ""
    return " and ".join(text for text in (factor, added) if text)


def _corrected_terms(terms: Iterable[Term | DeferredTerm], correction: Correction) -> Iterable[Term | DeferredTerm]:
    """Yield `terms`, with the correction's bytes added to the terms that `correction` names."""
    for item in terms:
        together = sum(change.correction_bytes(item.bytes) for change in correction.terms if change.term == item.name)
        added = max(together, -item.bytes)
        if not added:
            yield item
        elif isinstance(item, DeferredTerm):
            write = partial(_write_corrected_term, item, added, correction.source)
            low = max(item.low_bytes + added, 0)
            yield DeferredTerm(item.name, item.bytes + added, low, item.high_bytes + added, write)
        else:
            yield corrected_term(item, added, correction.source)


def _write_corrected_term(item: DeferredTerm, added: int, source: str) -> Term:
    """Return the deferred term `item` written out, with `added` bytes as a separate part."""
    return corrected_term(item.write(), added, source)


def _terms_missing_in_estimate(terms: Iterable[Term | DeferredTerm], correction: Correction) -> Iterable[Term]:
    """Yield the corrected terms that the estimate's `terms` lack, each as a memory term of its own."""
    alive = {item.name for item in terms}
    for change in correction.terms:
        if change.term not in alive and change.term != _OVERHEAD and change.added_bytes > 0:
            yield term(change.term, change.added_bytes, _FORMULA, (), correction.source, certainty="measured")
