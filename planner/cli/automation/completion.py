"""`gpu-planner completion`: completion of commands, options and their values for bash, zsh and fish."""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from planner import __version__
from planner.cli.automation.declarations import DeclaredCommand, DeclaredOption, Source, declared_commands
from planner.cli.parser import Parser
from planner.cli.user_catalog import user_catalog
from planner.plan.catalog import Catalog

_DESCRIPTION: Final = """\
Print the completion of all commands, their options and the values of these, with the models, GPUs and systems of the
catalog and your own GPUs, for a shell."""
_EPILOG: Final = """\
examples:
  gpu-planner completion bash > ~/.local/share/bash-completion/completions/gpu-planner
  gpu-planner completion zsh > ~/.zfunc/_gpu-planner        with fpath+=(~/.zfunc) before compinit in ~/.zshrc
  gpu-planner completion fish > ~/.config/fish/completions/gpu-planner.fish

It takes effect in a new shell. Print it again after an update or after adding GPUs of your own.

exit codes: 0 done, 2 invalid input"""


def run(argv: list[str]) -> int:
    """Run `gpu-planner completion` and return the exit code."""
    arguments = make_parser().parse_args(argv)
    script = SCRIPTS[arguments.shell](declared_commands(), catalog_words(user_catalog()))
    print(json.dumps({"shell": arguments.shell, "script": script}) if arguments.json else script, end="")
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner completion", _DESCRIPTION, _EPILOG)
    choice = parser.add_argument_group("the shell")
    choice.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    parser.add_general_options()
    return parser


def catalog_words(catalog: Catalog) -> dict[Source, tuple[str, ...]]:
    """Return the ids of cards and systems, and the names of models, that complete a value."""
    cards = (*(gpu.id for gpu in catalog.hardware.gpus), *(system.id for system in catalog.hardware.systems))
    return {"cards": cards, "models": tuple(record.id for record in catalog.models.records)}


def bash_script(commands: Iterable[DeclaredCommand], words: Mapping[Source, tuple[str, ...]]) -> str:
    """Return the completion for bash 4 and later, which needs no other package."""
    names = " ".join(command.name for command in commands)
    return "\n".join(
        (
            f"# Completion of gpu-planner {__version__} for bash.",
            *(f"_gpu_planner_{source}={shlex.quote(' '.join(found))}" for source, found in words.items()),
            "",
            "_gpu_planner_declared() {",
            '    case "$1" in',
            *(line for command in commands for line in _bash_command(command)),
            "    esac",
            "}",
            _BASH_FUNCTION.replace("COMMANDS", names),
        )
    )


_BASH_FUNCTION: Final = """
_gpu_planner() {
    local word="${COMP_WORDS[COMP_CWORD]}" last=$COMP_CWORD place=1
    local option= options= takes= values= source= given=0 each
    COMPREPLY=()
    # bash splits --gpu=rtx at the equals sign.
    if [[ $word == "=" ]]; then word=; elif [[ ${COMP_WORDS[COMP_CWORD-1]} == "=" ]]; then last=$((COMP_CWORD - 1)); fi
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "COMMANDS --help --version" -- "$word") $(compgen -f -- "$word"))
        return
    fi
    for ((place = 2; place < last; place++)); do
        each="${COMP_WORDS[place]}"
        if [[ $each == -* ]]; then
            option=$each given=0
        elif [[ $each != "=" ]]; then
            given=$((given + 1))
        fi
    done
    _gpu_planner_declared "${COMP_WORDS[1]}" "$option"
    if [[ $takes == 0 || ( $takes == 1 && $given -gt 0 ) || -z $option ]]; then
        _gpu_planner_declared "${COMP_WORDS[1]}" ""
    fi
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
        return
    fi
    case "$source" in
        cards) values="$values $_gpu_planner_cards" ;;
        models) values="$values $_gpu_planner_models" ;;
    esac
    COMPREPLY=($(compgen -W "$values" -- "$word"))
    local IFS=$'\\n'
    case "$source" in
        models | files) COMPREPLY+=($(compgen -f -- "$word")) ;;
        folders) COMPREPLY+=($(compgen -d -- "$word")) ;;
    esac
}

complete -o filenames -F _gpu_planner gpu-planner
"""


def _bash_command(command: DeclaredCommand) -> list[str]:
    """Return the case of a command: its options, and for each option what it takes."""
    flags = " ".join(name for option in command.options for name in option.names)
    lines = [
        f"        {command.name})",
        f"            options={shlex.quote(flags)}",
        '            case "$2" in',
    ]
    lines += [f"                {'|'.join(option.names)}) {_bash_values(option)} ;;" for option in command.options]
    first = command.arguments[0] if command.arguments else None
    lines.append(f"                '') {'takes=2 values= source=' if first is None else _bash_values(first)} ;;")
    return [*lines, "            esac", "            ;;"]


def _bash_values(option: DeclaredOption) -> str:
    return f"takes={option.takes} values={shlex.quote(' '.join(option.words))} source={option.source or ''}"


def zsh_script(commands: Iterable[DeclaredCommand], words: Mapping[Source, tuple[str, ...]]) -> str:
    """Return the completion for zsh, a function that compinit finds by its first line."""
    lines = [
        "#compdef gpu-planner",
        f"# Completion of gpu-planner {__version__} for zsh.",
        *(f"_gpu_planner_{source}_list=({' '.join(map(shlex.quote, found))})" for source, found in words.items()),
        "_gpu_planner_cards() { compadd -a _gpu_planner_cards_list }",
        "_gpu_planner_models() { compadd -a _gpu_planner_models_list; _files }",
    ]
    for command in commands:
        specs = [spec for option in command.options for spec in _zsh_option(option)]
        specs += [f"'*:{_zsh_text(one.placeholder)}:{_zsh_action(one)}'" for one in command.arguments[:1]]
        lines += [f"_gpu_planner_{command.name}() {{", *_continued("    _arguments -S", specs), "}"]
    described = [shlex.quote(f"{command.name}:{command.about.replace(':', ' ')}") for command in commands]
    lines += [
        "_gpu-planner() {",
        "    local -a commands",
        *_continued("    commands=(", described),
        "    )",
        "    if ((CURRENT == 2)); then",
        "        _describe command commands; _files; return",
        "    fi",
        "    local command=$words[2]",
        "    shift words; ((CURRENT--))",
        "    (($+functions[_gpu_planner_$command])) && _gpu_planner_$command",
        "}",
        'if [[ $funcstack[1] == _gpu-planner ]]; then _gpu-planner "$@"; else compdef _gpu-planner gpu-planner; fi',
    ]
    return "\n".join(lines) + "\n"


def _continued(first: str, parts: list[str]) -> list[str]:
    """Return a shell command with an argument on each line."""
    lines = [first, *(f"        {part}" for part in parts)]
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _zsh_option(option: DeclaredOption) -> list[str]:
    text = _zsh_text(option.help)
    many = "*" if option.is_repeatable or option.takes > 1 else ""
    value = f":{_zsh_text(option.placeholder)}:{_zsh_action(option)}" if option.takes else ""
    specs = []
    for name in option.names:
        sign = "=" if option.takes == 1 and name.startswith("--") else ""
        specs.append(f"'{many}{name}{sign}[{text}]{value}'")
    return specs


def _zsh_action(option: DeclaredOption) -> str:
    if option.words:
        return f"({' '.join(_zsh_text(word) for word in option.words)})"
    own = f"_gpu_planner_{option.source}" if option.source in ("cards", "models") else " "
    return {"files": "_files", "folders": "_files -/"}.get(option.source or "", own)


def _zsh_text(text: str) -> str:
    """Return a text for a specification in single quotes, in which brackets and colons have a meaning."""
    return re.sub(r"([\[\]:()\\])", r"\\\1", text).replace("'", "'\\''")


def fish_script(commands: Iterable[DeclaredCommand], words: Mapping[Source, tuple[str, ...]]) -> str:
    """Return the completion for fish 3 and later."""
    lines = [
        f"# Completion of gpu-planner {__version__} for fish.",
        *(f"set -g __gpu_planner_{source} {' '.join(map(_fish_quoted, found))}" for source, found in words.items()),
        "function __gpu_planner_uses",
        "    set -l words (commandline -opc)",
        "    test (count $words) -gt 1; and test $words[2] = $argv[1]",
        "end",
        "function __gpu_planner_begins",
        "    test (count (commandline -opc)) -eq 1",
        "end",
        "complete -c gpu-planner -n __gpu_planner_begins -l help -d 'show the help'",
        "complete -c gpu-planner -n __gpu_planner_begins -l version -d 'show the version'",
    ]
    for command in commands:
        about = _fish_quoted(command.about)
        lines.append(f"complete -c gpu-planner -n __gpu_planner_begins -a {command.name} -d {about}")
        uses = f"complete -c gpu-planner -n '__gpu_planner_uses {command.name}'"
        for option in command.options:
            names = " ".join(_fish_name(name) for name in option.names)
            lines.append(f"{uses} {names} -d {_fish_quoted(option.help)}{_fish_values(option)}")
        lines += [f"{uses} {_fish_values(one, is_argument=True).strip()}" for one in command.arguments[:1]]
    return "\n".join(lines) + "\n"


def _fish_name(name: str) -> str:
    return f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"


def _fish_values(option: DeclaredOption, *, is_argument: bool = False) -> str:
    if not option.takes:
        return ""
    required = "" if is_argument else " -r"
    if option.words:
        return f"{required} -f -a {_fish_quoted(' '.join(option.words))}"
    if option.source in ("cards", "models"):
        files = " -f" if option.source == "cards" else " -F"
        return f"{required}{files} -a '$__gpu_planner_{option.source}'"
    if option.source == "folders":
        return f"{required} -f -a '(__fish_complete_directories)'"
    return f"{required}{' -F' if option.source == 'files' else ' -f'}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: Final[Mapping[str, Callable[[Iterable[DeclaredCommand], Mapping[Source, tuple[str, ...]]], str]]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}
"""The writer of each shell's completion."""
