"""Mutation score of the core: the share of small mistakes, made in it on purpose, that its plain tests notice.

    python benchmarks/mutants.py [--count N] [--seed S] [--only PATH] [--jobs N] [--results FILE] [--again] [--check]

A mutant is the core with one mistake: `<` for `<=`, `+` for `-`, another number, a condition that always holds, a call
left out. One is drawn of each statement of the modules whose coverage `.ci/run` demands, in an order that a hash of the
seed and of the statement decides: a change elsewhere leaves the sample as it is. It is killed if a test fails or takes
20 seconds of processor time. The tests that reach its line are run, those of its module first, then those that reach
least of the package, until one fails. Which test reaches what is read from `.coverage`, as `.ci/run` writes it:

    pytest -m unit --cov=planner --cov-branch --cov-context=test --cov-report= tests/{core,cost,hardware,memory,…}

Tests are collected once; each mutant is a fork of that process, in which the code of its function is replaced. Mistakes
in what runs as modules are imported, and those that survive, get a process that imports the package with them. (mutmut
mutates nothing outside functions nor in decorated ones; cosmic-ray starts the tests anew for each mutant.)

`equivalent_mutants.json` lists mutants that no test can tell from the program, with the reason; they do not count.
`--results` keeps what was found and goes on from there; `--again` repeats what survived. `--check` exits with 1 if a
mutant survives that is not listed there, as in `.ci/run`, for the first few of the sample.
"""

import argparse
import ast
import gc
import importlib
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from fnmatch import fnmatch
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from itertools import pairwise
from math import inf
from pathlib import Path
from time import process_time
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

import pytest
from _pytest.runner import runtestprotocol
from structure import test_path

ROOT: Final = Path(__file__).parents[1]
EQUIVALENT: Final = Path(__file__).with_name("equivalent_mutants.json")

_SEED: Final = 21
_COUNT: Final = 1_500
_TEST_SECONDS: Final = 20
_MUTANT_SECONDS: Final = 10
_PATIENCE_SECONDS: Final = 600
_MEMORY_BYTES: Final = 8 << 30
_MOST_FILES: Final = 16
_LARGE: Final = 1e5
_UNTRIED: Final = 99
_KILLER: Final = "killer"
_SWAPPED: Final[dict[type, type]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div},
    **{ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
}
_SWAPPED_CALLS: Final = {"min": "max", "max": "min", "ceil": "floor", "floor": "ceil", "any": "all", "all": "any"}
_UNTOUCHED_FIELDS: Final = frozenset(("annotation", "returns", "decorator_list", "bases", "format_spec"))
# All of pydantic before Qt, whose hook on imports cannot look at a half-imported module.
_LIBRARIES: Final = ("hypothesis", "numpy", "psutil", "pydantic.fields", "yaml", "PySide6.QtWidgets", "PySide6.QtTest")

_NOT_LONG: Final = "not oracle and not walk and not fuzz and not sweep"
_OPTIONS: Final = (
    *("-o", "addopts=", "--import-mode=importlib", "-q", "-s", "--no-header", "--no-summary", f"--rootdir={ROOT}"),
    *("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


class Mutant(NamedTuple):
    """A mistake, told by the function and the line that it is in and by what is changed there.

    Its place, which may move, follows: the `nth` change of the file, in lines from `first` to `last`.
    """

    path: str
    scope: str
    line: str
    change: str
    nth: int
    first: int
    last: int
    is_at_import: bool

    @property
    def key(self) -> tuple[str, ...]:
        """What it is, wherever it moves."""
        return self[:4]


class _Edit(NamedTuple):
    holder: Any
    field: str
    place: int | None
    old: ast.AST
    new: ast.AST
    statement: ast.stmt
    scope: tuple[str, ...]
    is_at_import: bool

    @property
    def change(self) -> str:
        return f"{_text(self.old)} → {_text(self.new)}"

    def make(self) -> None:
        if self.place is None:
            setattr(self.holder, self.field, self.new)
        else:
            getattr(self.holder, self.field)[self.place] = self.new


def mutants_of(path: str, text: str) -> list[Mutant]:
    """Return all mutants of the file at `path`, which contains `text`.

    Left alone is what words a sentence, names a type or refuses something: strings, annotations, `raise`, `assert`, and
    the `strict` of `zip`.
    """
    lines, found, seen = text.splitlines(), [], Counter[tuple[str, ...]]()
    for nth, edit in enumerate(_edits(ast.parse(text))):
        statement = edit.statement
        body = getattr(statement, "body", None) or getattr(statement, "cases", None)
        last = body[0].lineno - 1 if isinstance(body, list) and hasattr(body[0], "lineno") else statement.end_lineno
        line = lines[statement.lineno - 1].strip()
        key = (path, ".".join(edit.scope), line, edit.change)
        seen[key] += 1
        change = key[3] if seen[key] == 1 else f"{key[3]} ({seen[key]})"
        last = max(last or 0, statement.lineno)
        found.append(Mutant(*key[:3], change, nth, statement.lineno, last, edit.is_at_import))
    return found


def code_of(path: str, text: str, nth: int | None = None) -> CodeType:
    """Return the code of a module, with its `nth` mistake."""
    tree = ast.parse(text)
    if nth is not None:
        next(edit for number, edit in enumerate(_edits(tree)) if number == nth).make()
    return compile(ast.fix_missing_locations(tree), str(ROOT / path), "exec", dont_inherit=True)


def drawn(mutants: Iterable[Mutant], seed: int, count: int) -> list[Mutant]:
    """Return a mutant each of `count` statements; the same as long as these statements are the same."""

    def order(key: tuple[str, ...]) -> bytes:
        return sha256(repr((seed, key)).encode()).digest()

    by_statement = defaultdict(list)
    for mutant in mutants:
        by_statement[mutant.key[:3]].append(mutant)
    statements = sorted(by_statement, key=order)[:count]
    return [min(by_statement[statement], key=lambda mutant: order(mutant.key)) for statement in statements]


def _edits(
    node: ast.AST, statement: ast.stmt | None = None, scope: tuple[str, ...] = (), is_at_import: bool = True
) -> Iterator[_Edit]:
    """Yield each change of what is below `node`, a part of `statement`."""
    inside = is_at_import and not isinstance(node, ast.FunctionDef | ast.Lambda)
    for field, value in ast.iter_fields(node):
        if field in _UNTOUCHED_FIELDS or (field == "keywords" and isinstance(node, ast.ClassDef)):
            continue
        at_import = inside if field == "body" else is_at_import
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if not isinstance(child, ast.AST) or _is_left_alone(child):
                continue
            owner = child if isinstance(child, ast.stmt) else statement
            within = (*scope, child.name) if isinstance(child, ast.FunctionDef | ast.ClassDef) else scope
            if owner is not None:
                for new in _replacements(child, node, field, at_import):
                    yield _Edit(node, field, index, child, new, owner, within, at_import)
            yield from _edits(child, owner, within, at_import)


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name("TYPE_CHECKING")) | ast.FunctionDef(name="__repr__") | ast.Expr(ast.Constant()):
            return True
        case ast.Subscript(value=ast.Name("Literal")) | ast.keyword(arg="strict"):
            return True
        case ast.AnnAssign(value=None):
            return True
    return isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom)


def _replacements(node: ast.AST, holder: ast.AST, field: str, is_at_import: bool) -> Iterator[ast.AST]:
    """Yield what a mistake puts in the place of `node`, which is in `field` of its holder."""
    if field in ("test", "ifs"):
        yield ast.Constant(False)
        if not isinstance(holder, ast.While):
            yield ast.Constant(True)
    if not (is_at_import and isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):  # a union of types
        yield from _other_operations(node)
    yield from _other_values(node)
    yield from _other_statements(node)


def _other_operations(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, operators, others):
            for index, operator in enumerate(operators):
                swapped = [*operators[:index], _SWAPPED[type(operator)](), *operators[index + 1 :]]
                yield ast.Compare(left, swapped, others)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(_SWAPPED[type(operator)](), values)
        case ast.BinOp(left, operator, right) if type(operator) in _SWAPPED and not _is_text(left, right):
            yield ast.BinOp(left, _SWAPPED[type(operator)](), right)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.AugAssign(target, operator, value) if type(operator) in _SWAPPED and not _is_text(value):
            yield ast.AugAssign(target, _SWAPPED[type(operator)](), value)


def _is_text(*nodes: ast.AST) -> bool:
    """Return whether one of these is a text or a list as written, which can be added but not subtracted."""
    texts = (ast.JoinedStr, ast.List, ast.Tuple)
    return any(
        isinstance(node, texts) or (isinstance(node, ast.Constant) and isinstance(node.value, str)) for node in nodes
    )


def _other_values(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value * 2 if value >= _LARGE else value + 1)
        case ast.Call(ast.Name("abs"), [argument]):
            yield argument
        case ast.Call(ast.Name("round"), [argument]):
            yield ast.Call(ast.Name("int", ast.Load()), [argument], [])
        case ast.Call(ast.Name(name), arguments, keywords) if name in _SWAPPED_CALLS:
            yield ast.Call(ast.Name(_SWAPPED_CALLS[name], ast.Load()), arguments, keywords)
        case ast.Call(ast.Attribute(ast.Name("math"), "ceil" | "floor" as name), arguments, keywords):
            function = ast.Attribute(ast.Name("math", ast.Load()), _SWAPPED_CALLS[name], ast.Load())
            yield ast.Call(function, arguments, keywords)
        case ast.Slice(lower, upper, step):
            yield from [ast.Slice(None, upper, step)] * (lower is not None)
            yield from [ast.Slice(lower, None, step)] * (upper is not None)


def _other_statements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign():
            yield ast.Pass()
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(ast.fix_missing_locations(node)).split())


class _Reach:
    """Which tests reach which lines, as coverage recorded it."""

    def __init__(self, coverage: Path) -> None:
        """Take the database of coverage, whose contexts are tests."""
        self._coverage = f"file:{coverage.resolve()}?mode=ro"
        self._size: Counter[str] = Counter()
        for test, count in self._rows("SELECT context, COUNT(*) FROM arc, context ON id = context_id GROUP BY id"):
            self._size[_test_of(test)] += count
        if self._size.keys() == {""}:  # as pytest-cov writes it with -n0
            sys.exit(
                f"{coverage} does not tell which test covers what: measure with --cov-context=test and -n1 or more"
            )

    def of(self, path: str, lines: Iterable[int]) -> list[str]:
        """Return the tests that reach one of these lines of the file at `path`, in the order in which to run them."""
        numbers = ",".join(map(str, lines))
        query = f"""SELECT DISTINCT context FROM arc, context ON context.id = context_id
            WHERE file_id = (SELECT id FROM file WHERE path = ?) AND (fromno IN ({numbers}) OR tono IN ({numbers}))"""
        tests = {_test_of(context) for (context,) in self._rows(query, str(ROOT / path)) if context}
        own = f"{test_path(path)}::"
        return sorted(tests, key=lambda test: (not test.startswith(own), self._size[test], test))

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._coverage, uri=True)) as database:  # each process opens it for itself
            return database.execute(query, values).fetchall()


def _test_of(context: str) -> str:
    """Return the test of a context, which ends with its phase, such as `|run`."""
    return context.rpartition("|")[0]


class _Uses:
    """Where names are used: what is calculated at import is noticed there."""

    def __init__(self, texts: dict[str, str]) -> None:
        """Index the files of which `texts` has the content by path."""
        self._trees = {path: ast.parse(text) for path, text in texts.items()}
        self._used: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for path, tree in self._trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                    self._used[node.id if isinstance(node, ast.Name) else node.attr].append((path, node.lineno))

    def of(self, mutant: Mutant) -> Iterator[tuple[str, int]]:
        """Yield the places that use what the statement of `mutant` defines."""
        for node in ast.walk(self._trees[mutant.path]):
            if getattr(node, "lineno", None) != mutant.first or not isinstance(node, ast.stmt):
                continue
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names = {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()
            for target in filter(None, targets):
                names |= {found.id for found in ast.walk(target) if isinstance(found, ast.Name)}
            for name in names:
                yield from self._used[name]


class _Limits:
    """Ends the process in which a test, or all take too long, and names the test that fails."""

    seconds = inf

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, _TEST_SECONDS)
        if process_time() > self.seconds:
            pytest.exit("enough was tried", returncode=0)

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            Path(tempfile.gettempdir(), _KILLER).write_text(item.nodeid, encoding="utf-8")


class _Chosen(_Limits):
    """Runs some tests in this order, after those of the file `own`."""

    seconds = 3.0 * _MUTANT_SECONDS

    def __init__(self, tests: Iterable[str], own: str) -> None:
        self._order = {test: number for number, test in enumerate(tests)}
        self._own = f"{own}::"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        last = len(self._order)
        chosen = [item for item in items if item.nodeid in self._order or item.nodeid.startswith(self._own)]
        chosen.sort(key=lambda item: (not item.nodeid.startswith(self._own), self._order.get(item.nodeid, last)))
        items[:] = chosen


class _Forking(_Limits):
    """Forks the process that has collected all tests, once for each mutant, instead of running them."""

    def __init__(self, bench: "Bench", mutants: list[Mutant], jobs: int) -> None:
        self._bench, self._mutants, self._jobs = bench, mutants, jobs
        self._functions: dict[CodeType, list[FunctionType]] = defaultdict(list)
        self._items: dict[str, pytest.Item] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        gc.unfreeze()  # the configuration of the tests hides what it has collected
        for function in gc.get_objects():
            if type(function) is FunctionType:  # some objects of libraries warn when asked for their class
                self._functions[function.__code__].append(function)
        gc.freeze()
        _side_by_side(self._jobs, self._mutants, self._try)
        return True

    def _try(self, mutant: Mutant) -> None:
        names = self._bench.reach.of(mutant.path, range(mutant.first, mutant.last + 1))
        tests = [self._items[name] for name in names if name in self._items]
        self._bench.keep(mutant, "in place", *_forked(lambda: self._replace(mutant) or _first_failure(tests)))

    def _replace(self, mutant: Mutant) -> int:
        if mutant.nth < 0:
            return 0
        text, replaced = self._bench.texts[mutant.path], 0
        right, wrong = (_codes(code_of(mutant.path, text, nth)) for nth in (None, mutant.nth))
        for place in right.keys() & wrong.keys():
            for function in self._functions.get(right[place], ()) if right[place] != wrong[place] else ():
                if function.__code__.co_filename == str(ROOT / mutant.path):
                    function.__code__ = wrong[place]
                    replaced += 1
        return 0 if replaced else _UNTRIED


def _first_failure(tests: list[pytest.Item]) -> int:
    """Run tests until one fails, and return 1, or 0 if none does."""
    for item, following in pairwise([*tests, None]):
        if item is not None and any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return 1
        if process_time() > _MUTANT_SECONDS:
            break
    return 0


class Bench:
    """Runs the tests with one mistake at a time, and writes what came of it into a file."""

    def __init__(self, texts: dict[str, str], coverage: Path, results: Path) -> None:
        """Take the texts of the files, the record of who reaches them, and the file to write into."""
        self.texts, self.reach, self._results = texts, _Reach(coverage), results

    def outcomes(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Return of each mutant how it was tried last, what came of it, and the test that failed."""
        lines = self._results.read_text(encoding="utf-8").splitlines() if self._results.exists() else []
        return {tuple(line[:4]): tuple(line[4:]) for line in map(json.loads, lines)}

    def keep(self, mutant: Mutant, way: str, outcome: str, killer: str) -> None:
        """Write what came of a mutant."""
        with self._results.open("a", encoding="utf-8") as file:
            file.write(json.dumps([*mutant.key, way, outcome, killer], ensure_ascii=False) + "\n")

    def run_in_place(self, mutants: list[Mutant], jobs: int) -> None:
        """Run them in forks of a process that has collected the tests, by replacing the code of functions."""
        folders = sorted({str(ROOT / Path(*Path(test_path(path)).parts[:2])) for path in self.texts})
        plugin = _Forking(self, mutants, jobs)
        _forked(lambda: int(pytest.main([*_OPTIONS, "-m", "unit", *folders], plugins=[plugin])), has_limits=False)

    def run_imported(self, mutants: list[Mutant], jobs: int) -> None:
        """Run them in processes that import the package with the mistake."""
        for name in _LIBRARIES:
            with suppress(ImportError):
                importlib.import_module(name)
        uses = _Uses(self.texts)
        _side_by_side(jobs, mutants, lambda mutant: self._import(mutant, uses))

    def _import(self, mutant: Mutant, uses: _Uses) -> None:
        own = test_path(mutant.path)
        tests = self.reach.of(mutant.path, range(mutant.first, mutant.last + 1))
        if mutant.is_at_import:
            tests += [test for path, line in uses.of(mutant) for test in self.reach.of(path, [line])]
        files = list(dict.fromkeys([own, *(test.partition("::")[0] for test in tests)]))[:_MOST_FILES]
        arguments = [*_OPTIONS, "-x", "-m", _NOT_LONG, *(str(ROOT / file) for file in files if (ROOT / file).exists())]

        def run() -> int:
            nth = mutant.nth if mutant.nth >= 0 else None
            wrong, get_code = code_of(mutant.path, self.texts[mutant.path], nth), SourceFileLoader.get_code

            def get(loader: SourceFileLoader, name: str) -> CodeType | None:
                return wrong if loader.path == str(ROOT / mutant.path) else get_code(loader, name)

            SourceFileLoader.get_code = get  # type: ignore[method-assign, assignment]
            return int(pytest.main(arguments, plugins=[_Chosen(dict.fromkeys(tests), own)]))

        self.keep(mutant, "imported", *_forked(run))


def _codes(code: CodeType) -> dict[tuple[str, int, int], CodeType]:
    """Return the code of all functions in `code`, by name, line and place."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    found = {(one.co_qualname, one.co_firstlineno, number): one for number, one in enumerate(inner)}
    return found | {place: one for child in inner for place, one in _codes(child).items()}


def _side_by_side(jobs: int, mutants: list[Mutant], run: Callable[[Mutant], None]) -> None:
    """Run each mutant in one of so many processes."""
    pids = []
    for job in range(jobs):
        pids.append(os.fork())
        if not pids[-1]:
            try:
                for mutant in mutants[job::jobs]:
                    run(mutant)
            finally:
                os._exit(0)
    for pid in pids:
        os.waitpid(pid, 0)


def _forked(run: Callable[[], int], has_limits: bool = True) -> tuple[str, str]:
    """Run in a process of its own, silently; return what its end says of a mutant, and the test that failed."""
    folder = tempfile.mkdtemp(prefix="mutant-")
    pid = os.fork()
    if not pid:
        code = _UNTRIED
        try:
            os.setsid()
            os.environ["TMPDIR"] = tempfile.tempdir = folder
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            if has_limits:
                signal.setitimer(signal.ITIMER_REAL, _PATIENCE_SECONDS)
                resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
            code = run()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    named = Path(folder, _KILLER)
    killer = named.read_text(encoding="utf-8") if named.exists() else ""
    shutil.rmtree(folder, ignore_errors=True)
    if os.WIFSIGNALED(status):
        return ("timeout" if os.WTERMSIG(status) in (signal.SIGVTALRM, signal.SIGALRM) else "killed"), killer
    return {0: "survived", 5: "survived", _UNTRIED: "untried"}.get(os.WEXITSTATUS(status), "killed"), killer


def demanded_modules() -> dict[str, str]:
    """Return the text of each file whose coverage `.ci/run` demands."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    patterns: dict[bool, list[str]] = defaultdict(list)
    for name, listed in re.findall(r'^(core|pure|children)="(?:\$children,)?(.*)"', script, re.MULTILINE):
        patterns[name == "children"] += listed.split(",")
    found = {}
    for file in sorted((ROOT / "planner").rglob("*.py")):
        path = file.relative_to(ROOT).as_posix()
        demanded, left_out = (any(fnmatch(path, one) for one in patterns[kind]) for kind in (False, True))
        if demanded and not left_out:
            found[path] = file.read_text(encoding="utf-8")
    return found


def _report(mutants: list[Mutant], outcomes: dict[tuple[str, ...], tuple[str, ...]]) -> int:
    """Print each survivor and a line for each package, and return how many survived that are not equivalent."""
    equivalent = {tuple(one[:4]) for one in json.loads(EQUIVALENT.read_text(encoding="utf-8"))}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants:
        _, outcome, _ = outcomes.get(mutant.key, ("", "untried", ""))
        outcome = "equivalent" if outcome == "survived" and mutant.key in equivalent else outcome
        folders = mutant.path.split("/")
        counts[folders[1] if len(folders) > 2 else "planner"][outcome] += 1
        if outcome == "survived":
            print(f"{mutant.path}:{mutant.first} {mutant.scope}: {mutant.change}\n    {mutant.line}")
    columns = ("killed", "timeout", "equivalent", "survived", "untried")
    print("\n" + "".join(f"{title:>12}" for title in ("package", "mutants", *columns, "score")))
    total = sum(counts.values(), Counter[str]())
    for package, count in [*sorted(counts.items()), ("all", total)]:
        killed = count["killed"] + count["timeout"]
        score = f"{killed / max(killed + count['survived'], 1):.1%}"
        print("".join(f"{cell:>12}" for cell in (package, count.total(), *(count[one] for one in columns), score)))
    return total["survived"]


def _is_open(found: tuple[str, ...] | None) -> bool:
    return found is None or (found[0] == "in place" and found[1] in ("survived", "untried"))


def main() -> int:
    """Run what is not yet in the results, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=_COUNT)
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--only", default="", help="paths that begin so")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--coverage", type=Path, default=ROOT / ".coverage")
    parser.add_argument("--results", type=Path, help="a file that keeps what was found")
    parser.add_argument("--again", action="store_true", help="repeat what survived")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a mutant survives")
    asked = parser.parse_args()
    texts = demanded_modules()
    own = {path: text for path, text in texts.items() if path.startswith(asked.only)}
    mutants = drawn(
        (mutant for path, text in own.items() for mutant in mutants_of(path, text)), asked.seed, asked.count
    )
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(texts, asked.coverage, asked.results or Path(folder) / "results")
        done = bench.outcomes()
        if asked.again:
            done = {key: found for key, found in done.items() if found[1] != "survived"}
        left = [mutant for mutant in mutants if mutant.key not in done and not mutant.is_at_import]
        if left:
            bench.run_in_place(left, asked.jobs)
            done |= bench.outcomes()
        left = [mutant for mutant in mutants if _is_open(done.get(mutant.key))]
        bench.run_imported(left, asked.jobs)
        survived = _report(mutants, bench.outcomes())
    return int(asked.check and survived > 0)


if __name__ == "__main__":
    sys.exit(main())
