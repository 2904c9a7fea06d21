"""Runs commands and the window on unusual homes and disks: the answer comes, its exit code is right, nothing is lost.

    python benchmarks/homes.py [--only WORDS] [--list]

Each home is tried by this user and, where this is root, by nobody, too: `fit --check` for a plan that fits and for one
that does not, `cost`, `gpus`, `monitor --record` on a machine without a driver, and a window that shows a plan, edits
it, saves it in a file and closes. No output may have a traceback, and what was in the home must be there afterwards, in
its place or set aside. Otherwise the exit code is 1. Processes are forked from one that has imported the window.
"""

import argparse
import codecs
import ctypes
import json
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from window_kills import warm_up

from planner.cli.main import main as command
from planner.gui import app as gui_app
from planner.gui import start_page as _start_page  # noqa: F401  # every window shows it
from planner.gui.autosave import SavedSession
from planner.gui.workspace import SAMPLE_PLAN
from planner.plan.files import load_plan

_NOBODY: Final = 65_534
_YEAR_SECONDS: Final = 366 * 86_400
_NEW_MOUNTS: Final = 0x20000
_PRIVATE_MOUNTS: Final = 0x44000
_READ_ONLY_MOUNT: Final = 0x21
_PLAN: Final = SAMPLE_PLAN.evolve(count=7)
_SESSION: Final = SavedSession(plan=_PLAN, modified=True).model_dump_json()
_SETTINGS: Final = json.dumps({"scheme": "dark", "of_a_newer_version": 1})
_OWN: Final = json.dumps({"schema_version": 1, "cards": []})
_ANSWERS: Final = {
    "fit --check": (("fit", "llama-3.1-8b", "--gpu", "RTX 4090", "--check"), 0, "GiB"),
    "fit --check of what does not fit": (("fit", "llama-3.1-8b", "--gpu", "GTX 1060 6 GB", "--check"), 1, "GiB"),
    "cost": (("cost", "llama-3.1-8b", "--gpu", "RTX 4090"), 0, "$"),
    "gpus": (("gpus", "4090"), 0, "4090"),
    "monitor --record": (("monitor", "--record", "run.gpurec"), 3, "hint: "),
}


class Place(NamedTuple):
    """A home or disk: `make` prepares it in a folder and returns the home, `enter` is called before each command.

    `keeps` is whether a plan can be saved in the working folder there, `records` whether a recording can.
    """

    name: str
    make: Callable[[Path], Path | str | None]
    enter: Callable[[Path], object] = lambda _folder: None
    keeps: bool = True
    records: bool = True


def main() -> int:
    """Try each place, and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="places whose name has these words")
    parser.add_argument("--list", action="store_true", help="name the places only")
    arguments = parser.parse_args()
    places = [place for place in PLACES if arguments.only in place.name]
    if arguments.list:
        print("\n".join(place.name for place in places))
        return 0
    import_everything()
    problems = []
    for place in places:
        for problem in try_place(place):
            print(problem, flush=True)
            problems.append(problem)
    users = len(_users())
    print(f"{len(places) * users} homes ({len(places)} by {users} users), {len(_ANSWERS) + 1} commands on each")
    print(f"{len(problems)} problems{'' if _may_run_python(_NOBODY) else '; nobody may not run Python, so no monitor'}")
    return int(bool(problems))


def import_everything() -> None:
    """Import what the commands and the window need, which nobody may not be allowed to read."""
    warm_up()
    with tempfile.TemporaryDirectory() as home, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        os.environ["GPU_PLANNER_HOME"] = home
        for words, _, _ in _ANSWERS.values():
            if words[0] != "monitor":
                command(list(words))
    for encoding in ("utf-8-sig", "utf-16", "idna", "unicode_escape"):
        codecs.lookup(encoding)
    for name in ("difflib", "planner.cli.monitor.command", "planner.hardware.own", *gui_app.LATER_IMPORTS):
        import_module(name)


def try_place(place: Place) -> Iterator[str]:
    """Run all commands at a place by each user, and return what went wrong."""
    for user in _users():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            root.chmod(0o755)
            for problem in _in_child(partial(_problems, place, user, root)) or ["ended early"]:
                if problem:
                    yield f"{place.name}, by user {user}: {problem}"


def _users() -> tuple[int, ...]:
    return (0, _NOBODY) if os.geteuid() == 0 else (os.geteuid(),)


def _problems(place: Place, user: int, root: Path) -> list[str]:
    """Return what goes wrong at a place, and an empty text at its end."""
    work = root / "work"
    work.mkdir()
    os.chdir(work)
    for name in ("GPU_PLANNER_HOME", "XDG_DATA_HOME"):
        os.environ.pop(name, None)
    os.environ["HOME"] = str(root)
    home = place.make(root)
    if home is not None:
        os.environ["GPU_PLANNER_HOME"] = os.fspath(home)
    if user == _NOBODY:
        _give_to_nobody(root)
    before = _contents(root)
    problems: list[str] = []
    for name, (words, code, said) in _ANSWERS.items():
        if name == "monitor --record" and not _may_run_python(user):
            continue  # the sampler is a process of its own
        is_refused = name == "monitor --record" and not (place.keeps and place.records)
        problems += _answer_problems(name, place, user, root, words, (2 if is_refused else code, said))
    problems += _in_child(lambda: _window_problems(place, user, root)) or ["the window ended early"]
    after = set(_contents(root).values())
    problems += [f"{path} is lost" for path, content in before.items() if content not in after and content != b""]
    return [*filter(None, problems), ""]


def _may_run_python(user: int) -> bool:
    """Return whether a user may execute this interpreter, whose folder may be root's own."""
    folders = Path(sys.executable).resolve().parents
    return user != _NOBODY or all(folder.stat().st_mode & 0o001 for folder in folders)


def _answer_problems(
    name: str, place: Place, user: int, root: Path, words: Iterable[str], expected: tuple[int, str]
) -> list[str]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        for stream in (1, 2):
            os.dup2(writing, stream)
        code = 99
        try:
            _enter(place, user, root)
            code = command(list(words))
            sys.stdout.flush()
        finally:
            if code == 99:
                traceback.print_exc()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as output:
        printed = output.read().decode("utf-8", "replace")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    problems = [] if code == expected[0] else [f"{name} exits with {code}, not {expected[0]}: {printed[-300:]!r}"]
    if "Traceback" in printed or expected[1] not in printed:
        problems.append(f"{name} prints {printed[-600:]!r}")
    return problems


def _window_problems(place: Place, user: int, root: Path) -> list[str]:
    """Start a window, edit, save and close its plan; return what goes wrong, and an empty text at the end."""
    _enter(place, user, root)
    app, window = gui_app.create(["gpu-planner"])
    while window.tasks.busy:
        app.processEvents()
    window.workspace.apply("edit", workload=window.workspace.plan.workload.evolve(batch=3))
    autosave, file = window.documents.autosave, root / "work" / "plan.json"
    assert autosave is not None
    autosave.flush()
    problems = []
    with window.workspace.reporting():
        window.workspace.save_plan(file)
    is_saved = not window.workspace.modified
    if is_saved and load_plan(file) != window.workspace.plan:
        problems.append("the plan's file is not what was saved")
    if place.keeps and not is_saved:
        problems.append(f"the window saves nothing: {window.banner.text}")
    if not is_saved and not window.banner.text:
        problems.append("the window does not say that it saves nothing")
    window.workspace.undo_stack.setClean()
    window.close()
    app.aboutToQuit.emit()
    return [*problems, ""]


def _enter(place: Place, user: int, root: Path) -> None:
    """Become the user, at the place."""
    if user == _NOBODY:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    place.enter(root)


def _in_child(run: Callable[[], list[str]]) -> list[str]:
    """Return what a function returns in a process of its own, an empty list if it fails."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            os.write(writing, json.dumps(run()).encode())
        finally:
            if sys.exc_info()[0] is not None:
                traceback.print_exc()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        told = stream.read()
    os.waitpid(child, 0)
    answer: list[str] = json.loads(told) if told else []
    return answer


def _contents(root: Path) -> dict[str, bytes]:
    """Return what must not get lost: all files but those that a window writes anew."""
    found: dict[str, bytes] = {}
    for folder, _, names in os.walk(root):
        for path in (Path(folder, name) for name in names):
            if path.is_file() and not path.is_symlink() and path.name not in ("session.json", "settings.json", "roots"):
                with suppress(OSError):
                    found[os.fsdecode(path)] = path.read_bytes()
    return found


def _give_to_nobody(root: Path) -> None:
    for folder, folders, names in os.walk(root):
        for path in (Path(folder), *(Path(folder, name) for name in (*folders, *names))):
            if "roots" not in str(path.relative_to(root)):
                with suppress(OSError):
                    os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)


def _used(home: Path) -> Path:
    """Fill a home as an earlier window leaves it, with the user's own files."""
    for name, content in {
        "autosave/session.json": _SESSION,
        "settings.json": _SETTINGS,
        "hardware.json": _OWN,
        "autosave/kept/earlier.json": _PLAN.model_dump_json(),
    }.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return home


def _with_file(name: str, content: bytes = b"of the user") -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        path = root / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return root / "home"

    return make


def _with_folder(name: str) -> Callable[[Path], Path]:
    return _with_file(f"{name}/inside")


def _with_mode(mode: int, name: str = "") -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        home = _used(root / "home")
        (home / name).chmod(mode)
        return home

    return make


def _with_link(name: str, target: str) -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        home = root / "home"
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).symlink_to(target)
        return home

    return make


def _link_as_home(target: str) -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        _used(root / "target")
        (root / "home").symlink_to(target)
        return root / "home"

    return make


def _mounted(home: Path, options: str) -> bool:
    """Mount a disk of its own at a new folder, for this process and its children; return False if this user may not."""
    home.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    return (
        os.geteuid() == 0
        and not libc.unshare(_NEW_MOUNTS)
        and not libc.mount(b"none", b"/", None, _PRIVATE_MOUNTS, None)
        and not libc.mount(b"tmpfs", os.fsencode(home), b"tmpfs", 0, options.encode())
    )


def _on_disk(options: str, fill: Callable[[Path], None] = lambda _home: None) -> Callable[[Path], Path]:
    """Return a way to make a used home on a disk with these options, then fill the disk."""

    def make(root: Path) -> Path:
        if _mounted(root / "home", options):
            fill(_used(root / "home"))
            return root / "home"
        return _used(root / "home")

    return make


def _fill_blocks(home: Path) -> None:
    with suppress(OSError), (home / "filling").open("wb") as stream:
        while stream.write(b"x" * 1024):
            stream.flush()


def _fill_names(home: Path) -> None:
    with suppress(OSError):
        for number in range(1000):
            (home / f"filling-{number}").touch()


def _make_read_only(home: Path) -> None:
    _give_to_nobody(home)
    ctypes.CDLL(None).mount(b"none", os.fsencode(home), None, _READ_ONLY_MOUNT, None)


def _of_root(root: Path) -> Path:
    return _used(root / "roots-home")


def _sticky(root: Path) -> Path:
    home = _used(root / "home")
    (home / "settings.json").rename(home / "roots")
    (home / "settings.json").symlink_to("roots")
    (home / "autosave").chmod(0o1777)
    home.chmod(0o1777)
    return home


def _elsewhere(root: Path) -> Path:
    """Make a home whose files are links to another file system."""
    other = Path(tempfile.mkdtemp(dir="/dev/shm"))
    os.chmod(other, 0o777)
    home = root / "home"
    (home / "autosave").mkdir(parents=True)
    (other / "settings.json").write_text(_SETTINGS)
    (other / "settings.json").chmod(0o666)
    (home / "settings.json").symlink_to(other / "settings.json")
    return home


def _no_home(root: Path) -> None:
    os.environ.pop("HOME")
    (root / "work" / "nothing").touch()


def _home_is(folder: str) -> Callable[[Path], None]:
    """Return a way to have no other home than this `HOME`, as in containers that run as any user."""

    def make(_root: Path) -> None:
        os.environ["HOME"] = folder

    return make


def _data_home_is(name: str) -> Callable[[Path], None]:
    """Return a way to keep what is the program's in this folder for all programs."""

    def make(root: Path) -> None:
        (root / "data").write_text("of the user")
        os.environ["XDG_DATA_HOME"] = str(root / name)

    return make


def _limited(kind: int, amount: int) -> Callable[[Path], object]:
    return lambda _root: resource.setrlimit(kind, (amount, amount))


def _shifted(seconds: float) -> Callable[[Path], object]:
    """Return a way to let the clock go wrong: every time that is asked for is so far off."""

    def enter(_root: Path) -> None:
        now = time.time
        vars(time)["time"] = lambda: now() + seconds

    return enter


def _work_in(name: bytes, mode: int) -> Callable[[Path], object]:
    """Return a way to work in a folder of this name and mode."""

    def enter(root: Path) -> None:
        folder = root / "work" / os.fsdecode(name)
        if not folder.exists():
            folder.mkdir()
            folder.chmod(mode)
        os.chdir(folder)

    return enter


def _leave_folder(root: Path) -> None:
    (root / "work" / "gone").mkdir(mode=0o777, exist_ok=True)
    os.chdir(root / "work" / "gone")
    (root / "work" / "gone").rmdir()


def _home(root: Path) -> Path:
    return _used(root / "home")


PLACES: Final = (
    Place("absent", lambda root: root / "home"),
    Place("absent below absent folders", lambda root: root / "a" / "b" / "home"),
    Place("empty", _with_folder("empty")),
    Place("used", _home),
    Place("read-only", _with_mode(0o555)),
    Place("autosave read-only", _with_mode(0o555, "autosave")),
    Place("settings read-only", _with_mode(0o444, "settings.json")),
    Place("session without permissions", _with_mode(0, "autosave/session.json")),
    Place("settings without permissions", _with_mode(0, "settings.json")),
    Place("of another owner", _of_root),
    Place("sticky, with files of another owner", _sticky),
    Place("a file", lambda root: _with_file("x")(root) / "x"),
    Place("below a file", lambda root: _with_file("x")(root) / "x" / "below"),
    Place("below a device", lambda _root: "/dev/null/home"),
    Place("in /proc", lambda _root: "/proc/nothing/home"),
    Place("a dangling link", _link_as_home("gone")),
    Place("a link to itself", _link_as_home("home")),
    Place("a link to a folder", _link_as_home("target")),
    Place("a name that is not UTF-8", lambda root: _used(root / os.fsdecode(b"\xff\xfe home"))),
    Place("a name with quotes, a line break and spaces", lambda root: _used(root / "a 'b' \"c\"\nd")),
    Place("a name too long", lambda root: root / ("a" * 300)),
    Place("a path too long", lambda root: root / "/".join(["a" * 200] * 30)),
    Place("a path almost too long", lambda root: root / "/".join(["a" * 200] * 18)),
    Place("autosave is a file", _with_file("autosave")),
    Place("autosave is a dangling link", _with_link("autosave", "gone")),
    Place("autosave is a link to itself", _with_link("autosave", "autosave")),
    Place("settings are a folder", _with_folder("settings.json")),
    Place("settings are a full device", _with_link("settings.json", "/dev/full")),
    Place("settings are a dangling link", _with_link("settings.json", "gone")),
    Place("settings are cut off", _with_file("settings.json.bad", b'{"scheme": "da')),
    Place("settings are on another file system", _elsewhere),
    Place("the session is a folder", _with_folder("autosave/x.json")),
    Place("the session is cut off", _with_file("autosave/x.json", _SESSION[:200].encode())),
    Place("the session is of a newer version", _with_file("autosave/x.json", b'{"plan": {"schema_version": 99}}')),
    Place("the session is a link to itself", _with_link("autosave/x.json", "x.json")),
    Place("kept is a file", _with_file("autosave/kept")),
    Place("own hardware is a folder", _with_folder("hardware.json")),
    Place("own hardware is cut off", _with_file("hardware.json", b'{"cards": [')),
    Place("prices are a file", _with_file("prices")),
    Place("logs are a file", _with_file("logs")),
    Place("traces are a file", _with_file("traces")),
    Place("leftovers of killed windows", _with_file("autosave/.x.json.abcdefgh.unfinished", b"")),
    Place("a full disk", _on_disk("size=64k", _fill_blocks)),
    Place("a disk without room for another file", _on_disk("nr_inodes=12", _fill_names)),
    Place("a disk that is mounted read-only", _on_disk("size=1m", _make_read_only)),
    Place("another file system", _on_disk("size=1m")),
    Place("a disk with no room for any file", _home, _limited(resource.RLIMIT_FSIZE, 0), keeps=False),
    Place("a disk with room for a line", _home, _limited(resource.RLIMIT_FSIZE, 100), keeps=False),
    Place("few open files", _home, _limited(resource.RLIMIT_NOFILE, 64)),
    Place("no home at all", _no_home),
    Place("a relative home", _home_is("somewhere")),
    Place("a home that does not exist", _home_is("/nonexistent")),
    Place("a home that is a device", _home_is("/dev/null")),
    Place("a home in /proc", _home_is("/proc/self")),
    Place("data in an absent folder", _data_home_is("absent/data")),
    Place("data in a file", _data_home_is("data")),
    Place("clock back a year", _home, _shifted(-_YEAR_SECONDS)),
    Place("clock ahead by a year", _home, _shifted(_YEAR_SECONDS)),
    Place("clock before 1970", _home, _shifted(-60 * _YEAR_SECONDS)),
    Place("files that nobody else may read", _home, lambda _root: os.umask(0o077)),
    Place("a working folder that is gone", _home, _leave_folder, records=False),
    Place("a working folder whose name is not UTF-8", _home, _work_in(b"\xff\xfe", 0o755)),
    Place("a working folder that others may write", _home, _work_in(b"shared", 0o777)),
)
"""The homes and disks that are tried."""


if __name__ == "__main__":
    sys.exit(main())
