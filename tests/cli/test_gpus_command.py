"""`gpu-planner gpus` as a person and a script use it."""

import json

import pytest

from planner.cli.main import main
from planner.cost.job import Run
from planner.cost.terms import CostTerms
from planner.hardware.gpu import Gpu
from planner.hardware.query import QUERY_FIELDS
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice, Plan


@pytest.fixture
def said(capsys):
    """Return a way to run the command and read what it printed."""

    def run(*words, code=0):
        assert main(["gpus", *words]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def test_help_explains_every_field(said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    printed = said("--help")
    assert all(f"\n  {name} " in printed for name in QUERY_FIELDS)


def test_words_find_cards(said):
    printed = said("rtx", "4090")
    assert printed.splitlines()[0].startswith("Name ")
    assert "GeForce RTX 4090 " in printed
    assert "RTX 3090" not in printed


def test_comparison_side_by_side(said, golden):
    golden("gpus-compare.txt", said("--compare", "RTX 4090", "h100-sxm"))


def test_one_card_with_its_sources(said, golden):
    golden("gpus-show.txt", said("--show", "h100-sxm"))


def test_sorting_both_ways_and_limit(said):
    ids = [record["id"] for record in json.loads(said("--json", "--sort", "-bandwidth", "--limit", "3"))]
    assert len(ids) == 3
    bandwidths = [
        record["bandwidth_bytes_per_s"] for record in json.loads(said("--json", "--sort", "bandwidth", "--limit", "9"))
    ]
    assert bandwidths == sorted(bandwidths)


def test_json_is_a_list_of_records_that_read_back(said):
    records = [Gpu.model_validate(record) for record in json.loads(said("4090", "--json"))]
    assert "rtx-4090" in {gpu.id for gpu in records}
    assert Gpu.model_validate_json(said("--show", "rtx 4090", "--json")) in records


def test_expressions(said):
    records = json.loads(said("--where", 'memory_gib >= 80 and vendor == "NVIDIA"', "--json"))
    assert records
    assert all(record["vendor"] == "NVIDIA" and record["memory_bytes"] >= 80 * 2**30 for record in records)


def test_nothing_found_is_no_error(said):
    assert said("xyzzy").startswith("No accelerator of ")
    assert json.loads(said("xyzzy", "--json")) == []


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--show", "GTX 9999"], "gpu: no accelerator is called 'GTX 9999'", "gpus WORDS"),
        (["--show", "A100"], "'A100' matches 4 records", "a100-"),
        (["--compare", "RTX 4090", "nope"], "no accelerator is called 'nope'", "gpus WORDS"),
        (["--where", "memory_gib >="], "--where: at position 14: expected a number", "--help"),
        (["--where", "__import__('os')"], "--where: at position 1: expected a field", "Fields: name"),
        (["--where", 'fits == "fits"'], "fits: needs a model", "--fits MODEL"),
        (["--where", "hours < 3"], "hours: needs a model", "--fits MODEL"),
        (["--sort", "job_cost"], "job_cost: needs a model", "--fits MODEL"),
        (["--sort", "colour"], "--sort: there is no field 'colour'", "Fields: name"),
        (["--limit", "0"], "argument --limit: '0' is not a whole number from 1", "--help"),
        (["--limit", "²"], "argument --limit: '²' is not a whole number from 1", "--help"),
        (["--compare"], "argument --compare: expected at least one argument", "--help"),
    ],
)
def test_wrong_input(said, words, message, hint):
    printed = said(*words, code=2)
    assert message in printed
    assert hint in printed.partition("hint: ")[2]


def test_cards_judged_by_a_model(said):
    printed = said("--fits", "llama-3.1-8b", "4090")
    assert printed.splitlines()[0].split()[1:4] == ["Fits", "my", "model"]
    records = json.loads(said("--fits", "llama-3.1-8b", "--where", 'fits == "fits"', "--json"))
    assert {record["fit"]["verdict"] for record in records} == {"fits"}


def test_a_plan_judges_by_its_workload(said, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(
        '{"schema_version": 1, "model": {"id": "meta-llama/Llama-3.1-8B"}, "workload": {"task": "training"}}'
    )
    assert "Does not fit" in said("--fits", str(path), "rtx", "4090")


def test_a_judging_model_must_be_known(said):
    assert "no model is called 'nobody'" in said("--fits", "nobody", code=2)


def test_a_plans_job_has_a_time_and_a_cost_on_each_card(said, tmp_path, catalog):
    path = tmp_path / "plan.json"
    job = CostTerms(job=Run(amount=1e6, unit="tokens"))
    save_plan(path, Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), cost=job))
    assert "My job takes  My job costs" in said("--fits", str(path), "4090")
    records = json.loads(said("--fits", str(path), "--where", "hours < 100", "--sort", "job_cost", "--json"))
    costs = [record["job"]["usd"] for record in records if record["job"]["usd"] is not None]
    assert costs == sorted(costs)
    assert all(record["job"]["hours"] < 100 for record in records)
    assert records[0]["job"]["offer"]["offer"]["source"]
    unfit = json.loads(said("--fits", str(path), "--where", 'fits == "does-not-fit"', "--limit", "1", "--json"))
    assert unfit[0]["job"] is None
