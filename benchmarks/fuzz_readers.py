"""The readers that `fuzz.py` feeds: one line each, with the mutator of its format. Inputs are in `tests/corpus`."""

import contextlib
import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from email.message import Message
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from fuzz_mutators import (
    Mutator,
    mutate_arguments,
    mutate_bytes,
    mutate_gzip,
    mutate_json,
    mutate_json_lines,
    mutate_safetensors,
    mutate_text,
    mutate_zip,
)
from pydantic_core import to_json

from planner.cli.fleet import _fleet_object, _print_fleet
from planner.cli.fleet import make_parser as fleet_parser
from planner.cli.main import BUG, main
from planner.cli.monitor.page import page_lines
from planner.cli.options import read_workload
from planner.cost.price_feeds.gpu_price_feed import read_feed
from planner.cost.price_feeds.gpuhunt import read_table, unpack_list
from planner.cost.price_feeds.offers import CardMatcher, Listing, RejectedRow, merge_listings
from planner.cost.price_feeds.store import PriceStore, offers_in_use, read_offers
from planner.cost.renting.offer import Offer
from planner.errors import PlannerError
from planner.fleet.answers import Answer, read_answer
from planner.fleet.connection import FleetConnection
from planner.fleet.costs import FleetPrices
from planner.fleet.fleet import FleetWatch
from planner.fleet.prometheus import Prometheus
from planner.fleet.sources import PrometheusSource, open_source
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_hardware
from planner.hardware.own import read_own
from planner.hardware.query import GpuQuery
from planner.launch.load import load_launch_file
from planner.memory.logs.read import read_log
from planner.models.catalog import ModelRecord
from planner.models.readers.config_json import read_config_file
from planner.models.readers.gguf.model import read_gguf_model
from planner.models.readers.model_file import read_adapter, read_model_file
from planner.models.readers.safetensors import read_header, read_index
from planner.models.readers.sources import open_local
from planner.monitor.diagnosis.diagnose import diagnose_all
from planner.monitor.history import History
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.report import state_report
from planner.monitor.readings.sample import Sample
from planner.monitor.readings.wire import BadLineError, ClockAnswer, read_line
from planner.monitor.recording.log_import import open_recording
from planner.monitor.recording.recording import recording_from_bytes
from planner.monitor.recording.records import check_times, validate_message
from planner.monitor.recording.summary import diagnosed_history, diagnosed_times, summarize_recording
from planner.monitor.supervisor.remote import RemoteClock
from planner.network import HttpReply
from planner.numbers import BYTES, COUNT, LENGTH, MONEY, parse_number
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.files import load_plan
from planner.plan.logs.comparison import compare_plan
from planner.plan.logs.files import load_corrections, open_log
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recipes import is_recipe_file, load_recipe
from planner.present.fleet import fleet_rows, worst_first
from planner.records import read_records
from planner.serving.traffic_files import load_traffic
from planner.serving_runs.read import read_serving_runs
from planner.trace.analysis.memory import facts_of
from planner.trace.files import is_recording_file, load_recording
from planner.trace.messages import read_messages
from planner.trace.notation import parse_arguments, parse_assumed_values, parse_input
from planner.workload.workload import Inference


class Reader(NamedTuple):
    """A way into the program: what reads the file that an input is written to, and how inputs are changed.

    `file` is the name of that file. `slow` marks what computes an answer from what was read, which may take ten times
    as long. `refuses` are errors besides those that are shown to users.
    """

    read: Callable[[Path], object]
    mutate: Mutator
    file: str
    slow: bool = False
    refuses: tuple[type[Exception], ...] = ()


_TENSOR_BYTES = 205_440  # of the tensors in the corpus


class CrashError(Exception):
    """The program says that it failed by a fault of its own."""


@cache
def _catalog() -> Catalog:
    return load_catalog()


def _evaluate(path: Path) -> object:
    return evaluate(load_plan(path), _catalog())


def _read_gguf(path: Path) -> object:
    os.truncate(path, path.stat().st_size + 2**20)  # the tensors' data, which are never read
    return read_gguf_model(path)


def _read_safetensors(path: Path) -> object:
    with open_local(path) as file:
        return read_header(file)


def _read_weights(path: Path) -> object:
    """Read a network from the names and shapes of its tensors; what is stored is only the header."""
    with path.open("r+b") as file:
        file.truncate(8 + min(int.from_bytes(file.read(8), "little"), 2**20) + _TENSOR_BYTES)
    return read_model_file(path)


def _read_pipeline(path: Path) -> object:
    """Read a folder whose files are the members of a JSON object."""
    try:
        files = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return read_model_file(path)
    folder = path.parent / "pipeline"
    for name in ("model_index.json", "text_encoder/config.json", "unet/config.json", "vae/config.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        content = files.get(name) if isinstance(files, dict) else files
        (folder / name).write_text(json.dumps(content), encoding="utf-8", errors="surrogatepass")
    return read_model_file(folder)


def _read_recording(path: Path) -> object:
    recording = open_recording(path)
    return summarize_recording(recording), diagnosed_times(diagnosed_history(recording))


def _read_recorded_lines(path: Path) -> object:
    import gzip

    recording = recording_from_bytes(gzip.compress(path.read_bytes(), 1), path)
    return summarize_recording(recording), diagnosed_times(diagnosed_history(recording))


def _read_recipe(path: Path) -> object:
    is_recipe_file(path)
    return load_recipe(path)


def _read_memory_log(path: Path) -> object:
    return read_log(open_log(path).text)


def _compare_memory_log(path: Path) -> object:
    plan = Plan(model=ModelChoice(id="Qwen/Qwen2.5-7B"), gpu="l40s", workload=Inference(profile="vllm"))
    return compare_plan(plan, _catalog(), read_log(open_log(path).text))


def _read_prices(path: Path) -> object:
    store = PriceStore(path.parent)
    stored = store.read()
    offers = offers_in_use(_catalog().cost.bundled_offers, stored)
    if stored.problems:
        raise stored.problems[0]
    return offers


def _offers_of(rows: Sequence[Listing | RejectedRow]) -> object:
    return merge_listings(rows, CardMatcher(_catalog().hardware, {}), "a source")


def _read_hunted(path: Path) -> object:
    return _offers_of(list(read_table(unpack_list(path.read_bytes(), "aws"), "AWS", "2026-10-10")))


def _read_hunted_table(path: Path) -> object:
    return _offers_of(list(read_table(path.read_bytes(), "AWS", "2026-10-10")))


def _read_feed(path: Path) -> object:
    return _offers_of(list(read_feed(path.read_bytes())))


def _read_index(path: Path) -> object:
    return read_index(path.read_bytes(), path)


def _read_trace(path: Path) -> object:
    is_recording_file(path)
    return load_recording(path)


def _trace_facts(path: Path) -> object:
    return facts_of(load_recording(path))


def _read_trace_messages(path: Path) -> object:
    """Read what the child process that traces sends, in which the code of others runs."""
    with path.open("rb") as stream:
        return read_messages(stream, lambda _progress: None)


def _read_sampler_lines(path: Path) -> object:
    return [read_line(line) for line in path.read_bytes().splitlines(keepends=True)]


def _show_other_machine(path: Path) -> object:
    """Read what a machine at the other end of SSH sends, and show it as `gpu-planner monitor` does."""
    history, clock = History(600.0), RemoteClock(ClockAnswer(0.0, 0.0, 0.0), 0.0, 0.0)
    for line in path.read_bytes().splitlines(keepends=True):
        with contextlib.suppress(BadLineError):
            message = read_line(line)
            if isinstance(message, ClockAnswer):
                check_times(message)
                clock = RemoteClock(message, 1.0, 1_700_000_000.0)
            elif isinstance(message, Inventory | Sample):
                history.note(validate_message(clock.corrected(validate_message(message))))
    return state_report(history.latest), page_lines(history, diagnose_all(history))


def _read_scrape(path: Path) -> object:
    return _show_fleet(FleetWatch(open_source([FleetConnection(url=str(path))], {})))


class _Answers(Prometheus):
    """Gives the answers of a list one after the other, and then the last one again and again."""

    def __init__(self, contents: Sequence[bytes]) -> None:
        self._contents = list(contents)

    def _ask(self, endpoint: str, form: Mapping[str, object]) -> Answer:
        content = self._contents.pop(0) if len(self._contents) > 1 else self._contents[0]
        return read_answer(HttpReply(200, content, Message()), "a server")


def _read_answers(path: Path) -> object:
    """Read the answers of a Prometheus: the file is a JSON list of them, or one for all queries."""
    content = path.read_bytes()
    try:
        answers = json.loads(content)
        contents = [json.dumps(answer).encode() for answer in answers] if isinstance(answers, list) else []
    except (ValueError, RecursionError):
        contents = []
    return _show_fleet(FleetWatch(PrometheusSource(_Answers(contents or [content]), "a server")))


def _show_fleet(watch: FleetWatch) -> object:
    """Diagnose a fleet, poll it again, and show it as `gpu-planner fleet` does."""
    watch.poll()
    watch.load_last_minutes()
    watch.diagnose()
    watch.poll()
    fleet, prices = watch.diagnose(), FleetPrices(_catalog(), date(2026, 11, 24))
    rows = worst_first(fleet_rows(fleet))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        _print_fleet(fleet, rows, prices, fleet_parser().parse_args(["a"]))
    return to_json(_fleet_object(fleet, rows, prices, 0.3))


def _read_settings(path: Path) -> object:
    from planner.gui.settings import SettingsStore

    store = SettingsStore(path)
    for aside in path.parent.glob(f"{path.name}.bad*"):
        aside.unlink()
    if store.unread is not None:
        raise store.unread
    return store.current


def _read_session(path: Path) -> object:
    from planner.gui.autosave import _read_session

    return _read_session(path)


_PARSERS: tuple[Callable[[str], object], ...] = (
    *(partial(parse_number, kind=kind) for kind in (BYTES, COUNT, LENGTH, MONEY)),
    parse_input,
    parse_arguments,
    parse_assumed_values,
    lambda text: GpuQuery(where=text),
)


def _parse_text(path: Path) -> object:
    """Parse a text as numbers, as a trace's inputs, as a filter expression."""
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    refusals = []
    for parse in _PARSERS:
        try:
            parse(text)
        except PlannerError as error:
            refusals.append(error)
    if refusals:
        raise refusals[-1]
    return None


def _resolve_card(path: Path) -> object:
    return resolve_hardware(_catalog().hardware, path.read_bytes().decode("utf-8", "surrogateescape"))


_SKIPPED = ("hf:", "--refresh")


def _run_command(path: Path) -> object:
    """Run a command line in this process, but none that uses the network, a GPU or the user's code."""
    try:
        words = shlex.split(path.read_bytes().decode("utf-8", "surrogateescape"))
    except ValueError:
        words = []
    if not words or words[0] in ("trace", "monitor") or any(word.startswith(_SKIPPED) for word in words):
        return None
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO())
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")  # as Python opens stderr
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = main(words)
    finally:
        sys.stdin = before
    if code == BUG:
        log = Path(os.environ["GPU_PLANNER_HOME"], "gpu-planner.log")
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else errors.buffer.getvalue().decode()
        raise CrashError(text[-6000:])
    return code


READERS: dict[str, Reader] = {
    "plan": Reader(load_plan, mutate_json, "plan.json"),
    "plan, evaluated": Reader(_evaluate, mutate_json, "plan.json", slow=True),
    "report": Reader(load_plan, mutate_text, "report.md"),
    "config": Reader(read_config_file, mutate_json, "config.json"),
    "pipeline": Reader(_read_pipeline, mutate_json, "files.json"),
    "adapter": Reader(read_adapter, mutate_json, "adapter_config.json"),
    "safetensors": Reader(_read_safetensors, mutate_safetensors, "model.safetensors"),
    "weights": Reader(_read_weights, mutate_safetensors, "model.safetensors"),
    "safetensors-index": Reader(_read_index, mutate_json, "model.safetensors.index.json"),
    "gguf": Reader(_read_gguf, mutate_bytes, "model.gguf"),
    "workload": Reader(read_workload, mutate_json, "workload.json"),
    "recipe-yaml": Reader(_read_recipe, mutate_text, "recipe.yml"),
    "recipe-json": Reader(_read_recipe, mutate_json, "recipe.json"),
    "launch-script": Reader(load_launch_file, mutate_text, "run.sh"),
    "launch-place": Reader(load_launch_file, mutate_text, "job.yaml"),
    "launch-modelfile": Reader(load_launch_file, mutate_text, "Modelfile"),
    "hardware": Reader(read_own, mutate_json, "hardware.json"),
    "hardware, imported": Reader(partial(read_own, today=date(2026, 11, 24)), mutate_json, "cards.json"),
    "catalog": Reader(lambda path: read_records(path, Gpu, [path]), mutate_json, "gpus.json"),
    "catalog-offers": Reader(lambda path: read_records(path, Offer, [path]), mutate_json, "offers.json"),
    "catalog-models": Reader(lambda path: read_records(path, ModelRecord, [path]), mutate_json, "models.json"),
    "own-offers": Reader(read_offers, mutate_json, "offers.json"),
    "price-snapshot": Reader(_read_prices, mutate_json, "snapshot-20261010T000000Z.json"),
    "price-feed": Reader(_read_feed, mutate_json, "prices.json"),
    "gpuhunt": Reader(_read_hunted, mutate_zip, "catalog.zip"),
    "gpuhunt-table": Reader(_read_hunted_table, mutate_text, "aws.csv"),
    "recording": Reader(_read_recording, mutate_gzip(mutate_json_lines), "a.gpurec"),
    "recording-lines": Reader(_read_recorded_lines, mutate_json_lines, "a.jsonl"),
    "log": Reader(_read_recording, mutate_text, "log.csv"),
    "memory-log": Reader(_read_memory_log, mutate_text, "run.log"),
    "memory-log, compared": Reader(_compare_memory_log, mutate_text, "run.log", slow=True),
    "serving-metrics": Reader(read_serving_runs, mutate_text, "a.metrics"),
    "serving-results": Reader(read_serving_runs, mutate_json_lines, "result.json"),
    "corrections": Reader(load_corrections, mutate_json, "corrections.json"),
    "trace": Reader(_read_trace, mutate_gzip(mutate_json), "trace.json"),
    "trace, summarized": Reader(_trace_facts, mutate_gzip(mutate_json), "trace.json", slow=True),
    "trace-messages": Reader(_read_trace_messages, mutate_json_lines, "lines"),
    "sampler-lines": Reader(_read_sampler_lines, mutate_json_lines, "lines", refuses=(BadLineError,)),
    "sampler-lines, shown": Reader(_show_other_machine, mutate_json_lines, "lines", slow=True),
    "fleet-scrape": Reader(_read_scrape, mutate_text, "a.prom", slow=True),
    "fleet-answers": Reader(_read_answers, mutate_json, "answers.json", slow=True),
    "traffic-table": Reader(load_traffic, mutate_text, "requests.csv"),
    "traffic-lines": Reader(load_traffic, mutate_json_lines, "requests.jsonl"),
    "settings": Reader(_read_settings, mutate_json, "settings.json"),
    "session": Reader(_read_session, mutate_json, "session.json"),
    "text": Reader(_parse_text, mutate_text, "text"),
    "gpu": Reader(_resolve_card, mutate_text, "text"),
    "command": Reader(_run_command, mutate_arguments, "words", slow=True),
}
