"""Readers of speeds and token counts: benchmarks of llama.cpp and vLLM, timings of a server, and steps of a training.

**Source**: llama.cpp `tools/llama-bench/README.md` at commit 08d0baa, `tools/batched-bench/batched-bench.cpp` and
`src/llama-context.cpp` (`llama_perf_context_print`); vLLM `benchmarks/serve.py`, whose table SGLang's benchmark prints
too; transformers 5.23 `trainer_utils.speed_metrics`, rounded to three decimals.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from planner.memory.logs.reading import NUMBER, FigureName, LogFormat, LoggedFigure, LogLine, LogText
from planner.memory.logs.serving import read_metric_figures, read_result_figures
from planner.parsing import parse_json
from planner.storage import UnreadableFileError

MOST_FIGURES: Final = 40
"""Maximum number of figures read from one log."""
_MOST_TABLE_LINES: Final = 40
_HUNDREDTH: Final = 0.005
"""Largest error of a number that is rounded to two decimals; to three, a tenth of it."""
_LARGEST: Final = 1e15
_THOUSAND: Final = 1000.0
_BENCH_MARK: Final = '"avg_ts"'
_BATCHED_MARK: Final = '"speed_tg"'
_BENCH_ROW: Final = re.compile(
    rf"\| {{0,40}}(pp|tg) ?(\d{{1,9}})(?: @ d(\d{{1,9}}))? {{0,40}}\| {{0,40}}{NUMBER} ± {NUMBER} \|"
)
_BATCHED_HEAD: Final = "S_PP t/s |"
_TIMING: Final = re.compile(rf"(prompt )?eval time ?= {{0,12}}{NUMBER} ms / {{0,8}}(\d{{1,9}}) (?:tokens|runs)")
_TABLE_HEAD: Final = " Serving Benchmark Result "
_TABLE_ROW: Final = re.compile(rf"^([A-Z][\w ./-]{{2,40}}(?:\([\w/.]{{1,12}}\))?): {{1,60}}{NUMBER} {{0,20}}$")
_STEPS: Final = re.compile(rf"train_steps_per_second[\"']?\s{{0,12}}[=:]\s{{0,12}}[\"']?{NUMBER}")
_POOL: Final = re.compile(r"KV cache size: ([\d,]{1,16}) tokens")
_PRINTED: Final[Mapping[str, FigureName]] = {
    "seconds_per_step": "step",
    "seconds_per_request": "request",
    "seconds_to_first_token": "first-token",
    "seconds_per_output_token": "output-token",
}
"""Keys that the lines of PyTorch print which GPU Planner suggests for measuring."""
_KEY: Final = re.compile(rf"[\"']({'|'.join(_PRINTED)})[\"']: {{0,4}}(\d{{1,9}}(?:\.\d{{1,18}})?(?:e-\d{{1,2}})?)")

_STATED: Final = re.compile(r"[\"'](prompt_tokens|answer_tokens|requests)[\"']: {0,4}(\d{1,9})\b")


class _Interval(NamedTuple):
    """A value with the lowest and highest that it may be, by its rounding or its standard deviation."""

    value: float
    low: float
    high: float

    @property
    def is_positive(self) -> bool:
        """Return whether something was measured at all."""
        return self.value > 0


def read_figures(text: LogText) -> dict[LogFormat, tuple[LoggedFigure, ...]]:
    """Return the speeds and token counts in `text` by the format that states them, at most `MOST_FIGURES` in all."""
    found: dict[LogFormat, tuple[LoggedFigure, ...]] = {}
    room = MOST_FIGURES
    for name, read in _READERS.items():
        figures = tuple(read(text))[:room]
        room -= len(figures)
        if figures:
            found[name] = figures
    return found


def read_llama_bench_facts(text: LogText) -> tuple[str | None, str | None, str | None]:
    """Return build, model file and card that llama-bench names in its JSON, None for each that it does not."""
    first = next((test for test, _ in _json_tests(text, _BENCH_MARK)), {})
    build, model, card = first.get("build_number"), first.get("model_filename"), first.get("gpu_info")
    return (
        f"b{build}" if isinstance(build, int) and build > 0 else None,
        model.rpartition("/")[2][:200] if isinstance(model, str) and model else None,
        card[:200] if isinstance(card, str) and card else None,
    )


def _read_llama_bench(text: LogText) -> Iterator[LoggedFigure]:
    """Yield the speed of each test of `llama-bench -o json`, `jsonl` or `md`; tests of prompt and answer together not.

    The interval is the mean plus and minus one standard deviation of the repetitions.
    """
    for test, line in _json_tests(text, _BENCH_MARK):
        prompt, answer = _count(test, "n_prompt"), _count(test, "n_gen")
        name: FigureName = "generation" if answer else "prompt"
        deviation = _number(test, "stddev_ts") or 0.0
        value = _around(_number(test, "avg_ts"), deviation)
        if bool(prompt) != bool(answer) and value.is_positive:
            layers = _number(test, "n_gpu_layers")
            cache = test.get("type_k")
            yield _figure(
                name, value, line, prompt=prompt, answer=answer, depth=_count(test, "n_depth"), requests=1
            ).evolve(
                gpu_layers=None if layers is None or layers < 0 else int(layers),
                kv_cache=cache if isinstance(cache, str) else None,
            )
    for line in text.lines_with("| pp", "| tg", " pp", " tg") if text.has("t/s") else ():
        row = _BENCH_ROW.search(line.text)
        if row:
            value, tokens = _around(_float(row[4]), _float(row[5])), int(row[2])
            prompt, answer = (tokens, 0) if row[1] == "pp" else (0, tokens)
            kind: FigureName = "prompt" if prompt else "generation"
            if value.is_positive:
                yield _figure(kind, value, line, prompt=prompt, answer=answer, depth=int(row[3] or 0), requests=1)


def _read_batched_bench(text: LogText) -> Iterator[LoggedFigure]:
    """Yield the speeds of each test of `llama-batched-bench`, as a table or with `--output-format jsonl`."""
    for test, line in _json_tests(text, _BATCHED_MARK):
        counts = (_count(test, "pp"), _count(test, "tg"), _count(test, "pl"))
        yield from _batched(counts, _number(test, "speed_pp"), _number(test, "speed_tg"), line)
    for head in text.lines_with(_BATCHED_HEAD):
        columns = [cell.strip() for cell in head.text.split("|")]
        for line in text.after(head, _MOST_TABLE_LINES):
            cells = dict(zip(columns, (cell.strip() for cell in line.text.split("|")), strict=False))
            row = {name: _float(cells.get(name, "")) for name in ("PP", "TG", "B", "S_PP t/s", "S_TG t/s")}
            counts = (int(row["PP"] or 0), int(row["TG"] or 0), int(row["B"] or 0))
            yield from _batched(counts, row["S_PP t/s"], row["S_TG t/s"], line)


def _batched(
    counts: tuple[int, int, int], reading: float | None, generating: float | None, line: LogLine
) -> Iterator[LoggedFigure]:
    prompt, answer, requests = counts
    read, made = _around(reading, _HUNDREDTH), _around(generating, _HUNDREDTH)
    if requests and prompt and read.is_positive:
        yield _figure("prompt", read, line, prompt=prompt, requests=requests)
    if requests and answer and made.is_positive:
        yield _figure("generation", made, line, prompt=0, answer=answer, depth=prompt, requests=requests)


def _read_timings(text: LogText) -> Iterator[LoggedFigure]:
    """Yield the speeds of the longest request that llama.cpp timed: of its prompt, and of its answer."""
    longest: dict[bool, tuple[int, LoggedFigure]] = {}
    depth = 0
    for line in text.lines_with("eval time ="):
        found = _TIMING.search(line.text)
        if found is None:
            continue
        is_prompt, tokens, milliseconds = found[1] is not None, int(found[3]), _float(found[2]) or 0.0
        depth = tokens if is_prompt else depth
        if milliseconds <= 0 or tokens <= longest.get(is_prompt, (0,))[0]:
            continue
        rate, half = tokens * _THOUSAND / milliseconds, tokens * _THOUSAND * _HUNDREDTH / milliseconds**2
        value = _around(rate, half)
        longest[is_prompt] = (
            tokens,
            _figure("prompt", value, line, prompt=tokens, requests=1)
            if is_prompt
            else _figure("generation", value, line, answer=tokens, depth=depth, requests=1),
        )
    yield from (figure for _, figure in longest.values())


def _read_serving_table(text: LogText) -> Iterator[LoggedFigure]:
    """Yield throughput and latencies of each table of `vllm bench serve` or SGLang's `bench_serving`.

    Prompts and answers have the mean length of all requests. A table without a limit of concurrency has the mean
    number of requests in flight by Little's law.
    """
    for head in text.lines_with(_TABLE_HEAD):
        rows: dict[str, tuple[float, LogLine]] = {}
        for line in text.after(head, _MOST_TABLE_LINES):
            found = _TABLE_ROW.match(line.text)
            number = _float(found[2]) if found else None
            if found and number is not None:
                rows.setdefault(found[1].lower().strip(), (number, line))
        yield from _serving_figures({name: row[0] for name, row in rows.items()}, rows)


def _serving_figures(values: dict[str, float], rows: dict[str, tuple[float, LogLine]]) -> Iterator[LoggedFigure]:
    done = values.get("successful requests", 0.0)
    if done < 1:
        return
    prompt = round(values.get("total input tokens", 0.0) / done)
    answer = round(values.get("total generated tokens", 0.0) / done)
    first, each = values.get("mean ttft (ms)", 0.0), values.get("mean tpot (ms)", 0.0)
    in_flight = values.get("request throughput (req/s)", 0.0) * (first + each * max(answer - 1, 0)) / _THOUSAND
    limit = values.get("maximum request concurrency") or values.get("max request concurrency")
    requests = max(round(min(limit or in_flight, done)), 1)
    named: tuple[tuple[str, FigureName, float], ...] = (
        ("output token throughput (tok/s)", "throughput", 1.0),
        ("mean ttft (ms)", "first-token", _THOUSAND),
        ("mean tpot (ms)", "output-token", _THOUSAND),
    )
    for key, name, divisor in named:
        number, line = rows.get(key, (0.0, None))
        if line is not None and number > 0:
            value = _around(number / divisor, _HUNDREDTH / divisor)
            figure = _figure(name, value, line, prompt=prompt, answer=answer, requests=requests)
            yield figure.evolve(is_served=True)


def _read_steps(text: LogText) -> Iterator[LoggedFigure]:
    """Yield the Trainer's time of an optimizer step, its warm-up included, and what GPU Planner's own lines print."""
    for line in text.lines_with("train_steps_per_second"):
        found = _STEPS.search(line.text)
        rate = _float(found[1]) if found else None
        if rate is not None and rate > _HUNDREDTH / 10:
            half = _HUNDREDTH / 10
            yield _figure("step", _Interval(1 / rate, 1 / (rate + half), 1 / (rate - half)), line)
    for line in text.lines_with(*_PRINTED):
        stated = {found[1]: int(found[2]) for found in _STATED.finditer(line.text)}
        for found in _KEY.finditer(line.text):
            value = float(found[2])
            if value > 0:
                yield _figure(
                    _PRINTED[found[1]],
                    _Interval(value, value, value),
                    line,
                    prompt=stated.get("prompt_tokens"),
                    answer=stated.get("answer_tokens"),
                    requests=stated.get("requests"),
                )


def _read_pool_tokens(text: LogText) -> Iterator[LoggedFigure]:
    """Yield the last size in tokens that vLLM prints of its KV cache."""
    last: LoggedFigure | None = None
    for line in text.lines_with("KV cache size:"):
        found = _POOL.search(line.text)
        tokens = int(found[1].replace(",", "") or 0) if found else 0
        if tokens:
            last = _figure("cache-tokens", _Interval(tokens, tokens, tokens), line)
    if last is not None:
        yield last


_READERS: Final[Mapping[LogFormat, Callable[[LogText], Iterator[LoggedFigure]]]] = {
    "llama-bench": _read_llama_bench,
    "llama-batched-bench": _read_batched_bench,
    "llama.cpp": _read_timings,
    "serving-benchmark": _read_serving_table,
    "serving-metrics": read_metric_figures,
    "serving-results": read_result_figures,
    "step-times": _read_steps,
    "vllm": _read_pool_tokens,
}


def _json_tests(text: LogText, mark: str) -> Iterator[tuple[Mapping[str, object], LogLine]]:
    """Yield the objects with the key `mark` in a JSON array or in lines of JSON, with the line of that key."""
    lines = list(text.lines_with(mark))[:MOST_FIGURES]
    if not lines:
        return
    if lines[0].text.strip().startswith("{"):
        yield from ((found, line) for line in lines for found in _objects(line.text.strip()))
        return
    start, end = text.text.rfind("[", 0, text.text.find(mark)), text.text.rfind("]")
    tests = _objects(text.text[max(start, 0) : end + 1])
    yield from zip((test for test in tests if mark.strip('"') in test), lines, strict=False)


def _objects(source: str) -> Iterable[Mapping[str, object]]:
    try:
        data = parse_json(source)
    except UnreadableFileError:
        return ()
    return [item for item in (data if isinstance(data, list) else [data]) if isinstance(item, dict)]


def _figure(
    name: FigureName,
    value: _Interval,
    line: LogLine,
    *,
    prompt: int | None = None,
    answer: int | None = None,
    depth: int = 0,
    requests: int | None = None,
) -> LoggedFigure:
    return LoggedFigure(
        name=name,
        value=value.value,
        low=value.low,
        high=value.high,
        prompt_tokens=prompt,
        answer_tokens=answer,
        depth_tokens=depth,
        requests=requests,
        line=line.number,
        text=line.shown,
    )


def _around(value: float | None, half: float | None) -> _Interval:
    if value is None:
        return _Interval(0.0, 0.0, 0.0)
    return _Interval(value, max(value - (half or 0.0), 0.0), value + (half or 0.0))


def _number(test: Mapping[str, object], key: str) -> float | None:
    """Return a finite number in a test, None for anything else."""
    value = test.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _LARGEST else None


def _count(test: Mapping[str, object], key: str) -> int:
    return max(int(_number(test, key) or 0), 0)


def _float(number: str) -> float | None:
    try:
        value = float(number.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < _LARGEST else None
