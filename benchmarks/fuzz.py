"""Feeds changed files, texts and command lines to every reader, and keeps what none of them should do.

    python benchmarks/fuzz.py [--minutes N | --inputs N] [--reader NAME …] [--seed N] [--folder DIR] [--table]

A reader may read an input, or refuse it with an error of GPU Planner that has a hint. A finding is any other exception,
the exit code 70, more than a second of processor time (ten for what computes an answer from what it read), or more than
512 MiB of memory. Each is printed, and kept with its input in `findings` of the folder; then the exit code is 1.
`--replay FILE --reader NAME` reads an input again.

Inputs are changed where their format has its structure (`fuzz_mutators.py`). They start from `tests/corpus`, and go on
from those that took a new way: to a refusal in another line, or to another duration. With `--coverage` the new way is a
new branch of the code, told by the package atheris. Counts, findings and what was learned stay in the folder, where the
next run goes on.

A second is that of a core that adds 25 million numbers in a loop of Python in it; the loop runs beside the inputs.
"""

import argparse
import json
import logging
import mmap
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import zlib
from collections import Counter
from math import log2
from pathlib import Path
from time import monotonic, process_time, sleep
from typing import TYPE_CHECKING, NoReturn

from tables import add_table_option, write_table

if TYPE_CHECKING:
    from fuzz_readers import Reader

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
_ADDITIONS = 25_000_000
_SAMPLE = 500_000
_SLOW_FACTOR = 10
_MIB = 2**20
_MOST_MEMORY = 512 * _MIB
_TURN_SECONDS = 0.25
_TURNS_PER_CHECK = 40
_MOST_INPUT_BYTES = 64 * 1024
_MOST_LEARNED = 300
_NOTE_BYTES = 8 * _MIB
_SILENT_SECONDS = 300
_PRINTED_BYTES = 2000
_LEAST_SHARE_SECONDS = 20


def main() -> int:
    """Run for the requested time or number of inputs, and print what each reader did."""
    arguments = _arguments()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="fuzz-"))
    (folder / "findings").mkdir(parents=True, exist_ok=True)
    if arguments.child:
        return _Run(folder, arguments).go()
    if arguments.replay is not None:
        return _replay(arguments)
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}, folder {folder}", flush=True)
    _supervise(folder, arguments, seed)
    counts = _read_counts(folder)
    rows = [_row(name, count) for name, count in sorted(counts.items())]
    rows.append(_row("all", sum(counts.values(), Counter())))
    for row in rows:
        print("".join(f"{cell:>12}" if number else f"{cell:<22}" for number, cell in enumerate(row)))
    if arguments.table:
        write_table("architecture", "fuzz", _HEADER, rows)
    found = sorted((folder / "findings").glob("*.txt"))
    print(f"{len(found)} findings in {folder / 'findings'}")
    return 1 if found else 0


_HEADER = ("reader", "inputs", "read", "refused", "no hint", "exception", "slow", "large", "longest, ms")


def _row(name: str, count: Counter[str]) -> tuple[str, ...]:
    kinds = _HEADER[1:-1]
    return (name, *(f"{count[kind]:,}" for kind in kinds), f"{count['longest']:,}" if name != "all" else "")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=None, help="how long to run [1, without --inputs]")
    parser.add_argument("--inputs", type=int, default=None, help="how many inputs to read in this run")
    parser.add_argument("--reader", action="append", default=[], help="only this reader; may be repeated")
    parser.add_argument("--seed", type=int, default=None, help="seed of the changes [by chance]")
    parser.add_argument("--folder", type=Path, default=None, help="where a run goes on [a new temporary folder]")
    parser.add_argument("--coverage", action="store_true", help="choose inputs by covered branches (needs atheris)")
    parser.add_argument("--replay", type=Path, default=None, help="read this input by --reader and show what happens")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    add_table_option(parser)
    arguments = parser.parse_args()
    if arguments.minutes is None and arguments.inputs is None:
        arguments.minutes = 1.0
    return arguments


def _supervise(folder: Path, arguments: argparse.Namespace, seed: int) -> None:
    """Run the inputs in a child process, and another one after each that an input ended or stopped."""
    ends, before = monotonic() + 60 * (arguments.minutes or 1e6), _total(folder)
    names = arguments.reader
    if arguments.coverage and not names:
        names = list(_prepare(Path(tempfile.mkdtemp(prefix="fuzz-work-"))))
    note, turn = _Note(folder), 0
    while (left := ends - monotonic()) > 1 and (arguments.inputs is None or _total(folder) - before < arguments.inputs):
        limit = [] if arguments.inputs is None else ["--inputs", str(arguments.inputs - _total(folder) + before)]
        words = [f"--folder={folder}", f"--seed={seed}", f"--minutes={left / 60}", *limit, "--child"]
        if arguments.coverage:  # one reader in a process
            share = min(left, max(_LEAST_SHARE_SECONDS, 60 * (arguments.minutes or 60) / len(names)))
            words += ["--coverage", f"--minutes={share / 60}", f"--reader={names[turn % len(names)]}"]
            turn += 1
        else:
            words += [f"--reader={name}" for name in names]
        child = subprocess.Popen([sys.executable, __file__, *words])
        progress, since = note.number, monotonic()
        while child.poll() is None:
            sleep(0.2)
            if note.number != progress:
                progress, since = note.number, monotonic()
            elif monotonic() - since > _SILENT_SECONDS:
                child.kill()
        if child.returncode:
            reader, data = note.read()
            reason = "no answer" if child.returncode == -signal.SIGKILL else f"ended with {child.returncode}"
            _keep(folder, reader, f"{reader}: {reason}", data, "the process that read it is gone\n")
        seed += 1


class _Note:
    """The input that is being read, in a file that the supervisor sees whatever happens to the reader."""

    def __init__(self, folder: Path) -> None:
        path = folder / "note"
        if not path.exists() or path.stat().st_size != _NOTE_BYTES:
            path.write_bytes(bytes(_NOTE_BYTES))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _NOTE_BYTES)

    @property
    def number(self) -> int:
        """Return how many inputs were noted."""
        return int.from_bytes(self._memory[:8], "little")

    def write(self, reader: str, data: bytes) -> None:
        """Note the next input."""
        head = reader.encode().ljust(32)
        kept = data[: _NOTE_BYTES - 48]
        self._memory[: 48 + len(kept)] = b"".join(
            ((self.number + 1).to_bytes(8, "little"), len(kept).to_bytes(8, "little"), head, kept)
        )

    def read(self) -> tuple[str, bytes]:
        """Return the reader and the bytes of the input noted last."""
        length = int.from_bytes(self._memory[8:16], "little")
        return self._memory[16:48].decode().strip(), self._memory[48 : 48 + length]


class _Run:
    """One process that reads inputs, turn by turn of each reader."""

    def __init__(self, folder: Path, arguments: argparse.Namespace) -> None:
        self._folder, self._arguments = folder, arguments
        self._note = _Note(folder)
        self._source = random.Random(arguments.seed)
        self._counts = _read_counts(folder)
        self._work = Path(tempfile.mkdtemp(prefix="fuzz-work-"))
        self._slowness = _local_seconds()
        self._ways: dict[str, set[object]] = {}
        self._inputs: dict[str, list[bytes]] = {}
        self._kept: dict[str, int] = {}

    def go(self) -> int:
        """Read inputs until the time or their number is over."""
        readers = _prepare(self._work, with_coverage=self._arguments.coverage)
        names = self._arguments.reader or list(readers)
        for name in names:
            reader, self._ways[name] = readers[name], set()
            self._counts.setdefault(name, Counter())
            kept = inputs_in(CORPUS / name.partition(",")[0])
            self._inputs[name], self._kept[name] = kept + inputs_in(self._folder / "learned" / name), len(kept)
            for data in self._inputs[name]:
                self._read_input(name, reader, data)
        if self._arguments.coverage:
            self._follow_branches(names[0], readers[names[0]])
        ends, turn = monotonic() + 60 * self._arguments.minutes, 0
        done, limit = 0, self._arguments.inputs or sys.maxsize
        while monotonic() < ends and done < limit:
            name = names[turn % len(names)]
            turn += 1
            if turn % _TURNS_PER_CHECK == 0:
                self._slowness = _local_seconds()
                _write_counts(self._folder, self._counts)
            _limit_memory()
            turn_ends = process_time() + _TURN_SECONDS
            while process_time() < turn_ends and done < limit:
                self._read_input(name, readers[name], self._changed(name, readers[name]))
                done += 1
        _write_counts(self._folder, self._counts)
        return 0

    def _follow_branches(self, name: str, reader: "Reader") -> NoReturn:
        """Let libFuzzer choose what is changed, and keep what reaches a new branch; it ends the process."""
        import atheris

        saved = monotonic()

        def read(data: bytes) -> None:
            nonlocal saved
            self._read_input(name, reader, data)
            if monotonic() - saved > 1:
                saved = monotonic()
                _write_counts(self._folder, self._counts)
                _limit_memory()

        def mutate(data: bytes, most_bytes: int, seed: int) -> bytes:
            source = random.Random(seed)
            return reader.mutate(data or source.choice(self._inputs[name]), source, self._inputs[name])[:most_bytes]

        learned = self._folder / "learned" / name
        learned.mkdir(parents=True, exist_ok=True)
        limits = (f"-max_total_time={max(1, int(60 * self._arguments.minutes))}", "-rss_limit_mb=0", "-verbosity=0")
        words = ["fuzz", *limits, f"-max_len={_MOST_INPUT_BYTES}", str(learned), str(CORPUS / name.partition(",")[0])]
        atheris.Setup(words, read, custom_mutator=mutate)
        atheris.Fuzz()
        raise AssertionError("libFuzzer ends the process")

    def _changed(self, name: str, reader: "Reader") -> bytes:
        known = self._inputs[name]
        # Half from what is read without fault, since most of what was learned is refused.
        at = self._source.randrange(self._kept[name] if self._source.random() < 0.5 else len(known))
        return reader.mutate(known[at], self._source, known)[: _MOST_INPUT_BYTES * 8]

    def _read_input(self, name: str, reader: "Reader", data: bytes) -> None:
        self._note.write(name, data)
        count = self._counts[name]
        outcome, way, spent, trouble = outcome_of(reader, data, self._work)
        count["inputs"] += 1
        count[outcome] += 1
        if trouble:
            _keep(self._folder, name, f"{name}: {way}", data, trouble)
        seconds = spent / self._slowness
        most = _SLOW_FACTOR if reader.slow else 1
        if seconds > most:
            seconds = min(seconds, *(outcome_of(reader, data, self._work)[2] / _local_seconds() for _ in range(2)))
            if seconds > most:
                count["slow"] += 1
                _keep(self._folder, name, f"{name}: slow, {way}", data, f"{seconds:.1f} s of processor time\n")
        count["longest"] = max(count["longest"], round(1000 * seconds))
        step = (repr(sorted(way)) if isinstance(way, set) else way), int(log2(max(seconds, 0.01)))
        if step not in self._ways[name] and len(data) <= _MOST_INPUT_BYTES:
            self._ways[name].add(step)
            if data not in self._inputs[name]:
                self._learn(name, data)

    def _learn(self, name: str, data: bytes) -> None:
        known = self._inputs[name]
        known.append(data)
        if len(known) > self._kept[name] + _MOST_LEARNED:
            del known[self._source.randrange(self._kept[name], len(known) - 1)]
        path = self._folder / "learned" / name / f"{zlib.crc32(data):08x}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _prepare(work: Path, *, with_coverage: bool = False) -> "dict[str, Reader]":
    """Return the readers, once everything around them is as in a new user's home."""
    logging.disable(logging.CRITICAL)
    os.environ["GPU_PLANNER_HOME"] = str(work / "home")
    for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        os.environ.pop(name, None)
    inner = work / "a" / "b" / "c"  # relative paths lead to places in `work`
    inner.mkdir(parents=True)
    os.chdir(inner)
    if with_coverage:
        import atheris

        with atheris.instrument_imports(include=["planner"]):
            from fuzz_readers import READERS
    else:
        from fuzz_readers import READERS
    return READERS


def outcome_of(reader: "Reader", data: bytes, work: Path) -> tuple[str, object, float, str]:
    """Read `data`; return the kind of outcome, its place, its processor time and the traceback of a finding."""
    from planner.errors import PlannerError

    path = work / "input" / reader.file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    began = process_time()
    try:
        result = reader.read(path)
        spent = process_time() - began
        # Which fields a value has, or a command's exit code.
        return "read", getattr(result, "model_fields_set", result if isinstance(result, int) else ""), spent, ""
    except MemoryError as error:
        return "large", _place(error), process_time() - began, traceback.format_exc()
    except PlannerError as error:
        spent = process_time() - began
        if not error.hint:
            return "no hint", f"no hint, {_place(error)}", spent, f"no hint: {error.message}\n"
        return "refused", _place(error), spent, ""
    except reader.refuses as error:
        return "refused", _place(error), process_time() - began, ""
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a finding
        return "exception", _place(error), process_time() - began, traceback.format_exc()


def _place(error: BaseException | None) -> str:
    """Return the lines of the package in which an error and its causes were raised."""
    places = []
    while error is not None:
        place, trace = "", error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if f"{os.sep}planner{os.sep}" in file:
                place = f"{Path(file).name}:{trace.tb_lineno}"
            trace = trace.tb_next
        places.append(f"{type(error).__name__} {place}")
        error = error.__cause__
    return " < ".join(places)


def _local_seconds() -> float:
    """Return how long this core takes for what a usual one does in a second."""
    began, total = process_time(), 0
    for number in range(_SAMPLE):
        total += number
    return (process_time() - began) * _ADDITIONS / _SAMPLE


def _limit_memory() -> None:
    """Let the process have 512 MiB more than it has."""
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def inputs_in(folder: Path) -> list[bytes]:
    """Return the inputs in a folder of a reader, the oldest first."""
    return [path.read_bytes() for path in sorted(folder.glob("*"), key=lambda path: path.stat().st_mtime)]


def _keep(folder: Path, reader: str, what: str, data: bytes, trouble: str) -> None:
    """Keep the first input of each finding, and print it."""
    path = folder / "findings" / f"{reader.replace(', ', '-')}-{zlib.crc32(what.encode()):08x}"
    if not path.with_suffix(".txt").exists():
        path.with_suffix(".input").write_bytes(data)
        path.with_suffix(".txt").write_text(f"{what}\n{trouble}", encoding="utf-8", errors="backslashreplace")
        print(f"FOUND {what}\n      {path}.input\n      {trouble.strip().splitlines()[-1][:300]}")
        print(f"      {data[:_PRINTED_BYTES]!r}", flush=True)


def _read_counts(folder: Path) -> dict[str, Counter[str]]:
    path = folder / "counts.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: Counter(count) for name, count in found.items()}


def _write_counts(folder: Path, counts: dict[str, Counter[str]]) -> None:
    (folder / "counts.new").write_text(json.dumps(counts), encoding="utf-8")
    (folder / "counts.new").replace(folder / "counts.json")


def _total(folder: Path) -> int:
    return sum(count["inputs"] for count in _read_counts(folder).values())


def _replay(arguments: argparse.Namespace) -> int:
    readers = _prepare(Path(tempfile.mkdtemp(prefix="fuzz-work-")))
    data = arguments.replay.read_bytes()
    outcome, way, spent, trouble = outcome_of(readers[arguments.reader[0]], data, Path(tempfile.mkdtemp()))
    print(f"{outcome} in {spent / _local_seconds():.3f} s: {way}\n{trouble}")
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
