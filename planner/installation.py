"""Advice on installing: shell commands that add packages to this installation of GPU Planner, and how to update it.

No command takes GPU Planner from a package index: it is on none, and whoever registers its name there is a stranger.
"""

import json
import re
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

Extra = Literal["app", "hub", "metrics", "mlflow", "parquet", "torch", "wandb"]
_NAME: Final = "gpu-planner"
_PACKAGES: Final = {
    "app": ("PySide6-Essentials>=6.8,<6.12", "pyqtgraph==0.14.*"),
    "hub": ("huggingface_hub",),
    "metrics": ("prometheus-client",),
    "mlflow": ("mlflow-skinny", "sqlalchemy", "alembic"),
    "parquet": ("pyarrow",),
    "torch": ("torch", "transformers"),
    "wandb": ("wandb",),
}
_PACKAGE: Final = Path(__file__).resolve().parent


def extra_command(extra: Extra) -> str:
    """Return the shell command that installs the optional packages called `extra`, such as `torch`.

    It names the checkout, folder or file that GPU Planner was installed from, or else the packages themselves.
    """
    checkout, url = _checkout(), _origin_url()
    if not _is_in_pipx() and checkout is not None:
        return _command(*_installer(), "-e", f"{checkout}[{extra}]")
    if not _is_in_pipx() and url is not None:
        folder = _local_path(url)
        is_folder = folder is not None and folder.is_dir()
        return _command(*_installer(), f"{folder}[{extra}]" if is_folder else f"{_NAME}[{extra}] @ {url}")
    return package_command(*_PACKAGES[extra])


def package_command(*packages: str) -> str:
    """Return the shell command that installs `packages` for the interpreter that runs GPU Planner."""
    if _is_in_pipx():
        return _command("pipx", "inject", Path(sys.prefix).name, *packages)
    return _command(*_installer(), *packages)


def update_hint() -> str:
    """Return how to get a newer version of GPU Planner from where this one came from."""
    checkout, url = _checkout(), _origin_url()
    folder = checkout or (None if url is None else _local_path(url))
    if folder is not None and folder.is_dir():
        install = "" if checkout else f", then: {_command(*_installer(), str(folder))}"
        return f"Update GPU Planner: {_command('git', '-C', str(folder), 'pull')}{install}"
    return "Install a newer release of GPU Planner." + ("" if url is None else f" This one came from {url}")


def _installer() -> Sequence[str]:
    """Return the words before the names of packages: pip of this interpreter or, where it has none, uv."""
    if find_spec("pip") is None:
        return "uv", "pip", "install", "--python", sys.executable
    return sys.executable, "-m", "pip", "install"


def _is_in_pipx() -> bool:
    return (Path(sys.prefix) / "pipx_metadata.json").is_file()


def _checkout() -> Path | None:
    """Return the folder of the repository that this program runs from, or None if it was copied elsewhere."""
    folder = _PACKAGE.parent
    return folder if (folder / "pyproject.toml").is_file() else None


def _origin_url() -> str | None:
    """Return the URL of the folder, file or repository that was installed, or None if it is unknown or gone."""
    # Few starts need advice, and this takes longer than all of this module.
    from importlib import metadata

    try:
        recorded = json.loads(metadata.distribution(_NAME).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return None
    url = recorded.get("url")
    if url is None:
        return None
    version_control = recorded.get("vcs_info")
    if version_control is not None:
        return f"{version_control['vcs']}+{url}"
    path = _local_path(url)
    return url if path is None or path.exists() else None


def _local_path(url: str) -> Path | None:
    """Return the path of a `file:` URL, or None for another URL."""
    from urllib.request import url2pathname

    scheme, _, rest = url.partition("://")
    return Path(url2pathname(rest)) if scheme == "file" else None


def _command(*words: str) -> str:
    """Return `words` as a line for the system's shell."""
    if sys.platform != "win32":
        return shlex.join(words)
    return " ".join(f'"{word}"' if re.search(r"[\s&|<>^]", word) else word for word in words)
