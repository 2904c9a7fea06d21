"""Runs of MLflow in a local database, under the names of MLflow's own system metrics."""

import logging
import os
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from planner.errors import RecordingError
from planner.installation import extra_command
from planner.monitor.recording.files import unwritable_error
from planner.parsing import flattened
from planner.present.trackers.run import (
    DATED,
    HOST_OWNER,
    PROJECT,
    RunStart,
    TextNote,
    TrackedMoment,
    TrackedPlan,
    dated_line,
)

_DATABASE: Final = "mlflow.db"
_MEGABYTE: Final = 1e6
# Requests are limited by MLflow itself.
_METRICS_PER_REQUEST: Final = 1000
_PARAMETERS_PER_REQUEST: Final = 100
_OWN_NAMES: Final = {
    ("gpu", "utilization_fraction"): "utilization_percentage",
    ("gpu", "memory_used_bytes"): "memory_usage_megabytes",
    ("gpu", "power_watts"): "power_usage_watts",
    ("host", "cpu_fraction"): "cpu_utilization_percentage",
    ("host", "memory_used_bytes"): "system_memory_usage_megabytes",
}
"""MLflow's names. **Source** mlflow/system_metrics/metrics of github.com/mlflow/mlflow, version 3.17.2."""
_SHARES: Final = {
    ("gpu", "memory_used_bytes"): "memory_usage_percentage",
    ("gpu", "power_watts"): "power_usage_percentage",
    ("host", "memory_used_bytes"): "system_memory_usage_percentage",
}
"""MLflow's names of a quantity as a share of its limit."""
_UNITS: Final = {
    "_bytes_per_s": ("_megabytes_per_second", 1 / _MEGABYTE),
    "_bytes": ("_megabytes", 1 / _MEGABYTE),
    "_fraction": ("_percentage", 100.0),
}


class MlflowRun:
    """A run in the database `FOLDER/mlflow.db`, in the experiment `gpu-planner`; nothing leaves this machine.

    Raises:
        RecordingError: If mlflow is not installed, or refuses the database.
    """

    # As MLflow's own system metrics, which are means as well; writing takes ten times as long as in an event file.
    interval_seconds = 10.0

    def __init__(self, folder: Path, start: RunStart) -> None:
        self.place = folder / _DATABASE
        self._mlflow = _import_mlflow(self.place)
        self._entities = import_module("mlflow.entities")
        self._pending: list[Any] = []
        self._texts: dict[str, list[str]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable_error(folder, error) from error
        self._client: Any = self._called(self._mlflow.MlflowClient, f"sqlite:///{self.place.absolute().as_posix()}")
        milliseconds = round(start.wall_seconds * 1000)
        experiment = self._experiment(folder.absolute() / "mlartifacts")
        tags = {"mlflow.source.name": start.program, "mlflow.source.type": "LOCAL"}
        run = self._called(self._client.create_run, experiment, start_time=milliseconds, tags=tags, run_name=start.name)
        self._id = run.info.run_id

    @property
    def view_command(self) -> str:
        """Return the shell command that shows the run."""
        return shlex.join(("mlflow", "ui", "--backend-store-uri", f"sqlite:///{self.place.as_posix()}"))

    def add_values(self, moment: TrackedMoment) -> None:
        """Write the values of a moment.

        Raises:
            RecordingError: If mlflow refuses them.
        """
        milliseconds, new = round(moment.wall_seconds * 1000), self._entities.Metric
        self._pending += [new(key, value, milliseconds, moment.step) for key, value in mlflow_metrics(moment)]
        if len(self._pending) >= _METRICS_PER_REQUEST:
            self.flush()

    def add_text(self, tag: str, note: TextNote) -> None:
        """Keep a text for the file `TAG.md` of the run."""
        self._texts.setdefault(tag, []).append(dated_line(note) if tag in DATED else note.text)

    def add_plan(self, plan: TrackedPlan, note: TextNote) -> None:
        """Write the plan's fields as parameters, and the plan as a file.

        Raises:
            RecordingError: If mlflow refuses them.
        """
        new = self._entities.Param
        fields = [(name, value) for name, value in flattened(plan.fields) if value not in (None, [])]
        parameters = [new(f"plan.{name}", str(value)) for name, value in fields]
        for first in range(0, len(parameters), _PARAMETERS_PER_REQUEST):
            chosen = parameters[first : first + _PARAMETERS_PER_REQUEST]
            self._called(self._client.log_batch, self._id, params=chosen)
        self._called(self._client.log_dict, self._id, dict(plan.fields), "plan.json")
        self.add_text("plan", note)

    def flush(self) -> None:
        """Write the pending values.

        Raises:
            RecordingError: If mlflow refuses them.
        """
        pending, self._pending = self._pending, []
        for first in range(0, len(pending), _METRICS_PER_REQUEST):
            chosen = pending[first : first + _METRICS_PER_REQUEST]
            self._called(self._client.log_batch, self._id, metrics=chosen)

    def close(self, wall_seconds: float) -> None:
        """Write what is pending, the texts as files, and the end of the run.

        Raises:
            RecordingError: If mlflow refuses them.
        """
        self.flush()
        for tag, texts in self._texts.items():
            self._called(self._client.log_text, self._id, "\n".join(texts) + "\n", f"{tag}.md")
        self._called(self._client.set_terminated, self._id, end_time=round(wall_seconds * 1000))

    def _experiment(self, artifacts: Path) -> str:
        found = self._called(self._client.get_experiment_by_name, PROJECT)
        if found is not None:
            return str(found.experiment_id)
        return str(self._called(self._client.create_experiment, PROJECT, artifact_location=artifacts.as_uri()))

    def _called(self, function: Any, *values: object, **named: object) -> Any:  # noqa: ANN401  # whatever mlflow gives
        """Return what a function of mlflow returns."""
        try:
            return function(*values, **named)
        except (self._mlflow.MlflowException, OSError) as error:
            reason = f"mlflow failed: {str(error).splitlines()[0][:300]}"
            raise RecordingError(self.place, reason, "Export to another folder, or update mlflow.") from error


def mlflow_metrics(moment: TrackedMoment) -> Iterator[tuple[str, float]]:
    """Yield the values of a moment under MLflow's names, and what it has no name for under similar ones.

    Percentages are from 0 to 100, megabytes are 10⁶ bytes.
    """
    for owner, quantities in moment.values.items():
        for name, value in quantities.items():
            key, factor = _name_and_factor(owner, name)
            yield key, value * factor
            share = moment.share(owner, name, value)
            if share is not None and (share_name := _SHARES.get((_kind(owner), name))) is not None:
                yield f"{_prefix(owner)}{share_name}", 100.0 * share
    for owner, quantities in moment.peaks.items():
        for name, value in quantities.items():
            key, factor = _name_and_factor(owner, name)
            yield f"{key}/max", value * factor


def _name_and_factor(owner: str, quantity: str) -> tuple[str, float]:
    renamed = _OWN_NAMES.get((_kind(owner), quantity), "")
    for ending, (unit, factor) in _UNITS.items():
        if quantity.endswith(ending):
            return f"{_prefix(owner)}{renamed or quantity.removesuffix(ending) + unit}", factor
    return f"{_prefix(owner)}{renamed or quantity}", 1.0


def _kind(owner: str) -> str:
    return owner.partition("/")[0]


def _prefix(owner: str) -> str:
    """Return what precedes a quantity: `system/gpu_0_`, `system/gpu_0_mig_1_`, `system/` or `plan/gpu_0_`."""
    if owner == HOST_OWNER:
        return "system/"
    kind, _, number = owner.partition("/")
    tab = "plan" if kind == "plan" else "system"
    return f"{tab}/gpu_{number.replace('/', '_')}_"


def _import_mlflow(place: Path) -> ModuleType:
    """Import mlflow with its telemetry off."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    try:
        import_module("sqlalchemy")
        mlflow = import_module("mlflow")
    except ImportError as error:
        hint = f"Export as tensorboard, or run: {extra_command('mlflow')}"
        raise RecordingError(place, "MLflow needs the package mlflow", hint) from error
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return mlflow
