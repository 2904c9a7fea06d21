"""The command `completion`: what each shell offers, asked of the shell itself where it is installed."""

import json
import os
import shlex
import shutil
import subprocess

import pytest

from planner.cli import main as cli
from planner.cli.automation.completion import bash_script, catalog_words, fish_script, zsh_script
from planner.cli.automation.declarations import declared_commands
from planner.launch.places import PLACES

# What is typed, its last word being completed, and words that are among those that are offered.
TYPED = {
    "gpu-planner f": ["fit"],
    "gpu-planner fit --gp": ["--gpu", "--gpu-layers"],
    "gpu-planner fit --gpu rtx-409": ["rtx-4090", "rtx-4090-laptop-gpu"],
    "gpu-planner fit meta-llama/Llama-3.1-8": ["meta-llama/Llama-3.1-8B"],
    "gpu-planner fit --check Qwen/Qwen3-8": ["Qwen/Qwen3-8B"],
    "gpu-planner fit --task training --method q": ["qlora"],
    "gpu-planner gpus --compare rtx-4090 rtx-309": ["rtx-3090", "rtx-3090-ti"],
    "gpu-planner launch plan.json --for v": ["vllm"],
    "gpu-planner launch plan.json --on k": ["kubernetes"],
    "gpu-planner cost plan.json --place d": ["desk", "data-centre"],
    "gpu-planner monitor --as ''": ["tensorboard", "mlflow", "wandb"],
    "gpu-planner monitor --replay ru": ["run.gpurec"],
    "gpu-planner completion ''": ["bash", "zsh", "fish"],
    "gpu-planner prices --sort on": ["on-demand"],
}
NOTHING = ("gpu-planner fit --set x", "gpu-planner fit --budgt", "gpu-planner nonsense ''")


@pytest.fixture(scope="module")
def scripts(catalog):
    words = catalog_words(catalog)
    writers = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
    return {name: write(declared_commands(), words) for name, write in writers.items()}


def test_each_shell_has_a_script_and_others_are_refused(capsys, scripts):
    for shell, script in scripts.items():
        assert cli.main(["completion", shell]) == 0
        assert capsys.readouterr().out == script
    assert cli.main(["completion", "bash", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": "bash", "script": scripts["bash"]}
    assert cli.main(["completion", "tcsh"]) == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err


def test_every_option_of_every_command_is_in_each_script(scripts):
    for command in declared_commands():
        for option in command.options:
            for name in option.names:
                assert name in scripts["bash"]
                assert name in scripts["zsh"]
                assert (f"-l {name[2:]} " if name.startswith("--") else f"-s {name[1:]} ") in scripts["fish"]


def test_values_are_those_that_the_program_knows():
    options = {
        (command.name, name): option
        for command in declared_commands()
        for option in (*command.options, *command.arguments)
        for name in option.names or ("",)
    }
    assert options["launch", "--on"].words == tuple(PLACES)
    assert options["cost", "--mode"].words == ("on-demand", "spot", "reserved-1y", "reserved-3y")
    assert {"q8_0", "bf16"} <= {word.lower() for word in options["fit", "--kv-cache"].words}
    assert options["fit", ""].source == "models"
    assert (options["gpus", "--compare"].takes, options["fit", "--gpu"].is_repeatable) == (2, True)
    assert options["cost", "--horizon"].words == ()
    assert options["fit", "--explain"].takes == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_what_is_typed(scripts, tmp_path):
    (tmp_path / "run.gpurec").write_text("")
    (tmp_path / "script").write_text(scripts["bash"])
    lines = ["source ./script", "complete -p gpu-planner"]
    for typed in (*TYPED, *NOTHING, "gpu-planner fit --gpu = rtx-409"):
        lines.append(f"COMP_WORDS=({typed}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _gpu_planner")
        lines.append('echo "${COMPREPLY[@]}"')
    told, *offered = _printed("bash", "\n".join(lines), tmp_path)
    assert told == "complete -o filenames -F _gpu_planner gpu-planner"
    for (typed, wanted), words in zip(TYPED.items(), offered, strict=False):
        assert set(wanted) <= set(words.split()), typed
        assert all(word.startswith(shlex.split(typed)[-1]) for word in words.split()), typed
    assert offered[len(TYPED) :] == ["", "", "", offered[2]]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_reads_its_script_and_finds_its_function(scripts, tmp_path):
    (tmp_path / "_gpu-planner").write_text(scripts["zsh"])
    ask = """
fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d ./dump
print $_comps[gpu-planner]
autoload -Uz +X _gpu-planner && print loaded
# In place of zsh's own functions, which need a terminal: what the option --on of launch is completed by.
_arguments() { print -l -- $@ | grep -e '--on='; }
compdef() { :; }
source ./_gpu-planner
words=(gpu-planner launch plan.json --on ''); CURRENT=5
_gpu-planner
"""
    function, loaded, option = _printed("zsh", ask, tmp_path)
    assert (function, loaded) == ("_gpu-planner", "loaded")
    assert option.startswith("--on=[where it runs")
    assert all(place in option for place in PLACES)


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes_what_is_typed(scripts, tmp_path):
    (tmp_path / "script").write_text(scripts["fish"])
    (tmp_path / "run.gpurec").write_text("")
    lines = ["source ./script"]
    lines += [f"complete -C {shlex.quote(typed.removesuffix(chr(39) * 2))}; echo --" for typed in TYPED]
    offered = "\n".join(_printed("fish", "\n".join(lines), tmp_path)).split("--\n")
    for (typed, wanted), words in zip(TYPED.items(), offered, strict=False):
        assert set(wanted) <= {line.partition("\t")[0] for line in words.splitlines()}, typed


def _printed(shell, text, folder):
    environment = os.environ | {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "TERM": "dumb"}
    options = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [shell, *options, "-c", text], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.splitlines()
