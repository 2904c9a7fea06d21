r"""Show that launch files are right, for all programs, places and plans of the tests.

    python benchmarks/launch_matrix.py --programs PYTHON --places PYTHON [--only PROGRAM …]

Writes the files of each plan in `tests/launch/launched.py` with each program in each place. Their keys are checked by
the parsers of the programs themselves, run by the Pythons of two environments (`requirements-launch.txt` and
`requirements-places.txt`), which also check the files of the places; keys of servers by the lists in
`tests/truth/launch-keys.json`. Each file is read again without its comments. Ends with 1 if anything is wrong.

The first table has a row for each program: plans that it can express, keys, those that it does not know, the files that
its own parser read, and how many fields of plans are named as not expressed. The second has a column for each place:
the plans whose files the place's own parser read. Below stand, for all: fields read back otherwise or dropped without a
word, and estimates that differ.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "launch"))

from launched import PLANS, differences, read_back, written  # noqa: E402

import planner  # noqa: E402
from planner.errors import SpecError  # noqa: E402
from planner.launch.launch import LaunchSettings  # noqa: E402
from planner.launch.places import PLACES  # noqa: E402
from planner.launch.software import LAUNCHERS  # noqa: E402

VALIDATORS = ROOT / "benchmarks" / "launch_validators.py"
KEYS = json.loads((ROOT / "tests" / "truth" / "launch-keys.json").read_text())
LISTED = {
    "vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "tensorrt-llm", "llama-server": "llama-server",
    "ollama": "llama-server",
}  # fmt: skip
MODELFILE = {
    "FROM", "num_ctx", "num_gpu", "-f",
    "OLLAMA_NUM_PARALLEL", "OLLAMA_KV_CACHE_TYPE", "OLLAMA_FLASH_ATTENTION", "OLLAMA_SCHED_SPREAD",
}  # fmt: skip
"""Keys that Ollama's own documents name."""
Case = tuple[str, str, str]


def main() -> int:
    """Write, check and read all files, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help="Python with the training programs")
    parser.add_argument("--places", required=True, help="Python with dstack, SkyPilot and the schemas")
    parser.add_argument("--only", nargs="*", default=list(LAUNCHERS), choices=list(LAUNCHERS))
    arguments = parser.parse_args()
    catalog = planner.load_catalog()
    with tempfile.TemporaryDirectory() as root:
        launched: dict[Case, LaunchSettings] = {}
        wrong: list[str] = []
        folders: dict[Case, Path] = {}
        for number, (name, program, place) in enumerate(
            (name, program, place) for program in arguments.only for place in PLACES for name in PLANS
        ):
            settings = written(PLANS[name], catalog, program, place)
            if isinstance(settings, SpecError):
                continue
            case = (program, place, name)
            launched[case] = settings
            bare, full = Path(root) / f"{number}-bare", Path(root) / f"{number}"
            bare.mkdir()
            full.mkdir()
            for file in settings.files:
                (full / file.name).write_text(file.text)
            folders[case] = full
            recipe = read_back(settings, bare)
            found = [str(one) for one in differences(settings, recipe, catalog)]
            found += [f"unknown on reading: {key.key}" for key in recipe.ignored if key.reason.startswith("unknown")]
            wrong += [f"{' · '.join(case)}: {one}" for one in found]
        by_program = [
            [case, case[0], str(folders[case]), _words(settings)]
            for case, settings in launched.items()
            if case[1] == "shell" and case[0] not in LISTED
        ]
        by_place = [[case, case[1], str(folders[case]), _words(settings)] for case, settings in launched.items()]
        program_findings = _findings(arguments.programs, by_program)
        place_findings = _findings(arguments.places, by_place)
    unlisted = _unlisted(launched)
    _print_tables(launched, program_findings, place_findings, unlisted)
    refused = [*program_findings.items(), *place_findings.items()]
    problems = [
        *wrong,
        *(f"{' · '.join(case)}: {error}" for case, error in refused if error),
        *(f"{program}: unknown key {key}" for program, keys in unlisted.items() for key in sorted(keys)),
    ]
    print(f"\n{len(launched)} sets of files; {len(wrong)} fields or estimates read back otherwise or dropped unsaid; "
          f"{sum(map(bool, program_findings.values()))} of {len(program_findings)} refused by their program, "
          f"{sum(map(bool, place_findings.values()))} of {len(place_findings)} by their place")  # fmt: skip
    print(*dict.fromkeys(problems), sep="\n")
    return int(bool(problems))


def _words(settings: LaunchSettings) -> list[str]:
    return shlex.split(settings.command)


def _findings(python: str, cases: list[list[Any]]) -> dict[Case, str]:
    done = subprocess.run(
        [python, str(VALIDATORS)], input=json.dumps(cases), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    missing = Counter(line for line in done.stderr.splitlines() if "No module named" in line)
    for line, count in missing.items():
        print(f"not checked, {count} times: {line}", file=sys.stderr)
    return {tuple(case): error for case, error in json.loads(done.stdout)}  # type: ignore[misc]


def _unlisted(launched: dict[Case, LaunchSettings]) -> dict[str, set[str]]:
    """Return the keys of servers that the list of the named version does not have."""
    found: dict[str, set[str]] = defaultdict(set)
    for (program, _, _), settings in launched.items():
        if program in LISTED:
            known = set(KEYS[LISTED[program]]["keys"])
            for row in settings.settings:
                key = row.key.rpartition(".")[2]
                spellings = {key, key.removeprefix("--").replace("-", "_")}
                if not spellings & known and not (program == "ollama" and row.key in MODELFILE):
                    found[program].add(row.key)
    return found


def _print_tables(
    launched: dict[Case, LaunchSettings],
    program_findings: dict[Case, str],
    place_findings: dict[Case, str],
    unlisted: dict[str, set[str]],
) -> None:
    print(f"{'program':14} {'version':34} {'plans':>5} {'keys':>5} {'unknown':>7}  {'read by':24} named fields")
    for program in dict.fromkeys(case[0] for case in launched):
        own = {case: settings for case, settings in launched.items() if case[0] == program}
        keys = {row.key for settings in own.values() for row in settings.settings}
        checked = {case: error for case, error in program_findings.items() if case[0] == program}
        refused = sum(map(bool, checked.values()))
        reader = f"own parser, {len(checked) - refused} of {len(checked)}" if checked else "list of its flags"
        unknown = len(unlisted.get(program, ())) if program in LISTED else refused
        named = {row.field for settings in own.values() for row in settings.not_expressed}
        version = LAUNCHERS[program].version
        plans = len({case[2] for case in own})
        print(f"{program:14} {version:34} {plans:5} {len(keys):5} {unknown:7}  {reader:24} {len(named)}")
    print(f"\n{'program':14} " + " ".join(f"{place:>12}" for place in PLACES))
    for program in dict.fromkeys(case[0] for case in launched):
        cells = []
        for place in PLACES:
            cases = [case for case in launched if case[:2] == (program, place)]
            good = sum(place_findings.get(case, "not checked") == "" for case in cases)
            cells.append(f"{good} of {len(cases)}" if cases else "refused")
        print(f"{program:14} " + " ".join(f"{cell:>12}" for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
