"""Where `catalog/`, `resources/` and the user's own folders are, in a checkout, a wheel or an editable install."""

import os
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_HOME_VARIABLE = "GPU_PLANNER_HOME"


@cache
def catalog_dir() -> Path:
    """Return the folder of the bundled catalog."""
    return _bundled("catalog")


@cache
def resources_dir() -> Path:
    """Return the folder of design tokens and icons."""
    return _bundled("resources")


@cache
def docs_dir() -> Path:
    """Return the folder of the manual's Markdown pages."""
    return _bundled("docs")


def state_dir() -> Path:
    """Return the user's folder for the autosaved plan, window state and logs, made if it is missing.

    The environment variable GPU_PLANNER_HOME, when set, replaces the platform's own folder.
    """
    override = os.environ.get(_HOME_VARIABLE)
    if override:
        folder = Path(override)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    from platformdirs import user_data_path

    return user_data_path("gpu-planner", appauthor=False, ensure_exists=True)


def recordings_dir() -> Path:
    """Return the user's folder for the recordings of traces, made if it is missing."""
    folder = state_dir() / "recordings"
    folder.mkdir(exist_ok=True)
    return folder


def prices_dir() -> Path:
    """Return the user's folder for fetched prices and offers of their own; it need not exist."""
    return state_dir() / "prices"


def own_hardware_file() -> Path:
    """Return the file of the user's own cards and their changes to bundled ones; it need not exist."""
    return state_dir() / "hardware.json"


def traces_dir() -> Path:
    """Return the user's folder for the recordings of traced modules, made if it is missing."""
    folder = state_dir() / "traces"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _bundled(name: str) -> Path:
    installed = _PACKAGE / f"_{name}"
    return installed if installed.is_dir() else _PACKAGE.parent / name
