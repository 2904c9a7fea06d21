"""Rules of the package's structure, and tests that each check finds what it should."""

import ast
import sys
from collections import Counter
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MOST_MODULES = 32
NETWORK = {
    "asyncio",
    "ftplib",
    "http.client",
    "http.server",
    "httpx",
    "huggingface_hub",
    "requests",
    "socket",
    "socketserver",
    "ssl",
    "urllib.request",
    "urllib3",
}
"""Modules that reach other machines."""
REACHING = {
    "cost/price_feeds/download.py",  # prices, when they are refreshed
    "models/readers/hub.py",  # a model of the Hub, when it is named
    "monitor/exposition/server.py",  # serves readings to Prometheus, when asked
    "network.py",  # tells their errors apart, and asks the Prometheus or exporter that a person names
    "trace/worker/script/weights.py",  # tells a traced script that it has no network
    "installation.py",  # paths of file: URLs only
}


@pytest.fixture(scope="module")
def structure():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import structure
    finally:
        sys.path.remove(str(BENCHMARKS))
    return structure


@pytest.fixture(scope="module")
def modules(structure):
    return structure.modules_of(BENCHMARKS.parent)


def test_nothing_is_compared_with_a_programs_name(structure, modules):
    assert [str(place) for module in modules for place in structure.comparisons(module)] == []


def test_no_modules_import_each_other(structure, modules):
    assert structure.cycles(modules) == []


def test_only_what_the_manual_names_uses_the_network(modules):
    found = set()
    for module in modules:
        for node in ast.walk(module.tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                names += [str(ast.literal_eval(node.args[0]))] if isinstance(node.args[0], ast.Constant) else []
            if any(name == used or name.startswith(f"{used}.") for name in names for used in NETWORK):
                found.add(module.path.removeprefix("planner/"))
    assert found == REACHING


def test_helper_modules_of_the_tests_have_unique_names():
    # All their folders are on the import path, so the first of two of one name would hide the other.
    files = Path(__file__).parent.rglob("*.py")
    names = Counter(path.name for path in files if not path.name.startswith(("test_", "conftest")))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_folder_is_too_full_to_read(structure, modules):
    assert {name: count for name, count in structure.folders(modules).items() if count > MOST_MODULES} == {}


def test_no_public_name_has_two_meanings(structure, modules):
    assert structure.homonyms(modules) == {}


def test_no_docstring_opens_with_a_question_word(structure, modules):
    assert [str(place) for module in modules for place in structure.question_docstrings(module)] == []


def test_each_module_of_the_core_has_a_test_file_of_its_name(structure, modules):
    assert structure.untested(modules, BENCHMARKS.parent) == []


def test_a_docstring_that_opens_with_a_question_word_is_found(structure):
    text = '"""Which it is."""\ndef f():\n    """Return what it is."""\nclass C:\n    """How it is."""'
    found = structure.question_docstrings(_module(structure, text))
    assert [(place.line, place.what) for place in found] == [(1, "Which it is."), (4, "How it is.")]


def test_a_public_name_of_several_modules_is_found_unless_it_is_mirrored(structure):
    texts = {
        "planner/a.py": "class Run: ...\ndef _own(): ...\ndef run(): ...",
        "planner/b.py": "def Run(): ...\ndef _own(): ...\ndef run(): ...",
        "planner/memory/software/x.py": "def cost(): ...\ndef total(): ...",
        "planner/memory/software/y.py": "def cost(): ...",
        "planner/c.py": "def total(): ...",
    }
    modules = [_module(structure, text, path) for path, text in texts.items()]
    assert structure.homonyms(modules) == {
        "Run": ["planner/a.py", "planner/b.py"],
        "total": ["planner/memory/software/x.py", "planner/c.py"],
    }


def test_a_module_without_a_test_file_is_found(structure, tmp_path):
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text('children="planner/trace/worker/*,planner/trace/run.py"\n')
    (tmp_path / "tests" / "memory").mkdir(parents=True)
    (tmp_path / "tests" / "memory" / "test_fit.py").write_text("")
    paths = ("units", "memory/fit", "memory/deep/fit", "gui/a", "cli/b", "trace/run", "trace/worker/c", "__main__")
    modules = [_module(structure, "", f"planner/{path}.py") for path in paths]
    assert structure.untested(modules, tmp_path) == ["planner/units.py", "planner/memory/deep/fit.py"]
    assert structure.test_path("planner/units.py") == "tests/core/test_units.py"


@pytest.mark.parametrize(
    "text",
    [
        "if workload.profile == 'vllm': pass",
        "if 'hf' != profile: pass",
        "if profile in ('liger', None): pass",
        "if 'vllm' in formats: pass",
        "_ONE = 'megatron'\nused = sharder == _ONE",
        "match engine:\n    case 'llama.cpp': pass",
        "match engine:\n    case 'sglang' | 'other': pass",
        "TITLES = {'hf': 'transformers'}",
        "TABLE = {('decode', 'vllm'): 1}",
        "BATCHING = ('vllm', 'trtllm')",
        "found = TITLES['unsloth']",
        "found = TITLES.get('litgpt')",
    ],
)
def test_a_comparison_with_a_programs_name_is_found(structure, text):
    assert len(structure.comparisons(_module(structure, text))) == 1
    assert structure.comparisons(_module(structure, text, "planner/memory/software/vllm.py")) == []


@pytest.mark.parametrize(
    "text",
    [
        "Engine = Literal['hf', 'vllm']",
        "profile: Engine = 'hf'",
        "draft.move('profile', 'hf')",
        "print('vllm')",
        "if profile == other: pass",
        "SOURCES = ('vllm', 'a table of speeds')",
    ],
)
def test_what_only_names_a_program_is_no_comparison(structure, text):
    assert structure.comparisons(_module(structure, text)) == []


def test_a_reader_of_other_programs_files_may_name_their_keys(structure):
    path = "planner/workload/recipes/trainer.py"
    assert structure.comparisons(_module(structure, "if 'deepspeed' in fields: pass", path)) == []
    assert len(structure.comparisons(_module(structure, "if draft.profile == 'liger': pass", path))) == 1


def test_a_cycle_is_found_however_far_around(structure):
    texts = {"a": "from planner import b", "b": "def f():\n    import planner.c", "c": "from planner.a import x"}
    modules = [_module(structure, text, f"planner/{name}.py") for name, text in texts.items()]
    assert structure.cycles(modules) == [["planner.a", "planner.b", "planner.c"]]
    typed = _module(structure, "if TYPE_CHECKING:\n    from planner.a import x", "planner/c.py")
    assert structure.cycles([*modules[:2], typed]) == []


def _module(structure, text, path="planner/plan/made_up.py"):
    return structure.Module(path.removesuffix(".py").replace("/", "."), path, text, ast.parse(text))
