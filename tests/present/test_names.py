"""Titles of memory terms, phases and verdicts."""

from planner.present.memory.verdict import VERDICT_TITLES
from planner.present.names import PHASE_MOMENTS, PHASE_TITLES, TERM_TITLES, term_in_sentence


def test_every_term_phase_and_verdict_has_a_title():
    from typing import get_args

    from planner.memory.result import PhaseName, TermName, Verdict

    assert set(TERM_TITLES) == set(get_args(TermName))
    assert set(PHASE_TITLES) == set(PHASE_MOMENTS) == set(get_args(PhaseName))
    assert set(VERDICT_TITLES) == set(get_args(Verdict))
    assert (term_in_sentence("kv_cache"), term_in_sentence("logits")) == ("KV cache", "logits and loss")
