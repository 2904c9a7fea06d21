"""Entry point of `gpu-planner`: dispatch of the commands, error messages and exit codes.

Exit codes: 0 done, 1 does not fit (only with `--check`), 2 invalid input, 3 the environment lacks something, 70 a bug,
130 interrupted, 141 the output pipe was closed. Whatever else fails never ends in 1, which is Python's own code of an
unhandled error.
"""

import codecs
import errno
import gc
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from planner import __version__
from planner.cli.commands import COMMANDS
from planner.errors import PlannerError, TraceError
from planner.validation import close_names

DOES_NOT_FIT: Final = 1
WRONG_INPUT: Final = 2
ENVIRONMENT: Final = 3
BUG: Final = 70
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
_OUTPUT_ERROR_NUMBERS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing to standard output, a file or terminal that this program did not open by name."""


_WIDEST: Final = max(map(len, COMMANDS))
_HELP: Final = """usage: gpu-planner [FILE]              open the window, with a plan, a model or a recording
       gpu-planner COMMAND [options]   answer in the terminal

Which GPU a model needs, and whether it fits the one you have.

commands:
{commands}

options:
  -h, --help  show this help and exit
  --version   show the version and exit

examples:
  gpu-planner fit meta-llama/Llama-3.1-8B --gpu "RTX 4090"
  gpu-planner gpus --where 'memory_gib >= 80' --sort price
  gpu-planner models llama
  gpu-planner monitor
  gpu-planner trace net.py:Net --input "x=8x3x224x224:float32" --task training

`gpu-planner COMMAND --help` shows a command's main options and examples, `--help-all` every option with its default.

exit codes: 0 done, 1 a negative verdict (only with --check), 2 invalid input, 3 this machine lacks something, such as a
driver, PyTorch or a network"""

_OTHER_COMMANDS: Final = {
    "version": "--version",
    **dict.fromkeys(("card", "cards", "hardware", "list"), "gpus"),
    **dict.fromkeys(("compare", "vs"), "gpus --compare GPU GPU"),
    **dict.fromkeys(("memory", "vram", "estimate", "check"), "fit"),
    **dict.fromkeys(("rent", "buy", "time"), "cost"),
    **dict.fromkeys(("top", "smi", "watch"), "monitor"),
    **dict.fromkeys(("cluster", "prometheus", "dcgm"), "fleet http://prometheus:9090"),
}
"""Commands by words that people try first."""

_COMMANDS_OF_MODELS: Final = ("fit", "cost", "recommend")

_WINDOW_PACKAGES: Final = ("PySide6", "pyqtgraph")
_DISPLAY_VARIABLES: Final = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
_WITHOUT_WINDOW: Final = (
    f"The commands {', '.join([*COMMANDS][:-1])} and {[*COMMANDS][-1]} work without a window; see gpu-planner --help."
)

_ASCII_REPLACEMENTS: Final = str.maketrans(
    {
        "\u2009": " ",
        "\u2013": "-",
        "\u2212": "-",
        "·": "*",
        "×": "x",
        "…": "~",
        "≥": ">=",
        "≤": "<=",
        "²": "^2",
        "³": "^3",
        "✓": "+",
        "✗": "-",
    }
)
"""ASCII replacements for characters that a terminal's encoding lacks."""


_interruptions: Final[list[int]] = []


def interrupt(number: int, _frame: object) -> None:
    """Raise KeyboardInterrupt, and note it, since a library may turn it into an error of its own, as pydantic does."""
    _interruptions.append(number)
    raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; errors are printed without a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _interruptions.clear()
    try:
        _open_closed_streams()
        _replace_unprintable_characters()
        return _run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(arguments: list[str]) -> int:
    """Run one command and return the exit code; errors are printed, only an interruption is raised."""
    try:
        return _dispatch_and_flush(arguments)
    except PlannerError as error:
        code = ENVIRONMENT if error.environment else WRONG_INPUT
        return _print_error(error.message, error.hint, code, error.details if isinstance(error, TraceError) else "")
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except OSError as error:
        return _print_system_error(error)
    except MemoryError:
        return _print_error("there is not enough memory", "End other programs, or ask for less.", ENVIRONMENT)
    except Exception:
        if _interruptions:
            return INTERRUPTED
        import logging

        with _logging_to_file() as log:
            logging.exception("gpu-planner %s", " ".join(arguments))
        return _print_error("internal error; this is a bug in GPU Planner", f"Please report it with {log}.", BUG)


def _dispatch_and_flush(arguments: list[str]) -> int:
    """Run the command and flush its output, also after a help text, with which argparse exits."""
    try:
        code = _dispatch(arguments)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    sys.stdout.flush()
    return code


def _print_system_error(error: OSError) -> int:
    """Print what the operating system refused, and return the exit code."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        code = ENVIRONMENT if error.errno in _OUTPUT_ERROR_NUMBERS else WRONG_INPUT
        message = f"{os.fsdecode(error.filename)}: {reason}"
        return _print_error(message, "Check the path, its permissions and its disk.", code)
    if error.errno in _OUTPUT_ERROR_NUMBERS:
        _discard_output()
        return _print_error(f"cannot write the output: {reason}", "Write to another file or disk.", ENVIRONMENT)
    hint = "Check that the working folder exists, and that memory and open files are left."
    return _print_error(f"the system refused what was needed: {reason}", hint, ENVIRONMENT)


def _discard_output(stream: TextIO | None = None) -> None:
    """Discard what a stream, by default stdout, still buffers; otherwise the interpreter would fail at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help", "help"):
        if arguments[1:2] and arguments[1] in COMMANDS:
            return _dispatch([arguments[1], "--help"])
        lines = (f"  {name:<{_WIDEST}}  {command.about}" for name, command in COMMANDS.items())
        print(_HELP.format(commands="\n".join(lines)))
        return 0
    if first == "--version":
        print(f"gpu-planner {__version__}")
        return 0
    if first in COMMANDS:
        return int(importlib.import_module(COMMANDS[first].module).run(arguments[1:]))
    return _open_window(arguments)


def _open_window(paths: list[str]) -> int:
    for path in paths:
        if path.startswith("-"):
            raise PlannerError(f"unknown option {path}", "Try: gpu-planner --help")
        if not Path(path).exists():
            raise PlannerError(f"{path!r} is neither a command nor a file", _command_hint(paths))
    if not _has_display():
        return _print_error(
            "cannot open the window: there is no display", f"{_WITHOUT_WINDOW} Over ssh, try ssh -X.", ENVIRONMENT
        )
    # A command has no window.
    from planner.cli.window_libraries import missing_libraries, packages_hint
    from planner.installation import extra_command

    missing = missing_libraries() if sys.platform.startswith("linux") else ()
    if missing:
        what = f"{missing[0]} is" if len(missing) == 1 else f"{len(missing)} libraries are"
        message = f"cannot open the window: {what} missing on this system"
        return _print_error(message, f"{packages_hint(missing)} {_WITHOUT_WINDOW}", ENVIRONMENT)
    gc.enable()  # which commands run without
    try:
        app = importlib.import_module("planner.gui.app")
    except ImportError as error:
        lacks_package = (error.name or "").partition(".")[0] in _WINDOW_PACKAGES
        hint = f"Run: {extra_command('app')}. " if lacks_package else ""
        return _print_error(f"cannot open the window: {error}", f"{hint}{_WITHOUT_WINDOW}", ENVIRONMENT)
    return int(app.main(["gpu-planner", *paths]))


def _command_hint(words: Sequence[str]) -> str:
    """Return the command that `words` probably mean, or else all of them."""
    from planner.cli.command_guess import suggested_command
    from planner.cli.user_catalog import user_catalog

    first = words[0].lower()
    meant = _OTHER_COMMANDS.get(first) or "".join(close_names(first, COMMANDS, 1))
    command = meant if meant in _COMMANDS_OF_MODELS else "fit"
    if whole := suggested_command(words, user_catalog(), command):
        return f"Did you mean: {whole}"
    return f"Did you mean gpu-planner {meant}?" if meant else f"The commands are {', '.join(COMMANDS)}."


def _has_display() -> bool:
    """Return whether Qt will find a display; without a display, Qt would abort the process."""
    return not sys.platform.startswith("linux") or any(map(os.environ.get, _DISPLAY_VARIABLES))


def _print_error(message: str, hint: str, code: int, details: str = "") -> int:
    """Print an error on stderr, unless it takes no more, and return `code`."""
    try:
        print(f"error: {message}", file=sys.stderr)
        if hint:
            print(f"hint: {hint}", file=sys.stderr)
        if details:
            print(f"\n{details}", file=sys.stderr)
        sys.stderr.flush()
    except OSError:
        _discard_output(sys.stderr)
    return code


@contextmanager
def _logging_to_file() -> Iterator[str]:
    """Log to a file within the context, or to stderr if none can be written; the context variable names the place."""
    import logging

    from planner.paths import state_dir

    log = state_dir() / "gpu-planner.log"
    place = "the lines above"
    handler: logging.Handler = logging.StreamHandler()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(log, encoding="utf-8", errors="backslashreplace")
        place = str(log)
    except (OSError, ValueError):
        pass
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logging.getLogger().addHandler(handler)
    yield place
    logging.getLogger().removeHandler(handler)
    with suppress(OSError):  # a full disk
        handler.close()


def _open_closed_streams() -> None:
    """Replace each output that the shell closed by `>&-`, for which Python has no stream, by one that discards."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # open until the process ends


def _replace_unprintable_characters() -> None:
    """Make output streams with a limited encoding (a Windows code page, LANG=C) write ASCII replacements."""
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
        if encoding != "utf8" and hasattr(stream, "reconfigure"):
            codecs.register_error("planner-plain", replace_with_ascii)
            stream.reconfigure(errors="planner-plain")


def replace_with_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII replacements for characters that cannot be encoded, for `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_ASCII_REPLACEMENTS)
    return "".join(character if character.isascii() else "?" for character in text), error.end
