"""Draw every tab, light and dark, at the smallest and at a usual size: `python benchmarks/screenshots.py FOLDER`."""

import os
import sys
import tempfile
from pathlib import Path

SIZES = ((1280, 800), (1920, 1080))
SETTLE_MS = 400


def main(folder: Path) -> None:
    """Write one PNG a tab, scheme and size into `folder`, and print their paths."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ["GPU_PLANNER_HOME"] = home
        draw(folder)


def draw(folder: Path) -> None:
    """Open the window as on a first start and draw it in every combination."""
    from PySide6.QtTest import QTest

    from planner.gui.app import create

    app, window = create(["gpu-planner"])
    for width, height in SIZES:
        window.resize(width, height)
        for scheme in ("light", "dark"):
            window.choose_scheme(scheme)
            for place in window.places:
                window.show_tab(place.key)
                QTest.qWait(SETTLE_MS)
                file = folder / f"{place.key}-{scheme}-{width}x{height}.png"
                window.grab().save(str(file))
                print(file)
    window.close()
    app.aboutToQuit.emit()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
