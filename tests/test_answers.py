"""The recorder of answers: what it asks covers every choice, and what moves is found, sentences aside."""

import gzip
import json
import sys
from pathlib import Path

import pytest

from planner import Inference, Training

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def answers(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("answers", None)
    import answers

    return answers


@pytest.fixture
def asked(answers):
    """Return the values of each field of the workloads that are asked about, by task and by the field's place."""
    found = {}
    grid = (case for index in range(len(answers.MODELS)) for case in answers.grid_cases(index))
    for case in (*grid, *answers.more_cases()):
        workload = case.plan["workload"]
        for place, value in _leaves(workload):
            found.setdefault((workload["task"], place), set()).add(value)
    return found


def _leaves(value, place=""):
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _leaves(one, f"{place}.{name}" if place else name)
    elif not isinstance(value, list):
        yield place, value


def _choices(schema, node, place=""):
    """Yield each field that has choices, and the choices."""
    node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    for one in node.get("anyOf", ()):
        yield from _choices(schema, one, place)
    if "enum" in node:
        yield place, set(node["enum"])
    for name, field in node.get("properties", {}).items():
        yield from _choices(schema, field, f"{place}.{name}" if place else name)


@pytest.mark.parametrize("kind", [Training, Inference])
def test_every_choice_of_a_workload_is_asked_about(asked, kind):
    schema = kind.model_json_schema()
    task = schema["properties"]["task"]["const"]
    for place, choices in _choices(schema, schema):
        left_out = choices - asked.get((task, place), set()) - {_default(kind, place)}
        assert not left_out, f"benchmarks/answer_cases.py asks of no {task} with {place} {sorted(left_out)}"


def _default(kind, place):
    value = kind()
    for name in place.split("."):
        value = getattr(value, name, None)
    return value


def test_the_grid_is_20_models_on_12_cards_with_8_workloads(answers):
    assert (len(answers.MODELS), len({model.id for model in answers.MODELS})) == (20, 20)
    names = [case.name for index in range(20) for case in answers.grid_cases(index)]
    assert len(names) == len(set(names)) == 20 * 12 * 8


def test_numbers_keys_and_words_move_and_sentences_do_not(answers):
    before = {"bytes": 10, "verdict": "fits", "note": "It fits.", "share": 0.5, "gone": None, "rows": [1, 2]}
    after = {"bytes": 11, "verdict": "tight", "note": "It does.", "share": 0.5 + 1e-15, "new": True, "rows": [1, 2, 3]}
    found = answers.moved(answers.scrubbed(before), answers.scrubbed(after))
    assert {(one.place, one.before, one.after) for one in found} == {
        ("bytes", "10", "11"),
        ("verdict", '"fits"', '"tight"'),
        ("gone", "null", None),
        ("new", None, "true"),
        ("rows[]", "2 items", "3 items"),
    }
    assert not list(answers.moved({"a": 3}, {"a": 3.0}))
    assert list(answers.moved({"a": 1}, {"a": True}))
    assert list(answers.moved({"a": "…"}, {"a": None}))


def test_a_digest_counts_ten_digits(answers):
    assert answers.digest_of({"a": 0.1 + 0.2, "b": 3}) == answers.digest_of({"b": 3.0, "a": 0.3})
    assert answers.digest_of({"a": 0.3}) != answers.digest_of({"a": 0.30001})


def test_the_main_figures_of_an_answer(answers):
    assert answers.headline({"memory": {"verdict": "fits", "total_bytes": 7}, "time": None}) == ["fits", 7]
    assert answers.headline({"refused": {"class": "SpecError", "field": "weights"}}) == ["SpecError", "weights"]
    assert answers.headline([1, 2]) == []


def _record(path, *cases):
    lines = [{"tasks": [["fit", 0]]}, ["fit", 0], *({"case": case, "said": said} for case, said in cases)]
    with gzip.open(path, "wt") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def test_two_records_are_compared_case_by_case(answers, tmp_path, capsys):
    before = _record(tmp_path / "a.gz", ("one", {"n": 1}), ("two", {"n": 1}), ("old", {}))
    after = _record(tmp_path / "b.gz", ("new", {}), ("one", {"n": 1}), ("two", {"n": 2}))
    assert answers.compare(before, after, most=10, ignored=()) == 3
    printed = capsys.readouterr().out
    assert "two: 1 moved\n    n: 1 → 2\n" in printed
    assert "new: appeared\nold: vanished\n" in printed
    assert "1 of 3 cases moved, 2 are in one record only" in printed
    assert answers.compare(before, before, most=10, ignored=()) == 0
    assert answers.compare(before, after, most=10, ignored=("n",)) == 2
