"""The command `gpu-planner`: which command is meant, and how each run ends.

Exit codes: 0 done, 1 does not fit (only with `--check`), 2 wrong input, 3 something the machine lacks, 70 a bug,
130 interrupted, 141 the reader of the output went away.
"""

import atexit
import codecs
import errno
import gc
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from planner.errors import PlannerError, TraceError

WRONG_INPUT: Final = 2
ENVIRONMENT: Final = 3
BUG: Final = 70
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
_OUTPUT_FAILED: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What writing to a file or terminal fails with that was opened by somebody else, and so has no name here."""


class Command(NamedTuple):
    """A command: its module, which offers `run(arguments) -> int` and is imported only when asked for, and its help."""

    module: str
    about: str


COMMANDS: Final = {
    "cost": Command("planner.cli.cost", "how long a job takes, and whether to rent or to buy"),
    "fit": Command("planner.cli.fit", "does a model fit a card, and what takes the memory"),
    "gpus": Command("planner.cli.gpus.command", "search, compare and show accelerators"),
    "models": Command("planner.cli.models", "search and show models"),
    "monitor": Command("planner.cli.monitor.command", "what the cards of this machine do right now"),
    "prices": Command("planner.cli.prices", "what renting costs, how old that is, and fresh prices on request"),
    "recommend": Command("planner.cli.recommend", "which hardware to take for a job, within a budget and a deadline"),
    "trace": Command("planner.cli.trace.command", "the exact memory peak of any PyTorch module, without a GPU"),
}
_HELP: Final = """usage: gpu-planner [PLAN.json]         open the window
       gpu-planner COMMAND [options]   answer in the terminal

Which GPU a model needs, and whether it fits the one you have.

commands:
{commands}

options:
  -h, --help  print this and stop
  --version   print the version and stop

examples:
  gpu-planner fit meta-llama/Llama-3.1-8B --gpu "RTX 4090"
  gpu-planner gpus --where 'memory_gib >= 80' --sort price
  gpu-planner models llama
  gpu-planner monitor
  gpu-planner trace net.py:Net --input "x=8x3x224x224:float32" --task training

`gpu-planner COMMAND --help` explains a command with its options, units, defaults and examples."""

_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
_WITHOUT_WINDOW: Final = (
    f"The commands {', '.join([*COMMANDS][:-1])} and {[*COMMANDS][-1]} work without a window; see gpu-planner --help."
)

_STAND_INS: Final = str.maketrans(
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
"""Plain characters for those that a terminal's encoding lacks."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing that goes wrong shows a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _make_printable()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except PlannerError as error:
        code = ENVIRONMENT if error.environment else WRONG_INPUT
        return _fail(error.message, error.hint, code, error.details if isinstance(error, TraceError) else "")
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _OUTPUT_FAILED and error.filename is None:
            _drop_output()
            return _fail(f"the output cannot be written: {error.strerror}", "Write it somewhere else.", ENVIRONMENT)
        import logging

        with _log_file() as log:
            logging.exception("gpu-planner %s", " ".join(arguments))
        return _fail("something went wrong inside GPU Planner; this is a bug", f"Please report it with {log}.", BUG)
    return code


def _drop_output() -> None:
    """Let what is still buffered go nowhere; without this the interpreter complains about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help", "help"):
        print(_HELP.format(commands="\n".join(f"  {name:<9}  {command.about}" for name, command in COMMANDS.items())))
        return 0
    if first == "--version":
        from planner import __version__

        print(f"gpu-planner {__version__}")
        return 0
    if first in COMMANDS:
        with _soon_over():
            return int(importlib.import_module(COMMANDS[first].module).run(arguments[1:]))
    return _open_window(arguments)


@contextmanager
def _soon_over() -> Iterator[None]:
    """Leave out what pays only in a longer run and takes a fifth of this one.

    That is collecting cycles, while it runs and as it ends, and searching every installed distribution for plugins of
    pydantic, which nothing here uses.
    """
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    collecting = gc.isenabled()
    gc.disable()
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _open_window(paths: list[str]) -> int:
    for path in paths:
        if path.startswith("-"):
            raise PlannerError(f"there is no option {path}", "Try: gpu-planner --help")
        if not Path(path).exists():
            commands = ", ".join(COMMANDS)
            raise PlannerError(f"{path!r} is neither a command nor a file", f"The commands are {commands}.")
    if not _has_display():
        return _fail(
            "there is no display to open the window on", f"{_WITHOUT_WINDOW} Over ssh, try ssh -X.", ENVIRONMENT
        )
    try:
        app = importlib.import_module("planner.gui.app")
    except ImportError as error:
        hint = f"{_WITHOUT_WINDOW} On Linux, Qt needs libegl1, libxkbcommon0 and libxcb-cursor0."
        return _fail(f"the window cannot open: {error}", hint, ENVIRONMENT)
    return int(app.main(["gpu-planner", *paths]))


def _has_display() -> bool:
    """Return whether Qt will find a screen; without one it would end the process and say so to nobody."""
    return not sys.platform.startswith("linux") or any(map(os.environ.get, _DISPLAYS))


def _fail(message: str, hint: str, code: int, details: str = "") -> int:
    print(f"error: {message}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    if details:
        print(f"\n{details}", file=sys.stderr)
    return code


@contextmanager
def _log_file() -> Iterator[Path]:
    """Write what is logged within to the file that this gives."""
    import logging

    from planner.paths import state_dir

    log = state_dir() / "gpu-planner.log"
    handler = logging.FileHandler(log, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logging.getLogger().addHandler(handler)
    yield log
    logging.getLogger().removeHandler(handler)
    handler.close()


def _make_printable() -> None:
    """Let streams that cannot write every character (a Windows code page, LANG=C) write a plain one instead."""
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
        if encoding != "utf8" and hasattr(stream, "reconfigure"):
            codecs.register_error("planner-plain", in_plain_characters)
            stream.reconfigure(errors="planner-plain")


def in_plain_characters(error: UnicodeError) -> tuple[str, int]:
    """Return plain stand-ins for what cannot be encoded, for `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_STAND_INS)
    return "".join(character if character.isascii() else "?" for character in text), error.end
