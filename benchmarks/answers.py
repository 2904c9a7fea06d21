"""Records the answers to all questions, to show that a change leaves every number as it was.

    python benchmarks/answers.py record FILE.jsonl.gz [--only SECTIONS] [--models N]
    python benchmarks/answers.py record --reference       # renews benchmarks/answers/reference.json on purpose
    python benchmarks/answers.py compare A B [--most N] [--ignore PATTERN …]
    python benchmarks/answers.py check [--only SECTIONS] [--models N]

`record` asks the package that `import planner` finds: with PYTHONPATH, another tree than this one. It uses the public
API and the command line only. Recorded are `fit` and `cost` of 20 models × 12 cards × 8 workloads, which together cover
every profile, engine, method, optimizer and way to share; every preset; every model and every card of the catalog;
advice; `recommend` for eight jobs; traces of twelve networks; replays and summaries of recordings of the monitor. All
of it is asked on one fixed day, without custom hardware and prices.

Sentences are exempt: a text with a space in it, a formula or a source is recorded as `…`. Numbers, keys, truth values,
nulls and texts of one word, such as verdicts and ids, are compared. Numbers may differ in the last of 12 digits, which
depend on the order of a sum. Of what is refused, the error's class and field are recorded.

`check` records again and compares with the digests in the repository; it prints the cases that changed, with their
new main figures. `compare` prints all differences between two full records, and exits with 1 if there are any.
"""

import argparse
import datetime
import fnmatch
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from itertools import groupby, zip_longest
from multiprocessing import Pool
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import pydantic  # before the day is fixed: it looks at datetime's own class
from answer_cases import LOGS, MODELS, RECOMMENDED, TRACED, WORKLOADS, Case, Fields, grid_cases, more_cases

DAY: Final = datetime.date(2026, 11, 22)
_HERE: Final = Path(__file__).resolve().parent
_ROOT: Final = _HERE.parent
REFERENCE: Final = _HERE / "answers" / "reference.json"

_SENTENCE: Final = "…"
_EXEMPT_KEYS: Final = ("formula", "source", "sources", "url")
_DIGITS: Final = 12
_DIGEST_CHARACTERS: Final = 10
_LINES_OF_A_CASE: Final = 6

_VOLATILE: Final = {
    "seconds": "how long this trace took",
    "environment": "the versions of the programs that traced",
}
"""Figures that differ between two traces of one network, with the reason why they are left out."""

_OWN_TOKENS: Final = re.compile(r".*/site-packages/")


class Answer(NamedTuple):
    """The answer to one question, as JSON without sentences."""

    case: str
    said: Any


# ----------------------------------------------------------------------------------------------------------- questions


def _set_command_line_day() -> None:
    """Make `DAY` the command line's current day; calls of the API pass the day as an argument."""

    class _Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return datetime.datetime.combine(DAY, datetime.time(12), tz)

    class _Date(datetime.date):
        @classmethod
        def today(cls) -> datetime.date:
            return DAY

    datetime.datetime, datetime.date = _Clock, _Date  # type: ignore[misc]  # before planner imports them


def _set_up_home(home: str) -> None:
    os.environ |= {"GPU_PLANNER_HOME": home, "TZ": "UTC", "COLUMNS": "120", "OMP_NUM_THREADS": "1"}
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "GPU_PLANNER_CATALOG"):
        os.environ.pop(name, None)
    _set_command_line_day()


def _run_command(*words: str) -> tuple[int, str, str]:
    """Return the exit code of `gpu-planner WORDS`, and what it printed on both streams."""
    from planner.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def _command_answer(*words: str) -> Any:
    """Return the output of `gpu-planner WORDS --json`, or its exit code: an error is a sentence."""
    code, out, _ = _run_command(*words, "--json")
    if code:
        return {"exit_code": code}
    lines = out.splitlines()
    many = len(lines) > 1 and lines[0].endswith("}")
    return scrubbed([json.loads(line) for line in lines] if many else json.loads(out))


def _answer_to_plan(plan: Fields, folder: Path, *words: str) -> Any:
    """Return a command's answer to a plan, or the class and the field of its error."""
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    said = _command_answer(words[0], str(path), *words[1:])
    if isinstance(said, dict) and "exit_code" in said:
        return {"refused": _refusal(path, with_cost=words[0] == "cost") or said["exit_code"]}
    return said


def _refusal(path: Path, *, with_cost: bool) -> Fields | None:
    import planner

    error: Exception | None
    try:
        plan = planner.Plan.model_validate_json(path.read_text())
    except pydantic.ValidationError as invalid:
        return {"class": "invalid", "field": ".".join(str(part) for part in invalid.errors()[0]["loc"])}
    try:
        evaluation = planner.evaluate(plan, _bundled_catalog())
        error = planner.evaluate_cost(evaluation, _bundled_catalog(), DAY).error if with_cost else None
    except planner.PlannerError as refused:
        error = refused
    except Exception as bug:  # noqa: BLE001  # it is an answer, too: a change may not make or move one unseen
        return {"class": f"bug-{type(bug).__name__}", "field": None}
    if error is None:
        return {"class": "no-estimate", "field": None} if with_cost else None
    return {"class": type(error).__name__, "field": getattr(error, "field", None)}


_CATALOGS: Final[list[Any]] = []


def _bundled_catalog() -> Any:
    import planner

    if not _CATALOGS:
        _CATALOGS.append(planner.load_catalog())
    return _CATALOGS[0]


def _grid_answers(index: int, folder: Path) -> Iterator[Answer]:
    for case in grid_cases(index):
        yield Answer(f"fit · {case.name}", _answer_to_plan(case.plan, folder, "fit"))
        yield Answer(f"cost · {case.name}", _answer_to_plan(case.plan, folder, "cost", "--offers", "3"))


def _more_answers(_: int, folder: Path) -> Iterator[Answer]:
    for case in more_cases():
        yield Answer(f"more · {case.name}", _answer_to_plan(case.plan, folder, "fit"))


def _advice_answers(index: int, folder: Path) -> Iterator[Answer]:
    """Yield advice for every third card with one of its workloads, and the uncertainty of the cost for some."""
    for place, case in enumerate(_sample_cases(grid_cases(index))):
        words = ("--advise", "--solve", "count", "--solve", "gpu", "--versus", "2 x RTX 3090")
        yield Answer(f"advice · {case.name}", _answer_to_plan(case.plan, folder, "fit", *words))
        yield Answer(f"without a card · {case.name}", _answer_to_plan(_without_card(case.plan), folder, "fit"))
        if place % 2 == 0:
            yield Answer(f"tornado · {case.name}", _answer_to_plan(case.plan, folder, "cost", "--tornado", "--carbon"))


def _sample_cases(cases: Iterable[Case]) -> Iterator[Case]:
    for place, case in enumerate(cases):
        card, slot = divmod(place, WORKLOADS)
        if card % 3 == 0 and slot == (card * 5 + len(case.plan["model"]["id"])) % WORKLOADS:
            yield case


def _without_card(plan: Fields) -> Fields:
    return {name: value for name, value in plan.items() if name not in ("gpu", "count")}


def _preset_answers(_: int, folder: Path) -> Iterator[Answer]:
    import planner

    for preset in planner.load_presets():
        words = [] if preset.model else ["meta-llama/Llama-3.1-8B"]
        words += ["--preset", preset.id, *([] if preset.gpu else ["--gpu", "h100-sxm5-80gb"])]
        yield Answer(f"fit preset · {preset.id}", _command_answer("fit", *words))
        yield Answer(f"cost preset · {preset.id}", _command_answer("cost", *words))
    yield Answer("list · presets", _command_answer("fit", "--list-presets"))


def _model_answers(part: int, folder: Path) -> Iterator[Answer]:
    """Yield inference and training verdicts of every model of the catalog on one card."""
    listed = json.loads(_run_command("models", "--json")[1])
    for model in listed[part::2]:
        for task in ("inference", "training"):
            plan = {
                "schema_version": 1,
                "model": {"id": model["id"]},
                "workload": {"task": task},
                "gpu": "h200-sxm-141gb",
            }
            yield Answer(f"model · {model['id']} · {task}", _answer_to_plan(plan, folder, "fit"))


def _card_answers(_: int, folder: Path) -> Iterator[Answer]:
    """Yield memory and cost of one model on every card of the catalog."""
    listed = json.loads(_run_command("gpus", "--json")[1])
    for place, card in enumerate(listed):
        workload = {"task": "training", "method": "qlora"} if place % 2 else {"task": "inference", "weights": "int8"}
        plan = {"schema_version": 1, "model": {"id": "Qwen/Qwen3-8B"}, "workload": workload, "gpu": card["id"]}
        yield Answer(f"card · {card['id']}", _answer_to_plan(plan, folder, "fit"))
        yield Answer(f"card cost · {card['id']}", _answer_to_plan(plan, folder, "cost", "--offers", "0"))


def _list_answers(_: int, folder: Path) -> Iterator[Answer]:
    for words in (
        ("models",), ("models", "llama"), ("gpus",), ("gpus", "RTX 4090"), ("gpus", "--systems"), ("prices",),
        ("gpus", "--where", "memory_gib >= 80", "--sort", "price"),
    ):  # fmt: skip
        yield Answer(f"list · {' '.join(words)}", _command_answer(*words))


def _recommendation_answers(index: int, folder: Path) -> Iterator[Answer]:
    name, model, workload, words = RECOMMENDED[index]
    plan = {"schema_version": 1, "model": {"id": model}, "workload": workload}
    yield Answer(f"recommend · {name}", _answer_to_plan(plan, folder, "recommend", *words.split()))


def _trace_answers(index: int, folder: Path) -> Iterator[Answer]:
    import planner

    name, fields = TRACED[index]
    rest = {key: value for key, value in fields.items() if key not in ("net", "config")}
    if "net" in fields:
        file, function = fields["net"].split(":")
        target = {"kind": "file", "place": str(_HERE / "nets" / file), "name": function}
    else:
        target = {"kind": "config", "place": name, "config": json.dumps(fields["config"])}
    request = planner.TraceRequest.model_validate({"target": target, **rest})
    path = folder / "trace.json"
    planner.save_recording(path, planner.start_trace(request).result())
    yield Answer(f"trace · {name}", _without_volatile(scrubbed(json.loads(path.read_text()))))
    for card in ("rtx-4090", "h100-sxm5-80gb"):
        said = _command_answer("trace", str(path), "--gpu", card)
        yield Answer(f"trace · {name} on {card}", _without_volatile(said))


def _without_volatile(answer: Fields) -> Fields:
    return {name: value for name, value in answer.items() if name not in _VOLATILE}


def _monitor_answers(_: int, folder: Path) -> Iterator[Answer]:
    midnight = datetime.datetime(DAY.year, DAY.month, DAY.day, tzinfo=datetime.UTC).timestamp()
    files = [_ROOT / "resources" / "demo" / "training.gpurec"]
    for name, text in {**LOGS, **_public_logs()}.items():
        file = folder / name
        file.write_text(text)
        os.utime(file, (midnight, midnight))  # logs without a date are of the day that their file is of
        files.append(file)
    for file in files:
        yield Answer(f"replay · {file.name}", _command_answer("monitor", "--replay", str(file)))
        said = _command_answer("monitor", "--summary", str(file), "--tariff", "0.3")
        yield Answer(f"summary · {file.name}", said | {"file": file.name})


_QUERIED: Final = {
    "temperature_celsius": "temperature.gpu",
    "utilization_percent": "utilization.gpu [%]",
    "power_watts": "power.draw [W]",
    "memory_controller_percent": "utilization.memory [%]",
    "memory_used_mib": "memory.used [MiB]",
    "memory_free_mib": "memory.free [MiB]",
}
"""nvidia-smi's names of the columns in these recordings."""


def _public_logs() -> dict[str, str]:
    """Return the recordings of public trainings that the tests read, as logs of nvidia-smi."""
    logs = {}
    data = json.loads((_ROOT / "tests" / "monitor" / "data" / "training_recordings.json").read_text())
    for recording in data:
        columns = [_QUERIED[name] for name in recording["columns"][1:]]
        lines = [", ".join(("timestamp", "index", "name", *columns))]
        for seconds, *readings in recording["rows"]:
            at = datetime.datetime(2026, 1, 3, 15) + datetime.timedelta(seconds=seconds)
            time = f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03}"
            lines.append(", ".join((time, "0", "NVIDIA X", *map(str, readings))))
        logs[f"{recording['name']}.csv"] = "\n".join(lines) + "\n"
    return logs


SECTIONS: Final[dict[str, tuple[Callable[[int, Path], Iterator[Answer]], int]]] = {
    "trace": (_trace_answers, len(TRACED)),
    "recommend": (_recommendation_answers, len(RECOMMENDED)),
    "monitor": (_monitor_answers, 1),
    "fit": (_grid_answers, len(MODELS)),
    "advice": (_advice_answers, len(MODELS)),
    "presets": (_preset_answers, 1),
    "models": (_model_answers, 2),
    "cards": (_card_answers, 1),
    "lists": (_list_answers, 1),
    "more": (_more_answers, 1),
}
"""The sections of a record: the function that asks the questions, and its number of tasks."""

# ------------------------------------------------------------------------------------------------------------- records


def scrubbed(value: Any, key: str = "") -> Any:
    """Return `value` without sentences and paths of this machine."""
    if isinstance(value, dict):
        return {_stable_key(name): scrubbed(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [scrubbed(one, key) for one in value]
    if isinstance(value, str):
        return _scrubbed_text(value, key)
    return value


def _stable_key(name: str) -> str:
    return _SENTENCE if " " in name and not name.startswith("[") else name


def _scrubbed_text(text: str, key: str) -> str:
    # Shapes such as `[8, 512] float32` and places such as `net.py:17` are figures, not sentences.
    if text.startswith("[") or (text.startswith("(") and text.endswith(")")):
        return text
    if key in _EXEMPT_KEYS or "://" in text or any(letter.isspace() for letter in text):
        return _SENTENCE
    return _OWN_TOKENS.sub("", text.replace(f"{_ROOT}/", ""))


def tasks(only: Iterable[str], models: int) -> list[tuple[str, int]]:
    """Return the tasks of the sections `only`; those of the grid for `models` of its models, spread over the kinds."""
    found = []
    for section in only:
        _, count = SECTIONS[section]
        places: Iterable[int] = range(count)
        if section in ("fit", "advice") and models < count:
            places = [round(place * count / models) for place in range(models)]
        found += [(section, place) for place in places]
    return found


def _run(task: tuple[str, int]) -> tuple[tuple[str, int], list[str]]:
    section, place = task
    with tempfile.TemporaryDirectory() as folder:
        found = list(SECTIONS[section][0](place, Path(folder)))
    return task, [json.dumps({"case": case, "said": said}, separators=(",", ":")) for case, said in found]


def recorded(todo: list[tuple[str, int]], processes: int) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield each line with its task, in an order that does not depend on which process was faster."""
    with tempfile.TemporaryDirectory() as home:
        _set_up_home(home)
        import planner

        print(f"asking {Path(planner.__file__).parent}", file=sys.stderr)
        with Pool(processes) as pool:
            for number, (task, lines) in enumerate(pool.imap(_run, todo), 1):
                print(f"\r{number}/{len(todo)} {task[0]:10}", end="", file=sys.stderr, flush=True)
                for line in lines:
                    yield task, line
    print(file=sys.stderr)


def _open(path: Path, mode: str) -> Any:
    if path.suffix == ".gz":
        return gzip.open(path, mode, compresslevel=3, encoding="utf-8")
    return path.open(mode, encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------- comparison


class Moved(NamedTuple):
    """A changed place in an answer with its value before and after; `None` means no value."""

    place: str
    before: str | None
    after: str | None


def moved(before: Any, after: Any, place: str = "") -> Iterator[Moved]:
    """Yield the differences between two answers."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() | after.keys():
            here = f"{place}.{name}" if place else name
            if name not in after:
                yield Moved(here, _short_text(before[name]), None)
            elif name not in before:
                yield Moved(here, None, _short_text(after[name]))
            else:
                yield from moved(before[name], after[name], here)
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield Moved(f"{place}[]", f"{len(before)} items", f"{len(after)} items")
        for number, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from moved(one, other, f"{place}[{number}]")
    elif not _is_equal(before, after):
        yield Moved(place, _short_text(before), _short_text(after))


def _is_equal(before: Any, after: Any) -> bool:
    if isinstance(before, bool) or isinstance(after, bool):
        return before is after
    if isinstance(before, int | float) and isinstance(after, int | float):
        return before == after or abs(before - after) <= 10.0**-_DIGITS * max(abs(before), abs(after))
    return bool(before == after)


def _short_text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _place_pattern(place: str) -> str:
    return re.sub(r"\[\d+\]", "[]", place)


def compare(first: Path, second: Path, most: int, ignored: Iterable[str]) -> int:
    """Print the differences between two records and return the number of changed cases; only shared sections count."""
    shared = _tasks_in_record(first) & _tasks_in_record(second)
    if not shared:
        sys.exit("the two records have no part in common")
    before, after, cases = _differing_lines(first, second, shared)
    patterns, printed, changed = Counter[str](), 0, 0
    one_sided = [f"{case}: vanished" for case in before.keys() - after] + [
        f"{case}: appeared" for case in after.keys() - before
    ]
    for case in before:
        if case not in after:
            continue
        found = moved(json.loads(before[case])["said"], json.loads(after[case])["said"])
        changes = [one for one in found if not any(fnmatch.fnmatch(_place_pattern(one.place), it) for it in ignored)]
        patterns.update(_place_pattern(one.place) for one in changes)
        changed += bool(changes)
        if changes and printed < most:
            lines = [f"    {one.place}: {one.before} → {one.after}" for one in changes[:_LINES_OF_A_CASE]]
            print(f"{case}: {len(changes)} moved", *lines, sep="\n")
            printed += 1 + len(lines)
    print(*sorted(one_sided)[:most], sep="\n")
    if patterns:
        print("\nchanged places, with the number of changes:")
        for place, count in patterns.most_common(most):
            print(f"{count:8,}  {place}")
    print(f"\n{changed:,} of {cases:,} cases moved, {len(one_sided):,} are in one record only")
    return changed + len(one_sided)


def _differing_lines(
    first: Path, second: Path, shared: set[tuple[str, int]]
) -> tuple[dict[str, str], dict[str, str], int]:
    """Return the lines that are not in both records, by case, and how many cases there are."""
    before, after, cases = dict[str, str](), dict[str, str](), 0
    for one, other in zip_longest(_lines(first, shared), _lines(second, shared)):
        cases += 1
        if one != other:
            for side, line in ((before, one), (after, other)):
                if line is not None:
                    side[json.loads(line)["case"]] = line
    # Where a case is in one record only, those behind it stand in other lines, and are the same none the less.
    for case in [case for case, line in before.items() if after.get(case) == line]:
        del before[case], after[case]
    return before, after, cases


def _tasks_in_record(path: Path) -> set[tuple[str, int]]:
    with _open(path, "rt") as stream:
        return {(section, place) for section, place in json.loads(next(stream))["tasks"]}


def _lines(path: Path, wanted: set[tuple[str, int]]) -> Iterator[str]:
    """Yield the lines of the tasks that are `wanted`."""
    is_wanted = False
    with _open(path, "rt") as stream:
        next(stream)
        for line in stream:
            if line.startswith("["):
                is_wanted = tuple(json.loads(line)) in wanted
            elif is_wanted:
                yield line


# ------------------------------------------------------------------------------------------------------- the reference


def digest_of(answer: Any) -> str:
    """Return a short digest of an answer, whose numbers count with ten digits."""
    text = json.dumps(_rounded_numbers(answer), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]


def _rounded_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else f"{value:.10g}"
    if isinstance(value, dict):
        return {name: _rounded_numbers(one) for name, one in value.items()}
    return [_rounded_numbers(one) for one in value] if isinstance(value, list) else value


_HEADLINES: Final = (
    ("refused", "class"), ("refused", "field"), ("memory", "verdict"), ("memory", "total_bytes"), ("time", "seconds"),
    ("cost", "answer", "decision"), ("cost", "rent", "usd"), ("cost", "own", "present_value_usd"),
    ("cheapest", "usd"), ("fastest", "hours"), ("best_value", "gpu"), ("total_bytes",), ("allocated_bytes",),
    ("parameters",), ("operator_calls",), ("energy_joules",), ("samples",),
)  # fmt: skip


def headline(answer: Any) -> list[Any]:
    """Return the main figures of an answer."""
    found = []
    for path in _HEADLINES:
        value = answer
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str | int | float):
            found.append(float(f"{value:.6g}") if isinstance(value, float) else value)
    return found


def _reference_digests(lines: Iterable[str]) -> dict[str, list[Any]]:
    found = {}
    for line in lines:
        answer = json.loads(line)
        found[answer["case"]] = [digest_of(answer["said"]), *headline(answer["said"])]
    return found


def _compare_with_reference(
    committed: dict[str, list[Any]], now: dict[str, list[Any]], most: int, *, whole: bool
) -> int:
    lines = []
    for case in [*committed, *(case for case in now if case not in committed)]:
        before, after = committed.get(case), now.get(case)
        if before is None or after is None:
            if before is None or whole:
                lines.append(f"{case}: {'appeared' if before is None else 'vanished'}")
        elif before[0] != after[0]:
            figures = f"{before[1:]} → {after[1:]}" if before[1:] != after[1:] else f"{after[1:]} stay, a detail moved"
            lines.append(f"{case}: {figures}")
    for line in lines[:most]:
        print(line)
    if len(lines) > most:
        print(f"… and {len(lines) - most:,} more")
    print(f"{len(lines):,} of {len(now):,} cases moved")
    return len(lines)


# --------------------------------------------------------------------------------------------------------- the command


def main() -> int:
    """Run one of the three commands and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    record, compared, check = (commands.add_parser(name) for name in ("record", "compare", "check"))
    record.add_argument("file", type=Path, nargs="?")
    record.add_argument(
        "--reference", action="store_true", help="renew the digests in the repository, and list what moved"
    )
    for one in (record, check):
        one.add_argument(
            "--only", default=",".join(SECTIONS), help=f"sections with commas between: {', '.join(SECTIONS)}"
        )
        one.add_argument("--models", type=int, default=len(MODELS), help="of the grid only so many models")
        one.add_argument("--processes", type=int, default=2)
    compared.add_argument("files", type=Path, nargs=2)
    compared.add_argument("--ignore", nargs="+", default=[], metavar="PATTERN", help="such as plan.schema_version")
    for one in (record, compared, check):
        one.add_argument("--most", type=int, default=60, help="lines at most")
    arguments = parser.parse_args()
    if arguments.command == "compare":
        return int(compare(*arguments.files, arguments.most, arguments.ignore) > 0)
    only = [name for name in arguments.only.split(",") if name]
    if unknown := [name for name in only if name not in SECTIONS]:
        parser.error(f"there is no section {unknown[0]}")
    if "trace" in only and find_spec("torch") is None:
        print("traces are left out: PyTorch is not installed", file=sys.stderr)
        only.remove("trace")
    todo = tasks(only, arguments.models)
    found = recorded(todo, arguments.processes)
    if arguments.command == "record" and not arguments.reference:
        if arguments.file is None:
            parser.error("record needs a FILE, or --reference")
        return _write(arguments.file, found, todo)
    whole = only == list(SECTIONS) and arguments.models == len(MODELS)
    if arguments.command == "record" and arguments.file is not None:
        _write(arguments.file, found, todo)
        found = (((), line) for line in _lines(arguments.file, set(todo)))
    now = _reference_digests(line for _, line in found)
    committed = json.loads(REFERENCE.read_text(encoding="utf-8")) if REFERENCE.exists() else {}
    count = _compare_with_reference(committed, now, arguments.most, whole=whole)
    if arguments.command == "check":
        return int(count > 0)
    _write_reference(now if whole else committed | now)
    return 0


def _write(path: Path, lines: Iterable[tuple[tuple[str, int], str]], todo: list[tuple[str, int]]) -> int:
    with _open(path, "wt") as stream:
        stream.write(json.dumps({"day": str(DAY), "tasks": todo}) + "\n")
        for task, group in groupby(lines, key=itemgetter(0)):
            stream.write(json.dumps(task) + "\n")
            for _, line in group:
                stream.write(line + "\n")
    return 0


def _write_reference(digests: dict[str, list[Any]]) -> None:
    REFERENCE.parent.mkdir(exist_ok=True)
    lines = (f"{json.dumps(case, ensure_ascii=False)}:{json.dumps(figures)}" for case, figures in digests.items())
    REFERENCE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
