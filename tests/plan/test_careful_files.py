"""What may stand in the way of a plan's file: links, rights, devices, names that are no text."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from planner.errors import PlanFileError, SpecError
from planner.numbers import BYTES, parse_number
from planner.plan.catalog import Catalog
from planner.plan.files import load_plan, save_plan
from planner.plan.memory_curve import memory_curve
from planner.plan.plan import ModelChoice, Plan

CONFIG = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100, "n_positions": 32}
PLAN = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"))


def test_a_link_keeps_pointing_to_the_file_that_is_replaced(tmp_path: Path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    save_plan(real, PLAN.evolve(count=2))
    link.symlink_to(real)
    save_plan(link, PLAN)
    assert link.is_symlink()
    assert load_plan(real) == PLAN


def test_a_file_keeps_its_permissions_and_a_new_one_has_the_defaults(tmp_path: Path):
    file = tmp_path / "plan.json"
    mask = os.umask(0o022)
    try:
        save_plan(file, PLAN)
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
        file.chmod(0o664)
        save_plan(file, PLAN)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o664


@pytest.mark.parametrize(("path", "said"), [("/dev/zero", "a device or a pipe"), ("a\0b", "is not a valid path")])
def test_only_regular_files_are_read(path: str, said: str):
    with pytest.raises(PlanFileError, match=said):
        load_plan(path)


def test_infinite_numbers_are_refused_as_sizes():
    with pytest.raises(SpecError, match="is not a size"):
        parse_number("9" * 5000, BYTES)


def test_a_curve_through_an_invalid_value_is_refused(catalog: Catalog):
    with pytest.raises(SpecError, match="batch"):
        memory_curve(PLAN, catalog, "batch", (0,))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes any bytes as a file name")
def test_a_folder_name_that_is_not_valid_text_is_accepted(tmp_path: Path):
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    with open(folder + b"/config.json", "w", encoding="utf-8") as stream:
        stream.write(json.dumps(CONFIG))
    command = [sys.executable, "-m", "planner", "fit", folder + b"/config.json"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
