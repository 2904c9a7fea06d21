"""The mutants that the benchmark makes of a module, and what a run of tests says of them."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

MODULE = '''"""A module."""
LIMIT = 3

def total(first: int = 1, *, more: bool = False) -> int:
    """Add."""
    if first < LIMIT and not more:
        raise ValueError(f"{first} is below {LIMIT + 1}")
    return first + LIMIT
'''


@pytest.fixture
def mutants():
    import mutants

    return mutants


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("a = b < 1", ["b < 1 → b <= 1", "1 → 2"]),
        ("a = b in c and d", ["b in c and d → b in c or d", "b in c → b not in c"]),
        ("a = b // c", ["b // c → b / c"]),
        ("a = 'text' + b", []),
        ("a = b[c:]", ["c: → :"]),
        ("a = min(b)", ["min(b) → max(b)"]),
        ("a = math.ceil(b)", ["math.ceil(b) → math.floor(b)"]),
        ("a = round(abs(b))", ["round(abs(b)) → int(abs(b))", "abs(b) → b"]),
        ("a.b = c", ["a.b = c → pass"]),
        ("a += 1.5", ["a += 1.5 → a -= 1.5", "a += 1.5 → pass", "1.5 → 2.5"]),
        ("a = 100_000", ["100000 → 200000"]),
        ("note(a)", ["note(a) → pass"]),
        ("a = [b for b in c if b]", ["b → False", "b → True"]),
        ("while a: break", ["a → False", "break → continue"]),
        ("a = -b", ["-b → b"]),
        ("a = zip(b, c, strict=True)", []),
        ("a: Literal[0, 1] = b", []),
        ("Number = int | float", []),
    ],
)
def test_small_mistakes_are_made(mutants, statement, expected):
    found = mutants.mutants_of("planner/units.py", statement)
    assert [mutant.change for mutant in found] == expected


def test_refusals_docstrings_and_types_are_left_alone(mutants):
    found = mutants.mutants_of("planner/units.py", MODULE)
    assert [(mutant.scope, mutant.change, mutant.is_at_import) for mutant in found] == [
        ("", "3 → 4", True),
        ("total", "False → True", True),
        ("total", "1 → 2", True),
        ("total", "first < LIMIT and (not more) → False", False),
        ("total", "first < LIMIT and (not more) → True", False),
        ("total", "first < LIMIT and (not more) → first < LIMIT or not more", False),
        ("total", "first < LIMIT → first <= LIMIT", False),
        ("total", "not more → more", False),
        ("total", "return first + LIMIT → return None", False),
        ("total", "first + LIMIT → first - LIMIT", False),
    ]
    assert {(mutant.first, mutant.last) for mutant in found[3:8]} == {(6, 6)}


def test_a_mutant_has_one_mistake(mutants):
    found = mutants.mutants_of("planner/units.py", MODULE)
    scope: dict[str, object] = {}
    exec(mutants.code_of("planner/units.py", MODULE, found[-1].nth), scope)
    assert scope["total"](5) == 2
    exec(mutants.code_of("planner/units.py", MODULE), scope)
    assert scope["total"](5) == 8


def test_a_sample_is_the_same_wherever_its_lines_move(mutants):
    before = mutants.drawn(mutants.mutants_of("planner/units.py", MODULE), 7, 3)
    moved = MODULE.replace("LIMIT = 3", "OTHER = LIMIT = 3\n\n")
    after = mutants.drawn(mutants.mutants_of("planner/units.py", moved), 7, 3)
    assert len({mutant.key[:3] for mutant in before}) == 3
    assert len({mutant.key for mutant in before} & {mutant.key for mutant in after}) >= 2


def test_equivalent_mutants_are_of_lines_that_exist_and_have_a_reason(mutants):
    texts = mutants.demanded_modules()
    for path, scope, line, change, reason in json.loads(mutants.EQUIVALENT.read_text(encoding="utf-8")):
        known = {mutant.key for mutant in mutants.mutants_of(path, texts[path])}
        assert (path, scope, line, change) in known
        assert reason.endswith(".")


def test_coverage_that_names_no_test_is_refused(mutants, tmp_path):
    with closing(sqlite3.connect(tmp_path / "coverage")) as database:
        database.executescript("""
            CREATE TABLE context (id, context); INSERT INTO context VALUES (1, '');
            CREATE TABLE arc (file_id, context_id, fromno, tono); INSERT INTO arc VALUES (1, 1, 1, 2);
        """)
    with pytest.raises(SystemExit, match="does not tell which test covers what"):
        mutants.Bench({}, tmp_path / "coverage", tmp_path / "results")


def test_a_mistake_that_a_test_notices_is_killed(mutants, tmp_path):
    coverage, results = tmp_path / "coverage", tmp_path / "results"
    with closing(sqlite3.connect(coverage)) as database:  # that no test was seen to reach anything
        for columns in ("file (id, path)", "context (id, context)", "arc (file_id, context_id, fromno, tono)"):
            database.execute(f"CREATE TABLE {columns}")
    asked = [
        "--only",
        "planner/units.py",
        "--count",
        "1",
        "--seed",
        "1",
        "--jobs",
        "1",
        "--coverage",
        coverage,
        "--results",
        results,
    ]
    bench = subprocess.run(
        [sys.executable, mutants.ROOT / "benchmarks" / "mutants.py", *asked, "--check"],
        env=os.environ | {"PYTHONPATH": str(mutants.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert bench.returncode == 0, bench.stdout + bench.stderr
    *_, way, outcome, killer = json.loads(results.read_text(encoding="utf-8").splitlines()[-1])
    assert (way, outcome) == ("imported", "killed")
    assert killer.startswith("tests/core/test_units.py::")
