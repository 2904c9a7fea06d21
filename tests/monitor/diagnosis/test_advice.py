"""Advice that several rules share."""

from planner.monitor.diagnosis import advice
from planner.monitor.diagnosis.checklist import CHECKLIST
from planner.monitor.diagnosis.rules import RULES

SENTENCES = {name: text for name, text in vars(advice).items() if name.isupper() and isinstance(text, str)}
GROUPS = {name: texts for name, texts in vars(advice).items() if name.isupper() and isinstance(texts, tuple)}


def test_every_piece_of_advice_is_given_by_a_rule_or_the_checklist():
    given = {text for rule in RULES for text in rule.advice} | {text for item in CHECKLIST for text in item.how}
    assert {name for name, text in SENTENCES.items() if not any(text in whole for whole in given)} == set()


def test_a_group_of_advice_names_no_remedy_twice():
    assert {name for name, texts in GROUPS.items() if len(set(texts)) != len(texts)} == set()
