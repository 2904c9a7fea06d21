"""How runs of the command begin and end."""

import atexit
import codecs
import errno
import gc
import io
import re
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

from planner import __main__ as entry
from planner import __version__
from planner.cli import main as cli
from planner.cli.automation.declarations import declared_commands
from planner.cli.main import replace_with_ascii
from planner.errors import PlannerError
from tests.each_record import for_each


@pytest.fixture
def command(monkeypatch):
    """Return a way to make the command `fit` do something of the test's own."""

    def install(run):
        monkeypatch.setitem(sys.modules, "planner.cli.fit", types.SimpleNamespace(run=run))

    return install


def _raising(error):
    def run(*_arguments, **_options):
        raise error

    return run


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_names_every_command(words, capsys):
    assert cli.main(words) == 0
    printed = capsys.readouterr().out
    assert all(f"\n  {name} " in printed for name in cli.COMMANDS)


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"gpu-planner {__version__}\n"


def test_a_command_gets_the_words_behind_it(command):
    seen = []
    command(lambda words: seen.append(words) or 1)
    assert cli.main(["fit", "a", "--b"]) == 1
    assert seen == [["a", "--b"]]


def test_what_is_wrong_is_said_with_a_hint(command, capsys):
    command(_raising(PlannerError("no such thing", "Try another.")))
    assert cli.main(["fit"]) == 2
    assert capsys.readouterr().err == "error: no such thing\nhint: Try another.\n"


def test_without_a_hint_there_is_no_empty_one(command, capsys):
    command(_raising(PlannerError("no such thing")))
    assert cli.main(["fit"]) == 2
    assert capsys.readouterr().err == "error: no such thing\n"


@pytest.fixture
def own_process():
    """Let a test call the entry point of a process, which leaves garbage collection off, in this one."""
    yield
    atexit.unregister(gc.freeze)
    gc.enable()


@pytest.mark.usefixtures("own_process")
def test_an_interruption_is_quiet_while_modules_are_imported(command, monkeypatch):
    handlers = []

    class Imported(types.ModuleType):
        interrupt = staticmethod(cli.interrupt)

        @property
        def main(self):
            handlers.append(signal.getsignal(signal.SIGINT))
            return cli.main

    monkeypatch.setitem(sys.modules, "planner.cli.main", Imported("planner.cli.main"))
    command(lambda _arguments: handlers.append(signal.getsignal(signal.SIGINT)) or 0)
    try:
        assert entry.main(["fit"]) == 0
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert handlers == [signal.SIG_DFL, cli.interrupt]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_output_is_no_error(closed):
    program = f"{sys.executable} -m planner gpus 4090 {closed}"
    assert subprocess.run(program, shell=True, stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_an_interruption_is_quiet(command, capsys):
    command(_raising(KeyboardInterrupt()))
    assert cli.main(["fit"]) == 130
    assert capsys.readouterr().err == ""


def test_an_interruption_while_an_error_is_printed_is_quiet(command, capsys, monkeypatch):
    command(_raising(PlannerError("no such thing")))
    monkeypatch.setattr("builtins.print", _raising(KeyboardInterrupt()))
    assert cli.main(["fit"]) == 130
    assert capsys.readouterr().err == ""


def test_an_interruption_that_a_library_turns_into_an_error_is_quiet_too(command, capsys):
    def run(_arguments):
        with pytest.raises(KeyboardInterrupt):
            cli.interrupt(signal.SIGINT, None)
        raise ZeroDivisionError("by nothing")

    command(run)
    assert cli.main(["fit"]) == 130
    assert capsys.readouterr().err == ""


def test_a_bug_is_said_to_be_one_and_logged(command, capsys, own_state_dir):
    command(_raising(ZeroDivisionError("by nothing")))
    assert cli.main(["fit"]) == 70
    error = capsys.readouterr().err
    assert "this is a bug" in error
    assert "Traceback" not in error
    log = (own_state_dir / "gpu-planner.log").read_text()
    assert "Traceback" in log
    assert "by nothing" in log


def test_a_bug_is_printed_where_no_log_can_be_written(command, capsys, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPU_PLANNER_HOME", str(tmp_path / "file"))
    command(_raising(ZeroDivisionError("by nothing")))
    assert cli.main(["fit"]) == 70
    error = capsys.readouterr().err
    assert "by nothing" in error
    assert error.endswith("hint: Please report it with the lines above.\n")


def test_a_path_that_the_system_refuses_is_wrong_input(command, capsys):
    command(_raising(OSError(errno.ENAMETOOLONG, "File name too long", "long.json")))
    assert cli.main(["fit"]) == 2
    assert capsys.readouterr().err == (
        "error: long.json: File name too long\nhint: Check the path, its permissions and its disk.\n"
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "the system refused what was needed: Too many open files"),
        (TimeoutError("timed out"), "the system refused what was needed: timed out"),
        (MemoryError(), "there is not enough memory"),
    ],
)
def test_what_the_system_lacks_is_no_bug(command, capsys, error, message):
    command(_raising(error))
    assert cli.main(["fit"]) == 3
    assert f"error: {message}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("fit --help >/dev/full", 3),
        ("gpus 4090 >/dev/full", 3),
        ("gpus 4090 >/dev/full 2>&1", 3),
        ("fit nothing 2>/dev/full", 2),
        ("fit '~nobody-of-this-name/model'", 2),
        ("fit gpt2 --gpu 'RTX 4090' --log gone 2>/dev/full", 2),
    ],
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_only_a_verdict_ends_in_one(arguments, code):
    program = f"{sys.executable} -m planner {arguments}"
    done = subprocess.run(program, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("own_process")
def test_an_incomplete_installation_is_said_without_a_traceback(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "planner.cli.main", None)
    handler = signal.getsignal(signal.SIGINT)
    try:
        assert entry.main(["fit"]) == 3
    finally:
        signal.signal(signal.SIGINT, handler)
    assert "error: GPU Planner is not completely installed: " in capsys.readouterr().err


@pytest.mark.parametrize("home", ["file", "file/below", "/proc/nothing", "a" * 5000])
@pytest.mark.parametrize(("card", "code"), [("RTX 4090", 0), ("GTX 1060 6 GB", 1)])
def test_answers_need_no_home(home, card, code, capsys, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPU_PLANNER_HOME", str(tmp_path / home))
    assert cli.main(["fit", "llama-3.1-8b", "--gpu", card, "--check"]) == code
    assert "GiB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("fti", "fit"),
        ("gpu", "gpus"),
        ("price", "prices"),
        ("compare", "gpus --compare GPU GPU"),
        ("version", "--version"),
    ],
)
def test_a_command_that_was_probably_meant_is_named(word, meant, capsys):
    assert cli.main([word]) == 2
    assert capsys.readouterr().err.endswith(f"hint: Did you mean gpu-planner {meant}?\n")


def test_a_name_of_several_words_is_quoted_in_the_hint(capsys):
    assert cli.main(["fit", "llama", "3.1", "8b", "--gpu", "4090"]) == 2
    assert capsys.readouterr().err.endswith(
        'hint: Quote a name of several words: "llama 3.1 8b". '
        "In full: gpu-planner fit meta-llama/Llama-3.1-8B --gpu 4090\n"
    )


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["fit", "train.py"], "A trace runs it as it is: gpu-planner trace train.py"),
        (
            ["fit", "--gpu", "4 x RTX 4090", "--", "torchrun", "train.py", "--lr", "1e-4"],
            "In full: gpu-planner trace --gpu 'RTX 4090' -- torchrun train.py --lr 1e-4",
        ),
        (["torchrun train.py"], "Did you mean: gpu-planner trace -- torchrun train.py"),
    ],
)
def test_a_script_is_traced(words, hint, capsys):
    assert cli.main(words) == 2
    assert capsys.readouterr().err.endswith(f"hint: {hint}\n")


@pytest.mark.parametrize("first", ["help", "--help"])
def test_help_names_the_command_before_or_after(first, capsys):
    assert cli.main([first, "gpus"]) == 0
    assert capsys.readouterr().out.startswith("usage: gpu-planner gpus")


def test_help_of_a_command_ends_well(capsys):
    assert cli.main(["gpus", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: gpu-planner gpus")


@for_each("name", cli.COMMANDS)
def test_the_short_help_names_every_option_and_fits_about_a_screen(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main([name, "--help"]) == 0
    short = capsys.readouterr().out
    names = {option.names[-1] for command in declared_commands() if command.name == name for option in command.options}
    assert names <= set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", short))
    assert short.count("\n") < 80
    if "--help-all" in names:
        assert cli.main([name, "--help-all"]) == 0
        assert len(capsys.readouterr().out) > 1.5 * len(short)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fits"], "'fits' is neither a command nor a file"),
        (["--frob"], "unknown option --frob"),
        (["nowhere.json"], "'nowhere.json' is neither a command nor a file"),
    ],
)
def test_unknown_words_are_named(words, message, capsys):
    assert cli.main(words) == 2
    assert message in capsys.readouterr().err


def test_without_a_command_the_window_opens_with_the_files(monkeypatch, tmp_path):
    opened = []
    window = types.SimpleNamespace(main=lambda paths: opened.append(paths) or 0)
    monkeypatch.setitem(sys.modules, "planner.gui.app", window)
    plan = tmp_path / "plan.json"
    plan.touch()
    assert cli.main([]) == 0
    assert cli.main([str(plan)]) == 0
    assert opened == [["gpu-planner"], ["gpu-planner", str(plan)]]


def test_a_machine_without_qt_is_told_what_still_works(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "planner.gui.app", None)
    assert cli.main([]) == 3
    error = capsys.readouterr().err
    assert "cannot open the window" in error
    assert "work without a window" in error


@pytest.mark.parametrize("package", ["PySide6", "PySide6.QtWidgets", "pyqtgraph"])
def test_an_installation_without_the_window_is_told_how_to_add_it(package, monkeypatch, capsys):
    def fail(_name):
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    monkeypatch.setattr(cli.importlib, "import_module", fail)
    assert cli.main([]) == 3
    error = capsys.readouterr().err
    assert f"No module named {package!r}" in error
    assert "[app]" in error


def test_a_machine_without_a_display_is_told_so(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main([]) == 3
    error = capsys.readouterr().err
    assert "no display" in error
    *commands, last = cli.COMMANDS
    assert f"{', '.join(commands)} and {last} work without a window" in error


def test_a_broken_pipe_has_its_code(command, capfd):
    command(_raising(BrokenPipeError()))
    assert cli.main(["fit"]) == 141
    assert capfd.readouterr().err == ""


def test_an_output_or_a_disk_that_takes_no_more_is_no_bug(command, capfd):
    command(_raising(OSError(errno.ENOSPC, "No space left on device")))
    assert cli.main(["fit"]) == 3
    assert "cannot write the output: No space left on device" in capfd.readouterr().err
    command(_raising(OSError(errno.ENOSPC, "No space left on device", "a-file-of-its-own")))
    assert cli.main(["fit"]) == 3
    assert "error: a-file-of-its-own: No space left on device" in capfd.readouterr().err


def test_a_reader_that_goes_away_is_no_error():
    program = (
        "import sys; from planner.cli.main import main; import types\n"
        "sys.modules['planner.cli.fit'] = types.SimpleNamespace(run=lambda _: print('word ' * 1_000_000) or 0)\n"
        "sys.exit(main(['fit']))"
    )
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.read(10)
    run.stdout.close()
    assert run.stderr.read() == b""
    run.stderr.close()
    assert run.wait() == 141


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("ascii", b"17 GiB 16 - 18 x 2 ?"), ("latin-1", b"17 GiB 16 - 18 \xd7 2 ?"), ("utf-8", None)],
)
def test_poor_encodings_get_plain_characters(encoding, shown, monkeypatch):
    text = "17\u2009GiB 16 \u2013 18 × 2 \u4e2d"
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    cli.main(["--version"])
    stream.seek(0)
    stream.truncate()
    stream.write(text)
    stream.flush()
    assert raw.getvalue() == (text.encode() if shown is None else shown)


def test_only_what_cannot_be_written_is_replaced():
    codecs.register_error("planner-plain", replace_with_ascii)
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", errors="planner-plain")


def test_a_process_of_one_command_collects_no_cycles_and_searches_no_plugins():
    program = """
from planner.__main__ import main
import gc, sys
code = main(["fit", "meta-llama/Llama-3.1-8B", "--gpu", "RTX 4090"])
print("left out:", code, gc.isenabled(), "importlib.metadata" in sys.modules, "planner.trace.recording" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert run.stdout.splitlines()[-1] == "left out: 0 False False False"


def test_cycles_are_collected_in_the_window(monkeypatch):
    during = []
    monkeypatch.setattr(cli, "_has_display", lambda: True)
    window = types.ModuleType("planner.gui.app")
    window.main = lambda _arguments: during.append(gc.isenabled()) or 0
    monkeypatch.setitem(sys.modules, "planner.gui.app", window)
    gc.disable()
    try:
        assert cli.main([]) == 0
    finally:
        gc.enable()
    assert during == [True]
