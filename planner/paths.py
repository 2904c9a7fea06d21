"""Paths of `catalog/`, `resources/` and the user's folders, in a checkout, a wheel or an editable install."""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_HOME_VARIABLE = "GPU_PLANNER_HOME"
_NOWHERE = Path(os.devnull) / "gpu-planner"
"""Path below a device, where nothing can be read or kept."""


def catalog_dir() -> Path:
    """Return the folder of the bundled catalog."""
    return _bundled_dir("catalog")


def resources_dir() -> Path:
    """Return the folder of design tokens, icons and the glossary."""
    return _bundled_dir("resources")


def docs_dir() -> Path:
    """Return the folder of the manual's Markdown pages."""
    return _bundled_dir("docs")


def state_dir() -> Path:
    """Return the user's folder for the autosaved plan, window state and logs; the folder may be missing.

    The environment variable GPU_PLANNER_HOME overrides the platform's default. Whoever keeps something creates the
    folder, so that an answer needs no folder that can be written.
    """
    override = os.environ.get(_HOME_VARIABLE)
    if override:
        return Path(override)
    from platformdirs import user_data_path

    # For a user without a home it raises an error or, in older versions, returns ~, a folder in the working folder.
    try:
        folder = user_data_path("gpu-planner", appauthor=False)
    except RuntimeError:
        return _NOWHERE
    return folder if folder.is_absolute() else _NOWHERE


def prices_dir() -> Path:
    """Return the user's folder for fetched prices and custom offers; the folder may be missing."""
    return state_dir() / "prices"


def own_hardware_file() -> Path:
    """Return the user's file of custom GPUs and of changes to bundled GPUs; the file may be missing."""
    return state_dir() / "hardware.json"


def traces_dir() -> Path:
    """Return the user's folder for recordings of traced modules; the folder may be missing."""
    return state_dir() / "traces"


def _bundled_dir(name: str) -> Path:
    """Return the folder `name` of the installed package, or else of the checkout."""
    installed = _PACKAGE / f"_{name}"
    return installed if installed.is_dir() else _PACKAGE.parent / name
