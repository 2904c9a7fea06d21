r"""Check launch files with the parsers of the programs that read them; part of `benchmarks/launch_matrix.py`.

    PYTHON benchmarks/launch_validators.py < CASES.json > FINDINGS.json

Runs with the Python of an environment that has the programs. A case is `[name, check, folder, words]`: what is checked
there, the folder of the files, and the command's words. A finding is `[name, error]`, with an empty error if the files
are right; a program that is not installed gives none.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Words = list[str]


def _document(path: Path) -> Any:
    import yaml

    return yaml.safe_load(path.read_text())


def _accelerate(folder: Path, words: Words) -> None:
    """Read the configuration by its strict class, and the command by the launcher's own parser."""
    from accelerate.commands.config.config_args import ClusterConfig
    from accelerate.commands.launch import launch_command_parser
    from accelerate.parallelism_config import ParallelismConfig
    from accelerate.utils import FullyShardedDataParallelPlugin

    config = ClusterConfig.from_yaml_file(str(folder / "accelerate.yaml"))
    parser = launch_command_parser()
    known = {action.dest for action in parser._actions}  # noqa: SLF001, nothing public tells its options
    for section in ("fsdp_config", "deepspeed_config"):
        _refuse(set(getattr(config, section) or {}) - known - {"fsdp_activation_checkpointing"}, section)
    if config.fsdp_config:
        fields = set(FullyShardedDataParallelPlugin.__dataclass_fields__)
        names = {key.removeprefix("fsdp_") for key in config.fsdp_config} - {"version"}
        _refuse({name for name in names if name not in fields and name != "offload_params"}, "fsdp_config")
    own = {f"parallelism_config_{name}" for name in ParallelismConfig.__dataclass_fields__}
    _refuse(set(config.parallelism_config or {}) - own, "parallelism_config")
    parser.parse_args(words[2:])


def _deepspeed(folder: Path, _words: Words) -> None:
    """Read the file by DeepSpeed's pydantic models; other keys must be constants of its configuration."""
    document = json.loads((folder / "ds_config.json").read_text())
    _deepspeed_keys(document)


def _deepspeed_keys(document: dict[str, Any]) -> None:
    from deepspeed.runtime import constants
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    DeepSpeedZeroConfig(**document.get("zero_optimization", {}))
    names = {value for name, value in vars(constants).items() if name.isupper() and isinstance(value, str)}
    _refuse(set(document) - names - {"zero_optimization"}, "ds_config.json")


def _trl(folder: Path, _words: Words) -> None:
    """Read the file by the parser of `trl sft`, `trl dpo` or `trl grpo`."""
    from trl import DPOConfig, GRPOConfig, ModelConfig, ScriptArguments, SFTConfig, TrlParser
    from trl.scripts.grpo import GRPOScriptArguments

    classes = {
        "sft": (ScriptArguments, SFTConfig),
        "dpo": (ScriptArguments, DPOConfig),
        "grpo": (GRPOScriptArguments, GRPOConfig),
    }
    name = next(name for name in classes if (folder / f"{name}.yaml").exists())
    document = _without_gpu(_document(folder / f"{name}.yaml"))
    _deepspeed_in(document)
    TrlParser((*classes[name], ModelConfig)).parse_dict(document, allow_extra_keys=False)


def _llama_factory(folder: Path, _words: Words) -> None:
    """Read the file by LLaMA-Factory's argument classes, which refuse unknown keys."""
    os.environ["DISABLE_VERSION_CHECK"] = "1"
    from llamafactory.hparams import DataArguments, FinetuningArguments, GeneratingArguments, ModelArguments
    from transformers import HfArgumentParser, Seq2SeqTrainingArguments

    document = _without_gpu(_document(folder / "llama_factory.yaml"))
    _deepspeed_in(document)
    kinds = (ModelArguments, DataArguments, Seq2SeqTrainingArguments, FinetuningArguments, GeneratingArguments)
    HfArgumentParser(kinds).parse_dict(document, allow_extra_keys=False)


def _axolotl(folder: Path, _words: Words) -> None:
    """Read the file by axolotl's pydantic model, whose unknown keys are named by comparison."""
    from axolotl.utils.schemas.config import AxolotlInputConfig

    document = _document(folder / "axolotl.yaml")
    _deepspeed_in(document)
    names = set(AxolotlInputConfig.model_fields)
    names |= {str(field.alias) for field in AxolotlInputConfig.model_fields.values() if field.alias}
    for plugin in document.get("plugins") or ():
        names |= _plugin_fields(plugin)
    _refuse(set(document) - names, "axolotl.yaml")
    AxolotlInputConfig.model_validate(document)


def _plugin_fields(plugin: str) -> set[str]:
    import importlib

    module = importlib.import_module(f"{plugin.rpartition('.')[0]}.args")
    return {name for kind in vars(module).values() for name in getattr(kind, "model_fields", {})}


def _torchtitan(_folder: Path, words: Words) -> None:
    """Read the arguments by torchtitan's own parser."""
    import torchtitan.models.llama3.config_registry  # noqa: F401
    from torchtitan.config.manager import ConfigManager

    ConfigManager().parse_args(words[words.index("torchtitan.train") + 1 :])


def _deepspeed_in(document: dict[str, Any]) -> None:
    if isinstance(document.get("deepspeed"), dict):
        _deepspeed_keys(document["deepspeed"])
        del document["deepspeed"]  # it would look for its launcher


def _without_gpu(document: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for a machine without a GPU, on which the Trainer refuses 16 bits, TF32 and FSDP's GPUs."""
    values = {key: value for key, value in document.items() if key not in ("bf16", "fp16", "tf32")}
    return {**values, "use_cpu": True}


def _compose(folder: Path, _words: Words) -> None:
    """Read the file by the Compose specification."""
    from compose_pydantic import ComposeSpecification

    ComposeSpecification.model_validate(_document(folder / "compose.yaml"))


def _kubernetes(folder: Path, _words: Words) -> None:
    """Check each file against Kubernetes' OpenAPI schema, without other keys."""
    import kubernetes_validate

    for path in sorted(folder.glob("*.yaml")):
        kubernetes_validate.validate(_document(path), "1.34", strict=True)


def _skypilot(folder: Path, _words: Words) -> None:
    """Read the task by SkyPilot's own class."""
    import sky

    sky.Task.from_yaml(str(folder / "sky.yaml"))


def _dstack(folder: Path, _words: Words) -> None:
    """Read the configuration by dstack's own models."""
    from dstack._internal.core.models.configurations import parse_apply_configuration

    parse_apply_configuration(_document(folder / "plan.dstack.yml"))


def _script(folder: Path, _words: Words) -> None:
    """Check the scripts by shellcheck."""
    beside = Path(sys.executable).parent / "shellcheck"
    program = str(beside) if beside.exists() else "shellcheck"
    paths = [str(path) for pattern in ("*.sh", "*.sbatch") for path in folder.glob(pattern)]
    done = subprocess.run([program, *paths], capture_output=True, text=True, check=False)
    _refuse({line for line in done.stdout.splitlines() if "SC" in line}, "shellcheck")


def _ray(folder: Path, words: Words) -> None:
    """Check the script, and the options of `ray job submit`."""
    from ray.dashboard.modules.job.cli import submit

    _script(folder, words)
    line = next(line for line in (folder / "ray.sh").read_text().splitlines() if line.startswith("ray job submit"))
    given = {word for word in line.partition(" -- ")[0].split() if word.startswith("--")}
    _refuse(given - {option for parameter in submit.params for option in parameter.opts}, "ray job submit")


def _refuse(unknown: set[str], where: str) -> None:
    if unknown:
        raise ValueError(f"{where}: {', '.join(sorted(unknown))}")


CHECKS: dict[str, Callable[[Path, Words], None]] = {
    "accelerate": _accelerate,
    "deepspeed": _deepspeed,
    "trl": _trl,
    "llama-factory": _llama_factory,
    "axolotl": _axolotl,
    "torchtitan": _torchtitan,
    "compose": _compose,
    "kubernetes": _kubernetes,
    "skypilot": _skypilot,
    "dstack": _dstack,
    "shell": _script,
    "slurm": _script,
    "ray": _ray,
}


def main() -> None:
    """Check each case, and print what was found."""
    findings = []
    for name, check, folder, words in json.load(sys.stdin):
        hidden = io.StringIO()
        try:
            with contextlib.redirect_stdout(hidden), contextlib.redirect_stderr(hidden):
                CHECKS[check](Path(folder), words)
            findings.append([name, ""])
        except ModuleNotFoundError as error:
            print(f"{check}: {error}", file=sys.stderr)
        except (Exception, SystemExit) as error:  # noqa: BLE001, programs refuse by errors of many kinds
            said = hidden.getvalue().strip().splitlines()[-2:] if isinstance(error, SystemExit) else []
            findings.append([name, " ".join([f"{type(error).__name__}: {error}", *said])[:400]])
    json.dump(findings, sys.stdout)


if __name__ == "__main__":
    main()
