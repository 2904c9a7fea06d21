"""A watcher that keeps what it hears, and requests for targets written in a test."""

import json
from pathlib import Path
from typing import Any

import torch

from planner.trace.request import Target, TraceRequest
from planner.trace.worker.build import build_run
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.running import run


class Heard(RunObserver):
    """Keeps phases, notes, and how many bytes were last labelled with each category."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, int]] = []
        self.notes: list[str] = []
        self.bytes: dict[str, int] = {}
        self.host: list[torch.Tensor] = []
        self.named: dict[str, Any] = {}

    def begin_phase(self, name, step):
        self.phases.append((name, step))

    def label(self, tensors, category, parameter=None):
        storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
        self.bytes[category] = self.bytes.get(category, 0) + sum(storages.values())

    def mark_on_host(self, tensors):
        self.host += tensors

    def register_modules(self, named):
        self.named = dict(named)

    def add_note(self, text):
        self.notes.append(text)


def file_target(folder: Path, source: str, name: str, file: str) -> Target:
    """Write `source` as a file of that name, and return the target `name` in it."""
    (folder / file).write_text("import torch\nfrom torch import nn\n" + source, encoding="utf-8")
    return Target(kind="file", place=str(folder / file), name=name)


def config_target(model_type: str, **fields: Any) -> Target:
    """Return a target of transformers by its configuration."""
    return Target(kind="config", place=model_type, config=json.dumps({"model_type": model_type} | fields))


def heard_run(request: TraceRequest) -> Heard:
    """Build and run `request` with real tensors, and return what was heard."""
    heard = Heard()
    run(build_run(request, heard), request, heard)
    return heard
