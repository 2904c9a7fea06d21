"""Write what a bundle ships: a CycloneDX list of its Python parts, and their licences.

Run with the Python that the bundle is made of: python .ci/parts.py FOLDER
"""

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

EXTRAS = ("app", "hub", "metrics", "parquet")


def shipped(name: str) -> dict[str, Distribution]:
    """Return the distribution `name` and all that it needs here, by name."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        each = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if each in found:
            continue
        try:
            found[each] = distribution(each)
        except PackageNotFoundError:
            continue  # for another system or Python, or an extra that is not installed
        for needed in found[each].requires or ():
            extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", needed)
            if extra is None or (each == name and extra[1] in EXTRAS):
                waiting.append(re.split(r"[^\w.-]", needed, maxsplit=1)[0])
    return dict(sorted(found.items()))


def licence(part: Distribution) -> str:
    """Return the licence that a distribution states: its expression, or the last words of its classifiers."""
    stated = part.metadata.get("License-Expression") or ""
    named = [text.rpartition(" :: ")[2] for text in part.metadata.get_all("Classifier") or () if "License ::" in text]
    return stated or "; ".join(named) or (part.metadata.get("License") or "not stated").partition("\n")[0]


def component(name: str, part: Distribution) -> dict[str, object]:
    """Return a distribution as a component of CycloneDX."""
    return {
        "type": "library",
        "name": name,
        "version": part.version,
        "purl": f"pkg:pypi/{name}@{part.version}",
        "licenses": [{"license": {"name": licence(part)}}],
    }


def notice(name: str, part: Distribution) -> str:
    """Return a distribution's name, licence and the texts of its licence files."""
    files = [file for file in part.files or () if re.match(r"(licen[cs]e|copying|notice)", file.name, re.IGNORECASE)]
    texts = [Path(str(file.locate())).read_text(encoding="utf-8", errors="replace") for file in files]
    return "\n\n".join((f"{name} {part.version}: {licence(part)}", *texts))


def main() -> None:
    """Write `sbom.json` and `NOTICES.txt` into the folder that is named."""
    folder = Path(sys.argv[1])
    parts = shipped("gpu-planner")
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component("gpu-planner", parts["gpu-planner"]) | {"type": "application"}},
        "components": [component(name, part) for name, part in parts.items() if name != "gpu-planner"],
    }
    (folder / "sbom.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    python = f"Python {sys.version.split()[0]}: PSF-2.0, https://docs.python.org/3/license.html"
    notices = [python, *(notice(name, part) for name, part in parts.items())]
    (folder / "NOTICES.txt").write_text(f"\n\n{'=' * 80}\n\n".join(notices) + "\n", encoding="utf-8")
    print(f"{len(parts)} parts in sbom.json and NOTICES.txt")


if __name__ == "__main__":
    main()
