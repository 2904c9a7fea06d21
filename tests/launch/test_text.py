import shlex

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.launch.settings import ConfigFile, Job, RawWord, Setting
from planner.launch.text import Commented, command_line, config_text, job_words, script_lines, yaml_text

NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20)


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_a_shell_reads_the_words_that_were_written(words):
    assert shlex.split(command_line(words)) == words


def test_a_word_that_the_shell_expands_is_not_quoted():
    assert command_line(("echo", RawWord('"$HOME"'), "$HOME")) == "echo \"$HOME\" '$HOME'"


def test_the_script_explains_each_option_and_variable():
    job = Job(("run", "a b"), "run", arguments=(Setting("-n", 2, "count"),), environment=(Setting("X", "it's", "x"),))
    lines = list(script_lines(job, ("srun",)))
    assert lines[0] == "export X='it'\"'\"'s'  # x"
    assert lines[1:] == ["arguments=(", "  -n 2  # count", ")", "srun run 'a b' \"${arguments[@]}\""]
    assert list(script_lines(Job(("run",), "", before=("first",), keep_running="wait"))) == ["first", "run", "wait"]
    assert job_words(job) == ("run", "a b", "-n", "2")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | NAMES,
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(NAMES, inner, min_size=1, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3))
def test_yaml_gives_the_document_again(document):
    assert yaml.safe_load(yaml_text(document)) == document


def test_comments_stand_on_the_line_of_their_value():
    text = yaml_text(
        {"a": Commented(1, "one"), "b": [Commented("x", "first"), {"c": Commented("no", "word")}], "e": []}
    )
    assert text == "a: 1  # one\nb:\n  - x  # first\n  - c: 'no'  # word\ne: []\n"
    assert yaml.safe_load(yaml_text({"run": "a\nb\n"})) == {"run": "a\nb\n"}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("yaml", "FROM: ./x  # file\na:\n  b: true  # why\nc:  # list\n  - x\n"),
        ("json", '{\n  "FROM": "./x",\n  "a": {\n    "b": true\n  },\n  "c": [\n    "x"\n  ]\n}\n'),
        ("modelfile", "# file\nFROM ./x\n# why\nPARAMETER a.b True\n# list\nPARAMETER c ('x',)\n"),
    ],
)
def test_a_configuration_is_written_in_the_form_of_its_program(form, text):
    settings = (Setting("FROM", "./x", "file"), Setting("a.b", True, "why"), Setting("c", ("x",), "list"))
    assert config_text(ConfigFile("f", form, settings)) == text
