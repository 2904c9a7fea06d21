"""A verdict as plain values for JSON; the names are contracts."""

from typing import Any

from planner.monitor.diagnosis.verdict import Evidence, Verdict


def verdict_object(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict; times are monotonic seconds, and quantities have the unit that ends their names."""
    return {
        "kind": verdict.kind.value,
        "severity": verdict.severity,
        "title": verdict.title,
        "sentence": verdict.sentence,
        "since": verdict.since,
        "at": verdict.at,
        "is_heuristic": verdict.is_heuristic,
        "evidence": [_evidence(one) for one in verdict.evidence],
        "advice": list(verdict.advice),
        "also": [{**other._asdict(), "kind": other.kind.value} for other in verdict.also],
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    condition = evidence.condition
    seen = {"metric": evidence.metric, "statistic": evidence.statistic, "seen": evidence.seen}
    if condition is None:
        return seen
    source = condition.source
    threshold = {"sign": condition.sign, "threshold": condition.threshold}
    return {**seen, **threshold, "source": source.text, "is_heuristic": source.is_heuristic}
