"""Entry point of the command `gpu-planner` and of `python -m planner`."""

import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType

_PLUGIN_LOADER = "pydantic.plugin._loader"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command in a process of its own, and return the exit code.

    Ctrl+C is quiet even while the modules are being imported. A command that answers once needs no garbage collection,
    neither while it runs nor when it ends; the window and the monitor, which run for long, turn it on again.
    """
    gc.disable()
    atexit.register(gc.freeze)
    _skip_plugins()
    # Libraries turn an interruption of their import into errors of their own; the system ends the process without.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from planner.cli.main import interrupt
        from planner.cli.main import main as run
    except ImportError as error:
        sys.stderr.write(f"error: GPU Planner is not completely installed: {error}\nhint: Install it again.\n")
        return 3
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    return run(argv)


def _skip_plugins() -> None:
    """Keep pydantic from searching the installed packages for plugins, which this program does not use.

    Even where plugins are disabled, pydantic's loader imports the standard library's parsers of package metadata,
    e-mail and archives among them. An empty loader takes its place. If pydantic renames its own, it does nothing.
    """
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    loader = ModuleType(_PLUGIN_LOADER)
    vars(loader)["get_plugins"] = tuple
    sys.modules.setdefault(_PLUGIN_LOADER, loader)


if __name__ == "__main__":
    sys.exit(main())
