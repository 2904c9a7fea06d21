"""Structure of the package: its size, its imports, and the modules that run when the batch size changes.

    python benchmarks/structure.py [--root CHECKOUT] [--check] [--list WHAT] [--without-window]

Prints a table. `--root` examines another checkout. `--list` prints the places behind a figure: `comparisons`, `cycles`,
`folders`, `basenames`, `homonyms`, `importers`, `short`, `lazy`, `caches`, `questions`, `untested` or `entered`.
`--check` exits with 1 if there is an import cycle, a comparison with a program's name outside the folders for programs,
or a folder of more than 32 modules.

**A comparison with a program's name** is `==`, `!=`, `in`, `not in` or `case` with one of `PROGRAMS`, written out or as
a constant of the module; a dictionary display with such a key; a tuple, list or set of nothing but such names; and a
look-up by such a name, `TABLE["vllm"]` or `TABLE.get("vllm")`. Types (`Literal[…]`) and arguments do not count. Modules
in a folder `software` may compare. Readers of other programs' files (`FORMATS`) name the keys and the formats of those
files: there only a comparison of the workload's own `profile`, `engine` or `software` counts.

**The modules that one batch size enters** are those of `planner` in which a Python function begins to run when a key is
pressed in the field of the batch size, in the window with a full training of a model of 8 B parameters on one card. The
key was pressed once before, so that what is imported or made only once is not counted; painting, and what panels do
when the plan has rested for a while, are not either. *In all* ends when the key has been handled. *Until the bar has
its data* ends when the last method of the memory bar has returned. *Without other panels* leaves out what is not
on the way from the field to the plan, to its evaluation and to the bar: each call of a method of a widget, with all
that it calls, unless the widget is the bar, inside it or around it; the field and the widgets around it are on the way
until the first widget around the bar is told of the new plan, and are panels as others are from then on.
"""

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Any, Final, NamedTuple

PROGRAMS: Final = frozenset(
    (
        "hf", "liger", "unsloth", "torchtune", "megatron", "deepspeed", "litgpt", "vllm", "vllm-v0", "llama.cpp",
        "tensorrt-llm", "trtllm", "sglang", "compiled", "bnb-eager", "exllamav2",
    )
)  # fmt: skip
"""Names of programs and of their modes in workloads and in tables of measurements."""

FORMATS: Final = (
    "planner/workload/recipes/",
    "planner/plan/recipes.py",
    "planner/memory/logs/",
    "planner/launch/load.py",
)
"""Readers of other programs' files; keys and formats in these files have the programs' names."""

LISTS: Final = (
    "comparisons", "lazy", "caches", "cycles", "folders", "basenames", "homonyms", "importers", "short", "questions",
    "untested", "entered",
)  # fmt: skip
MOST_MODULES: Final = 32
"""Maximum number of modules directly in a folder."""

_OWN_CHOICE: Final = frozenset(("profile", "engine", "software"))
_SHORT_LINES: Final = 30
_CACHES: Final = frozenset(("cache", "lru_cache", "cached_property"))
_DEVICE_FOLDERS: Final = ("planner/trace/worker/cpu/", "planner/trace/worker/cuda/")
_PAINT: Final = "paintEvent"
_LOOKUPS: Final = frozenset(("get", "pop", "setdefault"))
_COMMAND_FUNCTIONS: Final = frozenset(("run", "main", "make_parser", "add_arguments"))
_QUESTION: Final = re.compile(r"(What|How|Which|Where|Whether|Who|Why|When|Whose)\b")
_SHELLS: Final = ("planner/gui/", "planner/cli/")
"""Folders with tests of user actions instead of tests of one module."""


class Module(NamedTuple):
    """A file of the package with its module name, its text and its syntax tree."""

    name: str
    path: str
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        """Return whether the file is the `__init__` of a folder."""
        return self.path.endswith("__init__.py")

    @property
    def folder(self) -> str:
        """Return the folder that contains the file."""
        return self.path.rpartition("/")[0]


class Place(NamedTuple):
    """A line of the package and a description of its content."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


class Import(NamedTuple):
    """An imported module; `kind` says when it is imported: at the start, within a function, or for types only."""

    target: str
    line: int
    kind: str


def modules_of(root: Path) -> list[Module]:
    """Return every module of the package in the checkout `root`."""
    found = []
    for path in sorted((root / "planner").rglob("*.py")):
        place = path.relative_to(root).as_posix()
        name = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        text = path.read_text(encoding="utf-8")
        found.append(Module(name, place, text, ast.parse(text)))
    return found


# Lines


def line_kinds(module: Module) -> Counter[str]:
    """Return the number of code, docstring, comment and blank lines."""
    count = len(module.text.splitlines())
    docstrings: set[int] = set()
    for node in ast.walk(module.tree):
        for one in _docstrings_in(node):
            docstrings.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    code, comments = set[int](), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        lines = range(token.start[0], token.end[0] + 1)
        if token.type == tokenize.COMMENT:
            comments.update(lines)
        elif token.type not in (
            tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
        ):  # fmt: skip
            code.update(lines)
    code -= docstrings
    comments -= code | docstrings
    kinds = Counter(code=len(code), docstring=len(docstrings), comment=len(comments))
    kinds["blank"] = count - kinds.total()
    return kinds


def _docstrings_in(node: ast.AST) -> Iterator[ast.Expr]:
    """Yield the string statements: docstrings of definitions, constants and fields."""
    if isinstance(node, ast.Lambda | ast.IfExp):
        return
    for statement in getattr(node, "body", ()):
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield statement


def statements_of(module: Module) -> int:
    """Return the number of statements without docstrings."""
    texts = sum(1 for node in ast.walk(module.tree) for _ in _docstrings_in(node))
    return sum(isinstance(node, ast.stmt) for node in ast.walk(module.tree)) - texts


def function_lengths(module: Module) -> list[int]:
    """Return the number of lines in each function from `def` on, without its docstring."""
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = node.end_lineno - node.lineno + 1 if node.end_lineno else 1
            first = node.body[0]
            if ast.get_docstring(node) is not None and first.end_lineno:
                own -= first.end_lineno - first.lineno + 1
            found.append(own)
    return found


# Imports


def imports_of(module: Module, names: frozenset[str]) -> list[Import]:
    """Return the modules among `names` that `module` imports."""
    found: list[Import] = []
    _find_imports(module.tree, module, names, "start", found)
    return found


def _find_imports(node: ast.AST, module: Module, names: frozenset[str], kind: str, imports: list[Import]) -> None:
    for child in _inner_statements(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            imports += [Import(target, child.lineno, kind) for target in _targets(child, module, names)]
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.body:
                _find_imports(ast.Module([statement], []), module, names, "types", imports)
            _find_imports(ast.Module(child.orelse, []), module, names, kind, imports)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            _find_imports(child, module, names, "function", imports)
        else:
            _find_imports(child, module, names, kind, imports)


def _inner_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements and the branches directly in a statement, a branch or a module; an expression has none."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield from block


def _all_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the module, statement or branch `node` and those inside it."""
    yield node
    for child in _inner_statements(node):
        yield from _all_statements(child)


def _targets(node: ast.Import | ast.ImportFrom, module: Module, names: frozenset[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in names)
        return
    base = node.module or ""
    if node.level:
        package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
        base = ".".join((*package[: len(package) - node.level + 1], *filter(None, (node.module,))))
    for target in {f"{base}.{alias.name}" if f"{base}.{alias.name}" in names else base for alias in node.names}:
        if target in names:
            yield target


def lazy_imports(module: Module) -> list[Place]:
    """Return all imports within a function or for types only."""
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            within = [one for one in ast.walk(node) if isinstance(one, ast.Import | ast.ImportFrom)]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            within = [one for one in node.body if isinstance(one, ast.Import | ast.ImportFrom)]
        else:
            continue
        found += [Place(module.path, one.lineno, ast.unparse(one)) for one in within]
    return sorted(set(found))


def cycles(modules: Iterable[Module], kinds: frozenset[str] = frozenset(("start", "function"))) -> list[list[str]]:
    """Return the groups of modules that import each other directly or indirectly, ignoring imports for types only."""
    chosen = list(modules)
    names = frozenset(module.name for module in chosen)
    graph = {
        module.name: {one.target for one in imports_of(module, names) if one.kind in kinds} - {module.name}
        for module in chosen
    }
    return [sorted(group) for group in _strongly_connected(graph) if len(group) > 1]


def _strongly_connected(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components (Tarjan), without recursion."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    held: list[str] = []
    is_held: set[str] = set()
    found: list[list[str]] = []
    for start in graph:
        if start in order:
            continue
        work = [(start, iter(sorted(graph[start])))]
        order[start] = low[start] = len(order)
        held.append(start)
        is_held.add(start)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in order:
                    order[target] = low[target] = len(order)
                    held.append(target)
                    is_held.add(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in is_held:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    group = held[held.index(node) :]
                    del held[held.index(node) :]
                    is_held -= set(group)
                    found.append(group)
    return found


# Names of programs


def comparisons(module: Module) -> list[Place]:
    """Return the lines on which `module` compares with a program's name or defines a table of such names."""
    if "software" in module.folder.split("/"):
        return []
    return _NameFinder(module).found()


class _NameFinder(ast.NodeVisitor):
    """Finder of program names in a module; names in a comparison are not counted again as a table."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._reads_formats = module.path.startswith(FORMATS)
        self._constants = {
            target.id: node.value.value
            for node in module.tree.body
            for target in _assigned(node)
            if isinstance(node, ast.Assign | ast.AnnAssign) and _is_program(node.value)
        }
        self._places: list[Place] = []

    def found(self) -> list[Place]:
        self.visit(self._module.tree)
        return self._places

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        named = [operand for operand in operands if self._names_program(operand)]
        if named:
            others = [operand for operand in operands if operand not in named]
            self._note(node, others)
            for operand in others:
                self.visit(operand)
            return
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            for pattern in ast.walk(case.pattern):
                if isinstance(pattern, ast.MatchValue) and self._names_program(pattern.value):
                    self._note(pattern, [node.subject])
            for statement in case.body:
                self.visit(statement)

    def visit_Dict(self, node: ast.Dict) -> None:
        if any(key is not None and self._names_program(key) for key in node.keys):
            self._note(node, [])
        for value in node.values:
            self.visit(value)

    def visit_Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> None:
        if node.elts and all(self._names_program(one) for one in node.elts):
            self._note(node, [])
        else:
            self.generic_visit(node)

    def visit_List(self, node: ast.List) -> None:
        self.visit_Tuple(node)

    def visit_Set(self, node: ast.Set) -> None:
        self.visit_Tuple(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            return
        if self._names_program(node.slice):
            self._note(node, [])
            self.visit(node.value)
            return
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        is_lookup = isinstance(node.func, ast.Attribute) and node.func.attr in _LOOKUPS
        if is_lookup and node.args and self._names_program(node.args[0]):
            self._note(node, [])
        self.generic_visit(node)

    def _names_program(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._constants
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return any(self._names_program(one) for one in node.elts)
        return _is_program(node)

    def _note(self, node: ast.AST, others: list[ast.expr]) -> None:
        if self._reads_formats and not any(_is_own_choice(other) for other in others):
            return
        text = " ".join(ast.unparse(node).split())
        line = getattr(node, "lineno", 0)
        self._places.append(Place(self._module.path, line, text if len(text) <= 100 else f"{text[:97]}…"))


def _assigned(node: ast.stmt) -> list[ast.Name]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target for target in targets if isinstance(target, ast.Name)]


def _is_program(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in PROGRAMS


def _is_own_choice(node: ast.expr) -> bool:
    words = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    words |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    words |= {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return bool(words & _OWN_CHOICE)


# Caches, folders, names


def caches_of(module: Module) -> list[Place]:
    """Return the functions and values that use a cache from functools."""
    found = []
    for node in ast.walk(module.tree):
        made = list(getattr(node, "decorator_list", ()))
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            made.append(node.value.func)
        names = {ast.unparse(one.func if isinstance(one, ast.Call) else one).rpartition(".")[2] for one in made}
        found += [Place(module.path, getattr(node, "lineno", 0), name) for name in sorted(names & _CACHES)]
    return found


def folders(modules: Iterable[Module]) -> Counter[str]:
    """Return the number of modules directly in each folder."""
    return Counter(module.folder for module in modules if not module.is_package)


def shared_basenames(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Return the names that several files share, except files in folders `software`, which mirror each other."""
    found = defaultdict(list)
    for module in modules:
        folder, _, name = module.path.rpartition("/")
        if not module.is_package and "software" not in folder.split("/") and name != "__main__.py":
            found[name].append(module.path)
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def single_importers(modules: list[Module]) -> list[Place]:
    """Return the modules that exactly one other module imports."""
    names = frozenset(module.name for module in modules)
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for one in imports_of(module, names):
            importers[one.target].add(module.name)
    by_name = {module.name: module for module in modules}
    return [
        Place(by_name[name].path, 1, f"only {next(iter(who))}")
        for name, who in sorted(importers.items())
        if len(who - {name}) == 1 and not by_name[name].is_package
    ]


def homonyms(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Return the public top-level classes and functions that several modules define, with their paths.

    Mirrored names are left out: the functions that every command has, functions that only the modules of one folder
    `software` define, and functions that the tracer's worker defines for each device, in `cpu` and `cuda`.
    """
    found = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                found[node.name].append(module.path)
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1 and not _is_mirrored(name, paths)}


def _is_mirrored(name: str, paths: list[str]) -> bool:
    if name in _COMMAND_FUNCTIONS:
        return True
    if all(path.startswith(_DEVICE_FOLDERS) for path in paths):
        return True
    rooms = {path.partition("/software/")[0] if "/software/" in path else None for path in paths}
    return len(rooms) == 1 and None not in rooms


def question_docstrings(module: Module) -> list[Place]:
    """Return the docstrings that begin with a question word."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [
        Place(module.path, getattr(node, "lineno", 1), text.partition("\n")[0])
        for node in _all_statements(module.tree)
        if isinstance(node, documented) and (text := ast.get_docstring(node)) and _QUESTION.match(text)
    ]


def untested(modules: Iterable[Module], root: Path) -> list[str]:
    """Return the modules of the core without a test file of their name in the mirrored folder of `tests`.

    Modules of the window and of the command line are no core, and neither are those that only child processes run.
    """
    children = tuple(re.findall(r"planner/[\w/*.]+", " ".join(_children(root))))
    return [
        module.path
        for module in modules
        if not (module.is_package or module.path.startswith(_SHELLS) or module.path.endswith("/__main__.py"))
        and not any(fnmatch(module.path, pattern) for pattern in children)
        and not (root / test_path(module.path)).exists()
    ]


def _children(root: Path) -> list[str]:
    """Return the lines of the checks that name the modules which only child processes run."""
    text = (root / ".ci" / "run").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith("children=")]


def test_path(path: str) -> str:
    """Return the path of the test file of a module; those of modules directly in `planner` lie in `tests/core`."""
    folder, _, name = path.removeprefix("planner/").rpartition("/")
    return f"tests/{folder or 'core'}/test_{name}"


# What one batch size enters


class Entered(NamedTuple):
    """Modules entered after a key press, with the number of function calls and of changes of module."""

    modules: list[str]
    calls: int
    moves: int


def entered_by_a_key(root: Path) -> dict[str, Entered]:
    """Return the modules in the checkout `root` that one change of the batch size enters, by way of counting."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {
            "PYTHONPATH": str(root),
            "QT_QPA_PLATFORM": "offscreen",
            "GPU_PLANNER_HOME": home,
        }
        command = [sys.executable, __file__, "--enter"]
        done = subprocess.run(command, env=environment, cwd=home, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: Entered(*figures) for name, figures in found.items()}


def _trace_key_press() -> dict[str, Entered]:
    """Press a key twice in the field for the batch size, and trace the second press."""
    from PySide6.QtCore import Qt
    from PySide6.QtTest import QTest

    from planner import ModelChoice, Plan, Training
    from planner.gui.app import create

    app, window = create(["gpu-planner"])
    window.resize(1280, 900)
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Training(), gpu="h100-sxm5-80gb")
    window.workspace.replace(plan, None)
    _settle(app)
    field, bar = _batch_field(window), _memory_bar(window)
    _settle(app)
    before = window.workspace.plan.workload.micro_batch
    QTest.keyClick(field, Qt.Key.Key_Up)
    _settle(app)
    first = window.workspace.plan.workload.micro_batch
    watch = _CallTracer(field, bar)
    sys.setprofile(watch)
    QTest.keyClick(field, Qt.Key.Key_Up)
    sys.setprofile(None)
    if len({before, first, window.workspace.plan.workload.micro_batch}) != 3:
        raise SystemExit("the key did not change the batch size")
    return watch.entered()


def _settle(app: Any) -> None:
    """Handle events until all effects of a change are complete, including panels that wait for an unchanged plan."""
    from PySide6.QtTest import QTest

    for _ in range(10):
        QTest.qWait(100)
        app.processEvents()


def _batch_field(window: Any) -> Any:
    """Return the widget in which a key press changes only the batch size."""
    from PySide6.QtCore import Qt
    from PySide6.QtTest import QTest
    from PySide6.QtWidgets import QLineEdit

    workspace = window.workspace
    for widget in window.findChildren(QLineEdit):
        if not widget.isVisible():
            continue
        before = workspace.plan
        QTest.keyClick(widget, Qt.Key.Key_Up)
        after = workspace.plan
        if after == before:
            continue
        workspace.replace(before, None)
        if after.workload.micro_batch != before.workload.micro_batch:
            return widget
    raise SystemExit("no field changes the batch size")


def _memory_bar(window: Any) -> Any:
    from PySide6.QtWidgets import QWidget

    return next(one for one in window.findChildren(QWidget) if type(one).__name__ == "StackedBar" and one.isVisible())


class _CallTracer:
    """Profiler hook that records each planner function call; the module's docstring defines other panels."""

    def __init__(self, field: Any, bar: Any) -> None:
        from PySide6.QtWidgets import QWidget

        self._widget = QWidget
        self._bar = bar
        self._of_bar = {id(one) for one in (*_with_parents(bar), *bar.findChildren(QWidget))}
        self._of_field = {id(one) for one in _with_parents(field)}
        self._calls: list[tuple[str, bool]] = []
        self._aside = self._painting = 0
        self._has_left = self._is_told = False
        self._frames: list[tuple[Any, bool]] = []
        self._last_of_bar = 0

    def __call__(self, frame: Any, event: str, _argument: object) -> None:
        if event == "call":
            name = frame.f_globals.get("__name__", "")
            is_aside = self._is_another_panel(frame)
            self._aside += is_aside
            self._painting += frame.f_code.co_name == _PAINT
            self._frames.append((frame, is_aside))
            if name.startswith("planner") and not self._painting:
                self._calls.append((name, self._aside > 0))
        elif event == "return" and self._frames and any(held is frame for held, _ in self._frames):
            while self._frames:
                held, is_aside = self._frames.pop()
                self._aside -= is_aside
                self._painting -= held.f_code.co_name == _PAINT
                if held is frame:
                    break
            if frame.f_locals.get("self") is self._bar and not frame.f_code.co_name.endswith("Event"):
                self._last_of_bar = len(self._calls)

    def _is_another_panel(self, frame: Any) -> bool:
        owner = frame.f_locals.get("self") if frame.f_code.co_varnames[:1] == ("self",) else None
        if not isinstance(owner, self._widget):
            # The field has handed the new number on once something that is no widget, the plan's keeper, has begun.
            self._has_left |= "self" in frame.f_locals and bool(self._frames)
            return False
        if id(owner) in self._of_bar:
            self._is_told |= self._has_left
            return False
        return self._is_told or id(owner) not in self._of_field

    def entered(self) -> dict[str, Entered]:
        """Return the entered modules by way of counting."""
        to_the_bar = self._calls[: self._last_of_bar]
        return {
            "until the bar has its data": _entered(name for name, _ in to_the_bar),
            "the same without other panels": _entered(name for name, is_aside in to_the_bar if not is_aside),
            "in all": _entered(name for name, _ in self._calls),
        }


def _entered(names: Iterable[str]) -> Entered:
    calls = list(names)
    moves = sum(one != other for one, other in pairwise(calls))
    return Entered(sorted(set(calls)), len(calls), moves)


def _with_parents(widget: Any) -> Iterator[Any]:
    while widget is not None:
        yield widget
        widget = widget.parentWidget()


# The command


def main() -> int:
    """Print the table, or the places behind one figure; return 1 if `--check` finds a problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", choices=LISTS, help="print the places behind one figure")
    parser.add_argument("--without-window", action="store_true", help="skip figures that need a window")
    parser.add_argument("--enter", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.enter:
        print(json.dumps(_trace_key_press()))
        return 0
    modules = modules_of(arguments.root)
    if arguments.list:
        for line in _list_lines(arguments.list, modules, arguments.root):
            print(line)
        return 0
    _print_table(modules, arguments.root)
    if not arguments.without_window:
        _print_entered(entered_by_a_key(arguments.root))
    wrong = problems(modules)
    if arguments.check:
        for line in wrong:
            print(f"wrong: {line}")
    return int(arguments.check and bool(wrong))


def problems(modules: list[Module]) -> list[str]:
    """Return the problems: import cycles, comparisons with names of programs, and folders with too many modules."""
    found = [f"a cycle of imports: {' ↔ '.join(group)}" for group in cycles(modules)]
    found += [f"a program's name: {place}" for module in modules for place in comparisons(module)]
    large = [(folder, count) for folder, count in folders(modules).items() if count > MOST_MODULES]
    return found + [f"{folder}: {count} modules, and {MOST_MODULES} at most" for folder, count in large]


def _print_table(modules: list[Module], root: Path) -> None:
    kinds = sum((line_kinds(module) for module in modules), Counter())
    lines = sorted(len(module.text.splitlines()) for module in modules)
    functions = [length for module in modules for length in function_lengths(module)]
    tenths = quantiles(functions, n=10)
    named = [place for module in modules for place in comparisons(module)]
    shared = shared_basenames(modules)
    _print_row("lines", kinds.total())
    _print_row("statements", sum(map(statements_of, modules)))
    shares = (f"{name} {count / kinds.total():.1%}" for name, count in kinds.items())
    _print_row("of the lines", ", ".join(shares))
    _print_row("files", len(modules))
    _print_row(
        "lines of a file: median, 90 of 100, most",
        f"{lines[len(lines) // 2]}, {lines[len(lines) * 9 // 10]}, {lines[-1]}",
    )
    _print_row("files under 30 lines, __init__ aside", sum(_is_short(module) for module in modules))
    _print_row("files with exactly one importer", len(single_importers(modules)))
    _print_row("functions; lines of one: median, 90 of 100", f"{len(functions):,}; {tenths[4]:.0f}, {tenths[8]:.0f}")
    for folder, count in folders(modules).most_common(5):
        _print_row(f"modules in {folder}", count)
    _print_row("cycles of imports", len(cycles(modules)))
    _print_row("cycles with imports for types", len(cycles(modules, frozenset(("start", "function", "types")))))
    _print_row("names of files that several have; such files", f"{len(shared)}; {sum(map(len, shared.values()))}")
    _print_row("public names that several modules define", len(homonyms(modules)))
    _print_row("docstrings that open with a question word", sum(len(question_docstrings(module)) for module in modules))
    _print_row("modules of the core without a test file", len(untested(modules, root)))
    _print_row("imports in functions or for types only", sum(len(lazy_imports(module)) for module in modules))
    _print_row("caches", sum(len(caches_of(module)) for module in modules))
    _print_row("comparisons with a program's name; files", f"{len(named)}; {len({place.path for place in named})}")


def _print_entered(entered_by_way: dict[str, Entered]) -> None:
    for what, one in entered_by_way.items():
        figures = f"{len(one.modules)} in {one.calls:,} calls, {one.moves:,} moves"
        _print_row(f"modules that a batch size enters, {what}", figures)


def _print_row(title: str, value: object) -> None:
    print(f"{title:52} {value:>10,}" if isinstance(value, int) else f"{title:52} {value}")


def _is_short(module: Module) -> bool:
    return not module.is_package and len(module.text.splitlines()) < _SHORT_LINES


def _list_lines(list_name: str, modules: list[Module], root: Path) -> Iterator[object]:
    by_module = {
        "comparisons": comparisons,
        "lazy": lazy_imports,
        "caches": caches_of,
        "questions": question_docstrings,
    }
    if list_name in by_module:
        yield from (place for module in modules for place in by_module[list_name](module))
    elif list_name == "cycles":
        yield from (" ↔ ".join(group) for group in cycles(modules))
    elif list_name == "folders":
        yield from (f"{count:4} {folder}" for folder, count in folders(modules).most_common())
    elif list_name == "basenames":
        yield from (f"{name}: {', '.join(paths)}" for name, paths in shared_basenames(modules).items())
    elif list_name == "homonyms":
        yield from (f"{name}: {', '.join(paths)}" for name, paths in homonyms(modules).items())
    elif list_name == "untested":
        yield from untested(modules, root)
    elif list_name == "importers":
        yield from single_importers(modules)
    elif list_name == "short":
        yield from (module.path for module in modules if _is_short(module))
    else:
        for counted, one in entered_by_a_key(root).items():
            yield from (f"{counted}: {module}" for module in one.modules)


if __name__ == "__main__":
    sys.exit(main())
