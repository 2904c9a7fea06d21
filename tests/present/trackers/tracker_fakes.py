"""Stand-ins for the packages mlflow and wandb, which are too large for every test run: what is asked of them.

`benchmarks/trackers.py` asks the same of the packages themselves.
"""

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple


class FakeMetric(NamedTuple):
    key: str
    value: float
    timestamp: int
    step: int


class FakeParam(NamedTuple):
    key: str
    value: str


class FakeMlflow(ModuleType):
    """The module mlflow with a client that keeps what it is told; `failing` names a function that fails."""

    class MlflowException(Exception):  # noqa: N818  # mlflow's own name
        pass

    def __init__(self):
        super().__init__("mlflow")
        self.failing = ""
        self.uri = ""
        self.experiments, self.runs, self.batches = {}, [], []
        self.metrics, self.params, self.files, self.ended = [], {}, {}, None
        self.entities = ModuleType("mlflow.entities")
        self.entities.Metric, self.entities.Param = FakeMetric, FakeParam

    def MlflowClient(self, uri):  # noqa: N802  # mlflow's own name
        self.uri = uri
        return self

    def _may_fail(self, name):
        if self.failing == name:
            raise self.MlflowException(f"{name} is refused\nand more")

    def get_experiment_by_name(self, name):
        self._may_fail("get_experiment_by_name")
        return SimpleNamespace(experiment_id=self.experiments[name]) if name in self.experiments else None

    def create_experiment(self, name, artifact_location):
        assert artifact_location.startswith("file://")
        self.experiments[name] = str(len(self.experiments) + 1)
        return self.experiments[name]

    def create_run(self, experiment_id, start_time, tags, run_name):
        self.runs.append((experiment_id, start_time, tags, run_name))
        return SimpleNamespace(info=SimpleNamespace(run_id="one"))

    def log_batch(self, run_id, metrics=(), params=()):
        self._may_fail("log_batch")
        assert run_id == "one"
        assert len(metrics) <= 1000
        assert len(params) <= 100
        self.batches.append(len(metrics))
        self.metrics += metrics
        self.params |= {param.key: param.value for param in params}

    def log_dict(self, run_id, content, name):
        self.files[name] = content

    def log_text(self, run_id, text, name):
        self.files[name] = text

    def set_terminated(self, run_id, end_time):
        self.ended = end_time


class FakeWandb(ModuleType):
    """The module wandb with one run that keeps what it is told."""

    class Error(Exception):
        pass

    def __init__(self):
        super().__init__("wandb")
        self.failing = ""
        self.rows, self.axes, self.config, self.is_finished, self.settings = [], {}, {}, False, {}
        self.Settings = dict

    def init(self, project, dir, mode, name, settings, config):  # noqa: A002  # wandb's own name
        self._may_fail("init")
        assert (project, mode) == ("gpu-planner", "offline")
        self.settings, self.name = settings, name
        self.config |= config
        files = Path(dir) / "wandb" / "offline-run-1" / "files"
        files.mkdir(parents=True)
        return SimpleNamespace(
            dir=str(files),
            define_metric=lambda pattern, step_metric=None: self.axes.update({pattern: step_metric}),
            log=self._log,
            config=SimpleNamespace(update=lambda values, allow_val_change: self.config.update(values)),
            finish=self._finish,
        )

    def _may_fail(self, name):
        if self.failing == name:
            raise self.Error(f"{name} is refused")

    def _log(self, row):
        self._may_fail("log")
        self.rows.append(row)

    def _finish(self):
        self.is_finished = True
