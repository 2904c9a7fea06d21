"""Reading of launch files: commands of servers, scripts that start them, and files of Docker, Kubernetes and others."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ConfigDict, TypeAdapter, ValidationError

from planner.errors import RecipeError, SpecError
from planner.hardware.mig import MIG_INFIX
from planner.launch.places import PLACES
from planner.launch.settings import Launcher, LaunchPlace, PlacedJob
from planner.launch.software import LAUNCHERS
from planner.parsing import flattened
from planner.plan.recipes import YAML_ENDINGS, is_recipe_file, linked_config, load_recipe, parsed_file
from planner.storage import UnreadableFileError, decode_text, read_regular
from planner.units import MIB
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.detect import read_recipe
from planner.workload.recipes.recipe import Recipe
from planner.workload.recipes.servers import parse_options
from planner.workload.recipes.torchtitan import torchtitan_options

SCRIPT_ENDINGS: Final = (".sh", ".bash", ".sbatch", ".slurm")
_MODELFILE: Final = "Modelfile"
_QUOTES: Final = frozenset("\"'")
_ASSIGNMENT: Final = re.compile(r"(?:export )?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ARRAY: Final = re.compile(r"\$\{(\w+)\[@\]\}")
_SLURM_CARDS: Final = re.compile(r"^#SBATCH\s+--(?:gres=gpu|gpus-per-node)[:=](?:[\w.-]+:)?(\d+)\s*$", re.MULTILINE)
_SLURM_NODES: Final = re.compile(r"^#SBATCH\s+(?:--nodes[= ]|-N\s*)(\d+)\s*$", re.MULTILINE)
_COUNTS: Final = ("--num_processes", "--num_gpus", "--nproc_per_node")
_COUNT_VARIABLE: Final = "NPROC_PER_NODE"
_ENDS: Final = frozenset((";", "&&", "||", "|", "&"))
_LONGEST_HINT: Final = 2_000
_HINT: Final = (
    "Supported are vllm serve, sglang serve, trtllm-serve, llama-server, ollama create, accelerate, torchtitan and the "
    "programs' own files."
)


class _Program(NamedTuple):
    """A command that is read: its first words, the option that names its file, and how its other options are read.

    `launcher` is the program whose own options are read.
    """

    words: tuple[str, ...]
    kind: str | None = None
    file_option: str = ""
    parse: Callable[[tuple[str, ...]], dict[str, object]] = parse_options
    launcher: Launcher | None = None


_PROGRAMS: Final = (
    *(
        _Program(words, None, launcher.reader.config_option, launcher=launcher)
        for launcher in LAUNCHERS.values()
        if launcher.reader is not None
        for words in launcher.reader.commands
    ),
    _Program(("ollama", "create"), "ollama", "-f"),
    _Program(("torchtitan.train",), "torchtitan", parse=torchtitan_options),
    _Program(("accelerate", "launch"), None, "--config_file"),
    *(_Program(("trl", command), None, "--config") for command in ("sft", "dpo", "grpo")),
    _Program(("axolotl", "train"), None, ""),
    _Program(("llamafactory-cli", "train"), None, ""),
    _Program(("deepspeed",), None, "--deepspeed_config"),
)


_PLACED_JOB: Final = TypeAdapter(PlacedJob, config=ConfigDict(coerce_numbers_to_str=True))


def is_launch_file(path: Path) -> bool:
    """Return whether `path` is a script, a Modelfile or another program's training file, by its name and its keys."""
    return path.suffix.lower() in SCRIPT_ENDINGS or path.name == _MODELFILE or is_recipe_file(path)


def load_launch_file(path: Path) -> Recipe:
    """Read a launch file: a script, a Modelfile, a file of a place such as Kubernetes, or a training file.

    Raises:
        RecipeError: If the file cannot be read, or starts none of the supported programs.
    """
    if path.suffix.lower() in SCRIPT_ENDINGS:
        text = _text(path)
        return _with_slurm_cards(_recipe_in_script(text, {}, path), text)
    if path.name == _MODELFILE:
        keys = _modelfile_keys(_text(path))
        if "FROM" not in keys:
            raise RecipeError(path, "names no model", "A Modelfile begins with FROM and a model or its file.")
        return read_recipe(keys, str(path), "ollama")
    if path.suffix.lower() in YAML_ENDINGS:
        document = parsed_file(path)
        for place in PLACES.values():
            placed = _placed_job(place, document, path)
            if placed is not None:
                return _recipe_in_place(placed, place, path)
    return load_recipe(path)


def _placed_job(place: LaunchPlace, document: Mapping[str, object], path: Path) -> PlacedJob | None:
    try:
        found = place.read(document)
        return None if found is None else _PLACED_JOB.validate_python(found)
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        raise RecipeError(path, f"is not a file of {place.title} with one program: {problem.message}", _HINT) from error
    except (KeyError, IndexError, StopIteration, TypeError, ValueError, AttributeError) as error:
        raise RecipeError(path, f"is not a file of {place.title} with one program ({error})", _HINT) from error


def _recipe_in_place(placed: PlacedJob, place: LaunchPlace, path: Path) -> Recipe:
    if placed.script:
        recipe = _recipe_in_script(placed.script, placed.environment, path)
    else:
        recipe = _recipe_in_words(placed.words, placed.environment, path)
    card = next((ours for ours, theirs in place.card_names.items() if theirs == placed.card_name), None)
    if card is not None and placed.profile is not None:
        card = f"{card}{MIG_INFIX}{placed.profile}"
    return recipe.evolve(cards=placed.cards or recipe.cards, gpu=card)


def _with_slurm_cards(recipe: Recipe, text: str) -> Recipe:
    """Return `recipe` with the number of GPUs in the `#SBATCH` lines of its script, if there are any."""
    each, nodes = _SLURM_CARDS.search(text), _SLURM_NODES.search(text)
    return recipe if each is None else recipe.evolve(cards=int(each[1]) * (int(nodes[1]) if nodes else 1))


def _recipe_in_script(text: str, environment: Mapping[str, str], path: Path) -> Recipe:
    variables = dict(environment)
    commands = []
    for words in _commands(text, variables, path):
        if _program_in(words) is not None:
            return _recipe_in_words(words, variables, path)
        commands.append(words)
    raise RecipeError(path, "starts none of the supported programs", f"{_HINT}{_trace_hint(commands)}")


def _trace_hint(commands: Iterable[tuple[str, ...]]) -> str:
    """Return how the first Python script that a command starts is traced, or "" if none does."""
    from planner.trace.launcher import parse_command  # only this error needs it

    for words in commands:
        try:
            parse_command(words)
        except SpecError:
            continue
        command = shlex.join(words)
        if command.isprintable() and len(command) <= _LONGEST_HINT:
            return f" A trace runs a Python script as it is: gpu-planner trace -- {command}"
    return ""


def _recipe_in_words(words: tuple[str, ...], environment: Mapping[str, str], path: Path) -> Recipe:
    found = _program_in(words)
    if found is None:
        raise RecipeError(path, "starts none of the supported programs", _HINT)
    program, rest = found
    options = program.parse(rest)
    # What starts the program may set its variables: `env NAME=VALUE program`.
    assigned = (_ASSIGNMENT.fullmatch(word) for word in words[: len(words) - len(rest)])
    environment = {**environment, **{match[1]: match[2] for match in assigned if match is not None}}
    if program.launcher is not None:
        return _recipe_of_command(program.launcher, options, path)
    if program.kind is not None and not program.file_option:
        return read_recipe(options, str(path), program.kind)
    name = str(options.get(program.file_option, ""))
    text = linked_config(name, path)
    if text is None:
        raise RecipeError(path, f"names the file {name[:80]!r}, which is not in its folder", "Put it there.")
    if program.kind is not None:
        served = {key: value for key, value in environment.items() if key.startswith(("OLLAMA_", "LLAMA_ARG_"))}
        return read_recipe({**_modelfile_keys(str(text)), **served}, str(path), program.kind)
    assert isinstance(text, Mapping)
    recipe = read_recipe(text, name)
    started = next(
        (str(count) for count in (*map(options.get, _COUNTS), environment.get(_COUNT_VARIABLE)) if count), ""
    )
    return recipe.evolve(cards=int(started)) if started.isdecimal() else recipe


def _recipe_of_command(launcher: Launcher, options: Mapping[str, object], path: Path) -> Recipe:
    """Return the recipe of a program's own options, with the keys of the file that one of them names."""
    command = launcher.reader
    assert command is not None
    named = {command.aliases.get(key, key): value for key, value in options.items()}
    name = named.pop(command.config_option, None) if command.config_option else None
    if name is not None:
        config = linked_config(str(name), path)
        if not isinstance(config, Mapping):
            raise RecipeError(path, f"names the file {str(name)[:80]!r}, which is not in its folder", "Put it there.")
        named |= {command.aliases.get(key, key): value for key, value in flattened(config)}
    reader = ConfigReader(named, str(path))
    command.read(reader)
    return reader.finish(launcher.profiles[0])


def _program_in(words: tuple[str, ...]) -> tuple[_Program, tuple[str, ...]] | None:
    """Return the program that the words start, behind whatever starts it, and the words after its name."""
    names = tuple(Path(word).name for word in words)
    for place in range(len(names)):
        for program in _PROGRAMS:
            if names[place : place + len(program.words)] == program.words:
                return program, words[place + len(program.words) :]
    return None


def _commands(text: str, variables: dict[str, str], path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the commands of a script as words, with its arrays filled in; assignments go to `variables`."""
    arrays: dict[str, list[str]] = {}
    array: list[str] | None = None
    for words in _split_lines(text, path):
        assigned = _ASSIGNMENT.fullmatch(" ".join(words))
        if array is not None:
            array += [word for word in words if word != ")"]
            array = None if ")" in words else array
        elif len(words) == 1 and words[0].endswith("=("):
            array = arrays.setdefault(words[0][:-2], [])
        elif assigned is not None and len(words) <= 2:
            variables[assigned[1]] = assigned[2]
        else:
            command: list[str] = []
            for word in (*words, ";"):
                expanded = _ARRAY.fullmatch(word)
                if word in _ENDS:
                    yield tuple(command)
                    command = []
                else:
                    command += arrays.get(expanded[1], []) if expanded else [word]


def _split_lines(text: str, path: Path) -> Iterator[list[str]]:
    """Yield the words of each line; a quotation goes on in the next line."""
    pending = ""
    for line in text.replace("\\\n", " ").splitlines():
        if pending and not _QUOTES.intersection(line):
            pending = f"{pending}\n{line}"  # nothing here ends the quotation
            continue
        pending = f"{pending}\n{line}" if pending else line
        try:
            words = shlex.split(pending, comments=True)
        except ValueError:
            continue
        pending = ""
        if words:
            yield words
    if pending:
        raise RecipeError(path, "has a quotation mark without its pair", "Close it.")


def _modelfile_keys(text: str) -> dict[str, Any]:
    """Return the instructions and parameters of a Modelfile; `# model: NAME` is no part of it."""
    keys: dict[str, Any] = {}
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word.upper() == "FROM":
            keys["FROM"] = rest.strip()
        elif word.upper() == "PARAMETER":
            name, _, value = rest.strip().partition(" ")
            keys[name] = value.strip()
    return keys


def _text(path: Path) -> str:
    try:
        return decode_text(read_regular(path, "launch file", MIB))
    except UnreadableFileError as error:
        raise RecipeError(path, error.reason, error.hint) from error
