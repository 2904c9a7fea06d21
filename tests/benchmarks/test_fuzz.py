"""Every reader reads its corpus, and reads or refuses what the fuzzer makes of it; the fuzzer tells outcomes apart."""

import random
from pathlib import Path

import pytest
from each_record import for_each
from effort import refused_at_once

from planner.errors import PlannerError

pytestmark = pytest.mark.sweep
CORPUS = Path(__file__).parents[1] / "corpus"
READERS = sorted(folder.name for folder in CORPUS.iterdir())
CHANGES = 40


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Let relative paths and what a command keeps lead to a temporary folder, and no command open a window."""
    monkeypatch.setenv("GPU_PLANNER_HOME", str(tmp_path / "home"))
    for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return tmp_path


def test_each_reader_has_a_corpus():
    from fuzz_readers import READERS as NAMED

    assert {name.partition(",")[0] for name in NAMED} == set(READERS)


@for_each("name", sorted(set(READERS) - {"text"}))  # no text is read by all parsers
def test_what_is_in_the_corpus_is_read(name, home):
    from fuzz import inputs_in, outcome_of
    from fuzz_readers import READERS as NAMED

    for data in inputs_in(CORPUS / name):
        outcome, place, _, trouble = outcome_of(NAMED[name], data, home)
        assert outcome == "read", f"{place} {trouble}"


@for_each("name", READERS)
def test_what_is_changed_is_read_or_refused_with_a_hint(name, home):
    from fuzz import inputs_in, outcome_of
    from fuzz_readers import READERS as NAMED

    source, known = random.Random(name), inputs_in(CORPUS / name)
    reader, outcomes = NAMED[name], []
    for _ in range(CHANGES // 8 if reader.slow else CHANGES):
        data = reader.mutate(source.choice(known), source, known)
        with refused_at_once(name):
            outcome, place, _, trouble = outcome_of(reader, data, home)
        assert outcome in ("read", "refused"), f"{place} {trouble} {data[:500]!r}"
        outcomes.append(outcome)
    assert "refused" in outcomes or name in ("command", "memory-log", "session", "settings", "trace-messages")


def _raise(error: Exception) -> object:
    raise error


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KeyError("a"), "exception"),
        (RecursionError(), "exception"),
        (MemoryError(), "large"),
        (PlannerError("it is wrong"), "no hint"),
        (PlannerError("it is wrong", "Mend it."), "refused"),
    ],
)
def test_what_no_reader_should_do_is_told_apart(error, outcome, home):
    from fuzz import outcome_of
    from fuzz_mutators import mutate_bytes
    from fuzz_readers import Reader

    found = outcome_of(Reader(lambda path: _raise(error), mutate_bytes, "file"), b"", home)
    assert found[0] == outcome
    assert bool(found[3]) == (outcome != "refused")


def test_a_run_keeps_its_counts_and_what_it_learned_and_goes_on(tmp_path):
    import subprocess
    import sys

    words = ["benchmarks/fuzz.py", "--reader", "adapter", "--inputs", "60", "--seed", "1", "--folder", str(tmp_path)]
    for total in (61, 122):  # what is in the corpus, and what was learned, is read first
        done = subprocess.run(
            [sys.executable, *words], cwd=CORPUS.parents[1], capture_output=True, text=True, check=True
        )
        assert "0 findings" in done.stdout
        assert int(done.stdout.split("all")[1].split()[0].replace(",", "")) >= total
    assert list((tmp_path / "learned" / "adapter").iterdir())
