"""Entry point of the command `gpu-planner` and of `python -m planner`."""

import signal
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; Ctrl+C is quiet even while the modules are being imported."""
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


if __name__ == "__main__":
    sys.exit(main())
