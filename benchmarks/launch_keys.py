r"""Keys that other programs know, read from their source and kept for the tests.

    python benchmarks/launch_keys.py SITE_PACKAGES … [--check]

Writes `tests/truth/launch-keys.json`: the fields of the classes that define each program's settings, with the program's
version. The packages are read, not imported, so that they need neither a GPU nor what they depend on:

    pip install --target FOLDER --no-deps vllm==0.33.0 accelerate==1.15.0 deepspeed==0.19.8 axolotl==0.19.0 \
        llamafactory==0.9.5 trl==1.16.0 transformers dstack==0.22.5 skypilot==0.14.1 torchtitan==0.3.0 sglang==0.5.23

The flags of llama-server are those of its README, and those of trtllm-serve and the keys of its file those of its
source at a commit, which are no packages: both stay as they are.
With `--check` it writes nothing, and ends with 1 where the file differs.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "truth" / "launch-keys.json"
SOURCES = {
    "vllm": ("vllm", ("vllm/engine/arg_utils.py",)),
    "sglang": ("sglang", ("sglang/srt/arg_groups/fields/*.py",)),
    "accelerate": ("accelerate", ("accelerate/commands/config/config_args.py", "accelerate/commands/launch.py")),
    "parallelism": ("accelerate", ("accelerate/parallelism_config.py",)),
    "deepspeed": ("deepspeed", ("deepspeed/runtime/zero/config.py", "deepspeed/runtime/zero/offload_config.py")),
    "axolotl": ("axolotl", ("axolotl/utils/schemas/*.py", "axolotl/integrations/*/args.py")),
    "llama-factory": ("llamafactory", ("llamafactory/hparams/*.py", "transformers/training_args.py")),
    "trl": (
        "trl",
        (
            "trl/trainer/base_config.py", "trl/trainer/sft_config.py", "trl/trainer/model_config.py",
            "trl/trainer/dpo_config.py", "trl/trainer/grpo_config.py", "trl/scripts/grpo.py",
            "trl/scripts/utils.py", "transformers/training_args.py",
        ),
    ),
    "torchtitan": (
        "torchtitan",
        (
            "torchtitan/config/configs.py", "torchtitan/config/manager.py", "torchtitan/trainer.py",
            "torchtitan/components/optimizer/optimizer.py", "torchtitan/components/loss.py",
            "torchtitan/components/checkpointer/base.py",
        ),
    ),
    "dstack": ("dstack", ("dstack/_internal/core/models/*.py",)),
}  # fmt: skip
CONSTANTS = {"deepspeed": "deepspeed/runtime/constants.py"}
KEPT = ("llama-server", "tensorrt-llm")
SCHEMAS = {"skypilot": ("skypilot", "sky/utils/schemas.py")}


def main() -> int:
    """Read the packages, and write the keys or compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    found = {name: _keys(name, package, files, arguments.folders) for name, (package, files) in SOURCES.items()}
    for name, (package, file) in SCHEMAS.items():
        found[name] = {
            "version": _version(package, arguments.folders),
            "keys": sorted(_strings(file, arguments.folders)),
        }
    found |= {name: kept[name] for name in KEPT}
    text = json.dumps(found, indent=1) + "\n"
    for name, entry in found.items():
        print(f"{name:14} {entry['version']:40} {len(entry['keys']):6,} keys")
    if arguments.check:
        return int(FILE.read_text() != text)
    FILE.write_text(text)
    return 0


def _keys(name: str, package: str, files: tuple[str, ...], folders: list[Path]) -> dict[str, object]:
    keys = {key for file in files for path in _paths(file, folders) for key in _fields(path)}
    if name in CONSTANTS:
        keys |= _strings(CONSTANTS[name], folders)
    return {"version": _version(package, folders), "keys": sorted(keys)}


def _paths(pattern: str, folders: list[Path]) -> list[Path]:
    found = sorted(path for folder in folders for path in folder.glob(pattern))
    if not found:
        sys.exit(f"{pattern}: not in {', '.join(map(str, folders))}")
    return found


def _fields(path: Path) -> Iterator[str]:
    """Yield the annotated fields of all classes in a file, their other names, and options of a command line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    yield statement.target.id
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"--[a-z]\w+", node.value):
            yield node.value.removeprefix("--")
        if isinstance(node, ast.keyword) and node.arg == "alias" and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def _strings(file: str, folders: list[Path]) -> set[str]:
    """Return the strings in a file that look like keys."""
    texts = (
        node.value
        for path in _paths(file, folders)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return {text for text in texts if re.fullmatch(r"[a-z][a-z0-9_]{2,60}", text)}


def _version(package: str, folders: list[Path]) -> str:
    names = [path.name for folder in folders for path in folder.glob(f"{package}-*.dist-info")]
    return names[0].removesuffix(".dist-info").replace("-", " ") if names else sys.exit(f"{package}: not installed")


if __name__ == "__main__":
    sys.exit(main())
