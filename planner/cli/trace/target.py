"""What the first word of `gpu-planner trace` stands for: a module in a file or a package, or a model."""

import json
import re
from pathlib import Path
from typing import Final

from planner.errors import SpecError
from planner.models.catalog import ModelCatalog
from planner.models.load import load_config
from planner.trace.candidates import find_candidates
from planner.trace.request import Target

_PYTHON: Final = ".py"
_NAME: Final = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_IN_PACKAGE: Final = re.compile(rf"(?P<place>{_NAME}):(?P<name>{_NAME})")


def target_of(word: str, models: ModelCatalog) -> Target:
    """Return what to trace: `net.py:Net`, `package.module:Net`, a `config.json`, its folder, or a name of `models`.

    Raises:
        PlannerError: If it is none of these, or cannot be read. Where a Python file stands without a name, the hint
            lists those that it offers; nothing of it is run.
    """
    # From the last colon on: the letter of a drive has one as well.
    place, _, name = word.rpartition(":")
    if place.endswith(_PYTHON):
        return _in_file(Path(place), name)
    if word.endswith(_PYTHON):
        return _in_file(Path(word), "")
    packaged = _IN_PACKAGE.fullmatch(word)
    if packaged is not None:
        return Target(kind="import", place=packaged["place"], name=packaged["name"])
    title, config = load_config(word, models)
    return Target(kind="config", place=title, config=json.dumps(config))


def _in_file(path: Path, name: str) -> Target:
    if not path.is_file():
        raise SpecError("TARGET", f"there is no file {path}", "Check its spelling, or name its whole path.")
    if not name:
        offered = [f"{path}:{candidate.name}" for candidate in find_candidates(path)]
        hint = f"Write {' or '.join(offered)}." if offered else "It has no module class and no function of its own."
        raise SpecError("TARGET", f"{path} needs the name of a module or a function", hint)
    return Target(kind="file", place=str(path), name=name)
