"""Verdicts on a GPU: the finding, its evidence against thresholds, and advice."""

import operator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

VerdictSeverity = Literal["error", "warning", "note", "good"]
Sign = Literal[">=", "<=", ">", "<"]
_COMPARISONS: Final = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


class VerdictKind(StrEnum):
    """Kind of finding, good or bad; the values are names in JSON and in recordings."""

    LOST = "lost"
    ASLEEP = "asleep"
    TOO_EARLY = "too-early"
    UNKNOWN = "unknown"
    MEMORY_ERRORS = "memory-errors"
    THERMAL = "thermal-throttled"
    POWER_BRAKE = "power-brake"
    NEAR_FULL = "near-out-of-memory"
    LEAK = "leak"
    UNEXPLAINED = "busy-without-memory"
    MEDIA = "video"
    INPUT_BOUND = "input-bound"
    IDLE_HELD = "idle-held"
    IDLE = "idle"
    IMBALANCE = "imbalance"
    HANGING = "collective-hangs"
    TRANSFER_BOUND = "transfer-bound"
    HOST_BOUND = "host-bound"
    FLUCTUATING = "fluctuating"
    UNDER_FILLED = "under-filled"
    SYNC_BOUND = "launch-or-sync-bound"
    UNDER_USED = "under-used"
    POWER_CAPPED = "power-throttled"
    MEMORY_BOUND = "memory-bandwidth-bound"
    COMPUTE_BOUND = "compute-bound"
    HEALTHY = "healthy"


class ThresholdSource(NamedTuple):
    """Origin of a threshold: a publication, or the reason for an unpublished heuristic."""

    text: str
    is_heuristic: bool = False


class Criterion(NamedTuple):
    """Comparison of a `statistic` of one quantity, in the quantity's unit, with a threshold."""

    metric: str
    statistic: str
    sign: Sign
    threshold: float
    source: ThresholdSource

    def holds(self, value: float) -> bool:
        """Return whether a value satisfies the criterion."""
        return bool(_COMPARISONS[self.sign](value, self.threshold))


class Evidence(NamedTuple):
    """Observed value of one quantity, and the criterion that the value meets (None if the value is only displayed)."""

    metric: str
    statistic: str
    seen: float
    condition: Criterion | None = None

    @property
    def source(self) -> ThresholdSource | None:
        """Return the origin of the criterion's threshold, None without a criterion."""
        return None if self.condition is None else self.condition.source


class OtherFinding(NamedTuple):
    """Further problem on a GPU, in addition to the verdict."""

    kind: VerdictKind
    severity: VerdictSeverity
    title: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Finding on one GPU at `at`, from readings since `since`; `at` and `since` are monotonic seconds.

    `advice` lists the likeliest remedy first. `also` lists further problems on the GPU. `unreported` names quantities
    that this GPU's driver does not report, so that the finding says nothing of them.
    """

    kind: VerdictKind
    severity: VerdictSeverity
    title: str
    sentence: str
    since: float
    at: float
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[str, ...] = ()
    also: tuple[OtherFinding, ...] = ()
    unreported: tuple[str, ...] = ()

    @property
    def is_heuristic(self) -> bool:
        """Return whether the verdict rests on an unpublished threshold."""
        return any(evidence.source.is_heuristic for evidence in self.evidence if evidence.source is not None)


def verdict_object(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON values; times are monotonic seconds, quantities have the unit in their name."""
    return {
        "kind": verdict.kind.value,
        "severity": verdict.severity,
        "title": verdict.title,
        "sentence": verdict.sentence,
        "since": verdict.since,
        "at": verdict.at,
        "is_heuristic": verdict.is_heuristic,
        "evidence": [_evidence_object(evidence) for evidence in verdict.evidence],
        "advice": list(verdict.advice),
        "unreported": list(verdict.unreported),
        "also": [{**other._asdict(), "kind": other.kind.value} for other in verdict.also],
    }


def _evidence_object(evidence: Evidence) -> dict[str, Any]:
    condition = evidence.condition
    seen = {"metric": evidence.metric, "statistic": evidence.statistic, "seen": evidence.seen}
    if condition is None:
        return seen
    source = condition.source
    threshold = {"sign": condition.sign, "threshold": condition.threshold}
    return {**seen, **threshold, "source": source.text, "is_heuristic": source.is_heuristic}
