"""`gpu-planner gpus` as a person and a script use it."""

import csv
import io
import json
import shlex
from datetime import date

import pytest
from each_record import for_each

from planner.cli.gpus import command as gpus
from planner.cli.gpus.search import GPU_COLUMN_OF
from planner.cli.main import main
from planner.cost.terms import CostTerms, Run
from planner.hardware.gpu import Gpu
from planner.hardware.query import GPU_QUERY_FIELDS
from planner.hardware.system import System
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Reading
from planner.monitor.supervisor import snapshot as gathering
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference

DAY = date(2026, 11, 22)


@pytest.fixture
def said(capsys):
    """Return a way to run the command and read what it printed."""

    def run(*words, code=0):
        assert main(["gpus", *words]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


@pytest.fixture
def said_on_the_day(capsys):
    """Return a way to read what the command prints on one day, so that ages of prices stay."""

    def run(*words):
        assert gpus.run(list(words), today=DAY) == 0
        return capsys.readouterr().out

    return run


def test_help_explains_every_field(said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    printed = said("--help-all")
    assert all(f"\n  {name} " in printed for name in GPU_QUERY_FIELDS)


def test_words_find_cards(said):
    printed = said("rtx", "4090")
    assert printed.splitlines()[0].startswith("Name ")
    assert "GeForce RTX 4090 " in printed
    assert "RTX 3090" not in printed


def test_comparison_side_by_side(said_on_the_day, golden):
    golden("gpus-compare.txt", said_on_the_day("--compare", "RTX 4090", "h100-sxm"))


def test_one_card_with_its_sources(said_on_the_day, golden):
    golden("gpus-show.txt", said_on_the_day("--show", "h100-sxm"))


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
    shown = json.loads(said("--show", "rtx 4090", "--json"))
    around = {name: shown.pop(name) for name in ("derived", "prices", "software", "speeds")}
    assert all(around.values())
    assert Gpu.model_validate(shown) in records


def test_json_of_a_list_has_the_prices_that_it_is_filtered_by(said, tmp_path):
    file = tmp_path / "cards.json"
    file.write_text(said("--where", "used < 1200 and memory_gib >= 24", "--json"))
    cards = json.loads(file.read_text())
    assert all(card["used_price_usd"] < 1200 and card["used_price_source"] for card in cards)
    assert {"street_price_usd", "rent_usd_per_hour"} < cards[0].keys()
    assert said("--add", str(file)).startswith(f"Added {len(cards)} GPUs and 0 changes.")


def test_every_word_that_a_list_is_filtered_or_sorted_by_has_a_column(said):
    assert set(GPU_COLUMN_OF) == set(GPU_QUERY_FIELDS)
    assert set(GPU_COLUMN_OF.values()) <= {column.key for column in GPU_COLUMNS}
    heads = said("--fits", "llama-3.1-8b", "--sort", "price", "--where", "nvlink", "--limit", "1").splitlines()[0]
    assert "Price" in heads
    assert "Launch price" in said("--sort", "launch_price", "--limit", "1").splitlines()[0]
    assert "Interconnect" in heads


def test_the_examples_of_the_help_print_something(said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    lines = said("--help-all").replace("\\\n", " ").splitlines()
    examples = [shlex.split(line)[1:] for line in lines if line.startswith("  gpu-planner ")]
    assert len(examples) > 10
    for example in examples:
        if "--here" not in example:
            assert main(example) == 0
            assert not capsys.readouterr().out.startswith("No ")


@pytest.mark.parametrize(
    ("words", "width"),
    [(("--build", "4x5090"), 60), (("--compare", "dgx-a100-640gb", "rtx-4090"), 60), (("4090",), 84)],
)
def test_nothing_is_cut_in_a_narrow_terminal(said, monkeypatch, words, width):
    whole = said(*words)
    monkeypatch.setenv("COLUMNS", str(width))
    printed = said(*words)
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed
    assert sorted(printed.split()) == sorted(whole.split())


def test_a_narrow_terminal_names_the_columns_that_it_leaves_out_and_keeps_what_is_sorted_by(said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "64")
    listed, sorted_by_year = said("4090"), said("4090", "--sort", "year")
    assert "Left out in this width: Year" in listed
    assert "Left out in this width: Power" in sorted_by_year
    assert " 2022 " in sorted_by_year
    assert max(map(len, f"{listed}{sorted_by_year}".splitlines())) <= 64


def test_details_are_whole_in_a_narrow_terminal(said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    printed = said("--show", "rtx-4090")
    assert "…" not in printed
    assert not [line for line in printed.splitlines() if len(line) > 60 and len(line.split()) > 2]


def test_systems_are_shown_as_cards_are(said):
    printed = said("--show", "dgx-a100-640gb")
    assert printed.startswith("DGX A100 640 GB\n")
    assert "8 × A100 SXM4 80 GB" in printed
    assert json.loads(said("--show", "DGX-2", "--json"))["id"] == "dgx-2"
    assert said("--show", "dgx-station-v100").startswith("DGX Station")


def test_a_system_is_shown_with_what_its_chip_lacks_and_what_it_is_rented_for(said, said_on_the_day):
    lines = said("--show", "dgx-1-v100-16gb").splitlines()
    place = next(place for place, line in enumerate(lines) if "Total BF16 dense" in line)
    assert " not supported " in lines[place]
    printed = said_on_the_day("--show", "dgx-h100")
    assert "Rental offers of 8 × H100 SXM5 80 GB\n" in printed
    assert "  Rented, on demand  " in printed
    told = json.loads(said_on_the_day("--show", "dgx-h100", "--json"))
    assert told["prices"]["rented"]["on-demand"]["low_usd_per_hour"] > 0
    around = {name: told.pop(name) for name in ("totals", "each", "lacks", "prices", "power")}
    assert all(around.values())
    assert System.model_validate(told).id == "dgx-h100"


def test_expressions(said):
    records = json.loads(said("--where", 'memory_gib >= 80 and vendor == "NVIDIA"', "--json"))
    assert records
    assert all(record["vendor"] == "NVIDIA" and record["memory_bytes"] >= 80 * 2**30 for record in records)


def test_nothing_found_is_no_error(said):
    assert said("xyzzy").startswith("None of ")
    assert "gpu-planner gpus --compare 4090 'RTX 3090'" in said("4090", "RTX 3090")
    assert "--price-under 700" in said("under", "700")
    assert "--where 'used < 700'" in said("--where", "memory_gib >= 24", "--price-under", "700")
    assert "--where 'memory_gib == 24'" in said("24gb")
    assert json.loads(said("xyzzy", "--json")) == []
    for words in ((), ("--systems",)):
        empty = said("xyzzy", "--csv", *words)
        assert empty.startswith("id,name,")
        assert empty.splitlines() == said("h100", "--csv", *words).splitlines()[:1]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--show", "GTX 9999"], "gpu: no accelerator is called 'GTX 9999'", "gpus WORDS"),
        (["--compare", "A100"], "'A100' can mean 4", "a100-"),
        (["--compare", "RTX 4090", "nope"], "no accelerator is called 'nope'", "gpus WORDS"),
        (["--where", "memory_gib >="], "--where: at position 14: expected a number", "Example: memory_gib >= 24"),
        (["--where", "__import__('os')"], "--where: at position 1: expected a field", "Fields of accelerators: name"),
        (["--where", 'fits == "fits"'], "fits: needs a model", "--fits MODEL"),
        (["--where", "hours < 3"], "hours: needs a model", "--fits MODEL"),
        (["--sort", "job_cost"], "job_cost: needs a model", "--fits MODEL"),
        (["--sort", "colour"], "--sort: there is no field 'colour'", "Fields of accelerators: name"),
        (["--limit", "0"], "--limit: '0' is too small", "--help"),
        (["--limit", "²"], "--limit: '²' is not a whole number", "--help"),
        (["--compare"], "--compare: expected at least one argument", "--help"),
        (["--show", ""], "--show: is empty", "--help"),
        (["--fits", " "], "--fits: is empty", "--help"),
        (["--weights", "Q4_K_M"], "unrecognized arguments: --weights", "Did you mean --fits MODEL?"),
        (["--fits", "llama3.1:8b", "--weights", "zzz"], "--weights: there is no 'zzz'", "--help"),
        (["--price-under", "cheap"], "--price-under: 'cheap' is not a number", "--help"),
        (["--remove", ""], "--remove: is empty", "--help"),
        (["--compare", "l4", ""], "--compare: is empty", "--help"),
        (["--circuit", "120V-15A"], "--circuit: applies to --build", "--help"),
        (["--supply", "gold"], "--supply: applies to --build", "--help"),
        (["--host-watts", "450"], "--host-watts: applies to --build", "--help"),
        (["--paid", "5"], "--paid: applies to --change", "--help"),
        (["--power-limit", "5"], "--power-limit: applies to --build and --change", "--help"),
        (["--systems", "--where", "memory > 1"], "--where: at position 1: expected a field", "mean memory_gib or"),
        (["--systems", "--sort", "-bandwith"], "--sort: there is no field 'bandwith'", "Did you mean bandwidth?"),
        (["--systems", "--where", 'fits == "fits"'], "fits: needs a model", "Add --fits MODEL."),
        (
            ["--where", "cards > 1"],
            "--where: at position 1: expected a field, found 'cards'",
            "Fields of accelerators: name vendor",
        ),
        (["--build", "l4", "--csv"], "--csv: applies to lists, --compare and --systems, not to --build", "--help"),
        (["rtx", "--show", "l4"], "WORDS: applies to lists and --systems, not to --show", "--help"),
        (["--compare", "l4", "--show", "l4"], "--compare: cannot be combined with --show", "separate command for each"),
        (
            ["--add", "x", "--change", "l4", "--paid", "5"],
            "--add: cannot be combined with --change",
            "separate command",
        ),
        (["--json", "--csv"], "--json: cannot be combined with --csv", "one of them"),
        (["--build", "0 x l4"], "--build: 0 GPUs", "from 1"),
    ],
)
def test_wrong_input(said, words, message, hint):
    printed = said(*words, code=2)
    assert message in printed
    assert hint in printed.partition("hint: ")[2]


def test_cards_that_hold_a_model_as_it_is_run_below_a_price(said):
    asked = ("--fits", "llama3.1:8b", "--weights", "Q4_K_M", "--price-under", "700")
    records = json.loads(said(*asked, "--json"))
    assert {record["fit"]["verdict"] for record in records} <= {"fits", "tight"}
    prices = [record["price_usd"] for record in records]
    assert prices == sorted(prices)
    assert max(prices) < 700
    assert all(record["price_source"] for record in records)
    assert len(records) > len(json.loads(said("--fits", "llama3.1:8b", "--price-under", "700", "--json")))
    printed = said(*asked, "--limit", "1")
    assert "at launch" in printed.splitlines()[2]
    assert "Price: what sellers asked" in printed


def test_systems_and_comparisons_take_the_options_of_a_workload(said):
    asked = ("--fits", "meta-llama/Llama-3.1-405B", "--weights", "Q4_K_M", "--json")
    systems = {record["id"]: record for record in json.loads(said("--systems", "dgx", *asked))}
    assert systems["dgx-h100"]["fit"]["verdict"] == "fits"
    (card,) = json.loads(said("--compare", "rtx-4090", "--fits", "llama3.1:8b", "--context", "64k", "--json"))
    assert card["plan"]["total_bytes"] > 20 * 2**30


def test_progress_is_shown_on_a_terminal_only(said, capsys):
    said("--fits", "llama3.1:8b", "4090")
    assert capsys.readouterr().err == ""


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


def test_a_price_of_another_kind_filters_sorts_and_is_shown(said_on_the_day):
    printed = said_on_the_day("--where", "memory_gib >= 24 and used < 1200", "--sort", "-bandwidth", "--limit", "1")
    assert "Used price" in printed.splitlines()[0]
    assert "GeForce RTX 4090" in printed
    assert "$1,025" in printed


def test_derived_words_are_columns_where_they_are_asked_for(said):
    printed = said("--where", "usd_per_gib < 30", "--sort", "usd_per_gib", "--limit", "3")
    assert "Price per GiB" in printed.splitlines()[0]
    assert "Ridge point" not in printed


def test_csv_has_the_same_cards_as_json_with_derived_figures_and_sources(said):
    words = ("--where", "memory_gib == 24", "--sort", "usd_per_gib")
    rows = list(csv.DictReader(io.StringIO(said(*words, "--csv"))))
    assert [row["id"] for row in rows] == [record["id"] for record in json.loads(said(*words, "--json"))]
    assert all(row["source"] for row in rows)
    assert next(row["used_price_usd"] for row in rows if row["id"] == "rtx-4090") == "1025.0"
    assert float(next(row["usd_per_gib"] for row in rows if row["id"] == "rtx-4090")) == pytest.approx(1599 / 24)


def test_shown_are_prices_by_kind_software_and_measured_speeds(said_on_the_day):
    printed = said_on_the_day("--show", "rtx 4090")
    for line in ("Ridge point", "List price", "Street price", "Used price", "Rented, on demand", "FlashAttention 3"):
        assert line in printed
    assert "tokens/s, $1.48 per million" in printed


def test_systems_are_listed_in_every_form(said):
    printed = said("--systems", "dgx", "a100")
    assert "dgx-a100-640gb" in printed
    assert "4 of 54 systems" in printed
    assert json.loads(said("--systems", "dgx-2", "--json"))[0]["gpu_count"] == 16
    assert next(csv.DictReader(io.StringIO(said("--systems", "dgx-2", "--csv"))))["id"] == "dgx-2"
    assert said("--systems", "xyzzy") == "None of 54 systems matches.\n"


def test_systems_are_judged_by_a_model_in_every_form(said):
    words = ("--systems", "dgx", "--fits", "meta-llama/Llama-3.1-405B")
    lines = {line.split()[0]: line for line in said(*words).splitlines() if line}
    assert "Fits my model" in lines["Id"]
    assert "Does not fit" in lines["dgx-h100"]
    assert "its software decides how to share the model" in lines["Checked"]
    records = {record["id"]: record for record in json.loads(said(*words, "--json"))}
    assert records["dgx-h200"]["fit"]["verdict"] == "fits"
    assert (records["dgx-station-v100"]["fit"], records["dgx-h200"]["fit_reason"]) == (None, "")
    assert "does not name this system" in records["dgx-station-v100"]["fit_reason"]
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(said(*words, "--csv")))}
    assert (rows["dgx-h100"]["plan_verdict"], rows["dgx-h200"]["plan_verdict"]) == ("does-not-fit", "fits")
    assert int(rows["dgx-h100"]["plan_free_bytes_each"]) < 0


def test_a_build_says_what_it_needs_and_what_to_mind(said):
    printed = said("--build", "2 x RTX 5090")
    needs = "Needs an ATX 3 power supply of 1,950 W or more, and 2 circuits of 15 A at 120 V: 1,839 W from the wall."
    assert printed.startswith(f"{needs}\nWarnings: ")
    assert "\n\n2 × GeForce RTX 5090, host of 450 W, 80 PLUS gold, 15 A at 120 V\n" in printed
    assert "one 15 A at 120 V circuit supplies 1,440 W continuously: use 2 circuits" in printed
    assert "No warnings." in said("--build", "rtx-3090", "--circuit", "230V-16A")
    record = json.loads(said("--build", "2 x RTX 5090", "--power-limit", "401", "--json"))
    assert record["warnings"] == []
    assert {step["key"]: step["value"] for step in record["figures"]}["circuits"] == 1
    assert said("--build", "instinct-mi440x").startswith("What it draws from the wall is unknown.")
    assert "--host-watts: '-5' is too small" in said("--build", "l4", "--host-watts=-5", code=2)
    assert "'many' is not a number of watts" in said("--build", "l4", "--power-limit", "many", code=2)
    assert "'nan' is not a number of watts" in said("--build", "l4", "--power-limit", "nan", code=2)
    assert "invalid choice: '140V'" in said("--build", "l4", "--circuit", "140V", code=2)


def test_what_was_paid_appears_wherever_the_card_does(said):
    said("--change", "rtx 3090", "--paid", "720")
    listed = said("--where", "paid > 0").splitlines()
    assert (listed[0].split()[-1], listed[2].split()[-1]) == ("Paid", "$720")
    compared = said("--compare", "rtx 3090", "rtx 4090").splitlines()
    assert any(line.split() == ["Paid", "$720", "unknown"] for line in compared)
    shown = said("--show", "rtx 3090")
    assert "  Paid by you  " in shown
    assert "Price per GiB, as you paid" in shown


def test_cards_of_this_machine_are_matched_by_name_and_memory(said, monkeypatch):
    latest = Latest()
    facts = {"memory_total_bytes": Reading(24_564 * 2.0**20)}
    latest.note_inventory(
        Inventory(
            devices=(
                Device("GPU-1", "NVIDIA GeForce RTX 4090", 0, facts=facts),
                Device("GPU-2", "NVIDIA Mystery 9000", 1, facts=facts),
                Device("GPU-3", "NVIDIA GeForce RTX 3060", 2),
            )
        )
    )
    monkeypatch.setattr(gathering, "take_snapshot", lambda: latest)
    printed = said("--here")
    assert "in the catalog: rtx-4090 (GeForce RTX 4090)" in printed
    assert "not in the catalog under this name and memory" in printed
    assert "memory_total_bytes: 25,757,220,864" in printed
    assert "in the catalog one of: rtx-3060" in printed
    assert json.loads(said("--here", "--json"))[0]["gpus"] == ["rtx-4090"]


def test_a_machine_is_fed_as_its_maker_says(said):
    printed = said("--build", "dgx-h100")
    needs = "Needs 2 circuits of 30 A at 240 V: 10,200 W from the wall."
    assert printed.startswith(f"{needs}\n\nDGX H100, 30 A at 240 V\n")
    figures = json.loads(said("--build", "dgx-h100", "--circuit", "230V-16A", "--json"))["figures"]
    assert [figure["value"] for figure in figures if figure["key"] == "circuits"] == [4]
    assert "DGX H100 is published as a whole" in said("--build", "dgx-h100", "--power-limit", "300", code=2)


def test_several_machines_are_set_beside_cards_with_what_is_not_known_of_them(said):
    asked = ("--compare", "2x DGX H100", "dgx-h100", "2 x dgx-station-v100", "--fits", "meta-llama/Llama-3.1-8B")
    printed = said(*asked)
    assert "2 × DGX H100" in printed.splitlines()[0]
    assert "2 × DGX Station (V100) is not evaluated: the catalog does not name this system's accelerator." in printed
    assert (
        "2 × DGX H100: the catalog does not list the network between the machines. The time is computed with 8 GPUs"
        in printed
    )
    assert "\nDGX H100: " not in printed
    two, one, unknown = json.loads(said(*asked, "--json"))
    assert [(record["count"], record["machines"]) for record in (two, one, unknown)] == [(16, 2), (8, 1), (8, 2)]
    for name in ("memory_bytes", "bandwidth_bytes_per_s", "bf16_ops_per_s", "system_power_watts", "system_price_usd"):
        assert two["totals"][name] == 2 * one["totals"][name]
    assert (two["plan"]["verdict"], unknown["plan"]["verdict"]) == ("fits", None)
    assert unknown["plan"]["reason"] == "the catalog does not name this system's accelerator"
    assert unknown["totals"]["system_price_usd"] == 2 * 69_000
    assert "--compare: 0 machines" in said("--compare", "0 x dgx-h100", code=2)


def test_a_plan_is_tried_on_what_stands_side_by_side(said):
    asked = ("--compare", "rtx-4090", "8 x h100-sxm5-80gb", "--fits", "Qwen/Qwen3-32B")
    printed = said(*asked)
    assert "Does not fit" in printed
    assert "Rented, per million tokens" in printed
    small, large = (record["plan"] for record in json.loads(said(*asked, "--json")))
    assert (small["verdict"], small["time"], small["rent"], small["own"]) == ("does-not-fit", None, None, None)
    assert large["verdict"] == "fits"
    assert large["time"]["tokens_per_second"] > 0
    assert large["rent"]["usd_per_million_tokens"] > 0
    assert large["period"] == "month"


def test_a_plan_that_cannot_be_shared_among_so_many_says_why(said, tmp_path):
    shared = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference(parallel=Parallel(tensor=2)))
    save_plan(tmp_path / "plan.json", shared.evolve(gpu="rtx-4090", count=2))
    (record,) = json.loads(said("--compare", "3 x RTX 3090", "--fits", str(tmp_path / "plan.json"), "--json"))
    assert record["plan"]["verdict"] is None
    assert record["plan"]["reason"]


def test_several_cards_and_systems_side_by_side(said):
    printed = said("--compare", "2 x RTX 3090", "dgx-a100-640gb")
    assert printed.splitlines()[0].endswith("  DGX A100 640 GB")
    assert "2 × GeForce RTX 3090" in printed.splitlines()[0]
    assert "All together" in printed
    rows = list(csv.reader(io.StringIO(said("--compare", "rtx-3090", "dgx-a100-640gb", "--csv"))))
    assert rows[0] == ["group", "figure", "1 × GeForce RTX 3090", "DGX A100 640 GB"]
    ids = [record["id"] for record in json.loads(said("--compare", "rtx-3090", "dgx-a100-640gb", "--json"))]
    assert ids == ["rtx-3090", "dgx-a100-640gb"]
    cards, system = json.loads(said("--compare", "8 x h100-sxm", "dgx-a100-640gb", "--json"))
    assert cards["totals"]["cards_power_watts"] == 5600
    assert system["totals"]["system_power_watts"] == 6500
    assert "plan" not in json.loads(said("--compare", "rtx-3090", "--json"))[0]
    assert "7 are too many" in said("--compare", *["l4"] * 7, code=2)


def test_a_plans_job_has_a_time_and_a_cost_on_each_card(said, tmp_path, catalog):
    path = tmp_path / "plan.json"
    job = CostTerms(job=Run(amount=1e6, unit="tokens"))
    save_plan(path, Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), cost=job))
    assert "Speed / time  Plan's cost" in said("--fits", str(path), "4090")
    records = json.loads(said("--fits", str(path), "--where", "hours < 100", "--sort", "job_cost", "--json"))
    costs = [record["job"]["usd"] for record in records if record["job"]["usd"] is not None]
    assert costs == sorted(costs)
    assert all(record["job"]["hours"] < 100 for record in records)
    assert records[0]["job"]["offer"]["offer"]["source"]
    unfit = json.loads(said("--fits", str(path), "--where", 'fits == "does-not-fit"', "--limit", "1", "--json"))
    assert unfit[0]["job"] is None


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("A100", {"a100-pcie-40gb", "a100-sxm4-40gb", "a100-pcie-80gb", "a100-sxm4-80gb"}),
        ("Tesla P100", {"tesla-p100-pcie-12gb", "tesla-p100-pcie-16gb", "tesla-p100-sxm2-16gb"}),
        ("RTX 3080", {"rtx-3080-10-gb", "rtx-3080-12-gb"}),
        ("DGX-1", {"dgx-1-p100", "dgx-1-v100-16gb", "dgx-1-v100-32gb"}),
        ("DGX A100", {"dgx-a100-320gb", "dgx-a100-640gb"}),
    ],
)
def test_a_name_that_several_share_lists_them(said, name, members):
    printed = said("--show", name)
    assert f"{name} is the name of {len(members)} records" in printed
    assert all(member in printed for member in members)
    assert {each["id"] for each in json.loads(said("--show", name, "--json"))} == members


def test_a_kind_of_accelerator_lists_its_chips_and_its_slices(said):
    printed = said("--show", "TPU")
    assert all(name in printed for name in ("tpu-v2", "tpu-v7-ironwood", "tpu-v3-pod"))


INTRODUCED = {
    "2080 Ti": "110 to 120 TFLOPS, as articles say, are with FP16 accumulation",
    "Titan V": "the 32 GB that some articles name are those of the Titan V CEO Edition",
    "RX 6800 XT": "4,608 shaders: 72 compute units of 64; 5,120, which some articles print",
    "tpu-v3": "420 TFLOPS and 128 GB, as articles quote for a TPU, are those of tpu-v3-8",
    "tpu-v3-8": "4 x 123 = 492 by the current documentation",
    "tpu-v3-pod": "126 PFLOPS by the current documentation",
    "A100 SXM4 40GB": "624 TFLOPS FP16 (1248 INT8) on the datasheet is with sparsity",
    "Tesla P100 SXM2": "21 TFLOPS, as often quoted, is the vector FP16 rate",
    "V100 SXM2 32GB": "149 TFLOPS, at times quoted for a V100, is no figure of any",
    "DGX-1 V100 16GB": "FP16 tensor, dense (8 x 125 = 1000 by chip sum)",
    "DGX-2": "FP16 tensor, dense (16 x 125)",
    "DGX A100 320GB": "FP16 tensor, SPARSE (8 x 624); 2.5 PFLOPS dense",
    "Tesla K80": "Card totals for two GK210 GPUs",
    "GT 930M": "two 930M boards under one name",
    "RTX 3090": "71 TFLOPS is dense with FP32 accumulate; 142 is with FP16 accumulate",
    "H100 SXM": "L2 cache",
}
"""What introductions to GPUs for deep learning say of cards, by their words, with the difference explained."""


@for_each("name", INTRODUCED)
def test_what_introductions_name_is_found_and_a_difference_explained(said, name):
    assert INTRODUCED[name] in " ".join(said("--show", name).split())


@pytest.mark.parametrize(("name", "words"), [("FPGA", "FPGAs are"), ("ASIC", "ASICs are"), ("NPU", "NPUs are")])
def test_a_name_for_what_is_no_card_is_explained_wherever_a_card_is_named(said, name, words):
    assert f"hint: {words}" in said("--show", name, code=2)
    assert words not in said("--show", f"{name} 9000", code=2)  # a number means a model


def test_a_search_for_what_is_no_card_says_what_it_is(said):
    assert "FPGAs are chips whose circuits" in said("fpga")
    assert "the L2 cache the whole chip" in said("L2", "cache")
    assert said("xyzzy").strip().endswith("matches.")


def test_slices_of_a_card_are_listed_and_placed(said):
    shown = " ".join(said("--show", "A30").split())
    assert "2g.12gb 11.7 GiB · 28 of 56 multiprocessors" in shown
    placed = said("--show", "H100 SXM", "--slices", "3g.40gb", "2g.20gb", "1g.10gb")
    assert [line.split()[:2] for line in placed.splitlines()[3:]] == [
        ["3g.40gb", "0"],
        ["2g.20gb", "4"],
        ["1g.10gb", "6"],
    ]
    assert json.loads(said("--show", "A30", "--slices", "2g.12gb", "--json")) == [
        {"profile": "2g.12gb", "start": 0, "size": 2}
    ]


def test_slices_that_a_card_cannot_hold_are_refused_with_the_rule(said):
    refused = said("--show", "H100 SXM", "--slices", "3g.40gb", "3g.40gb", "1g.10gb", code=2)
    assert "--slices: 3g.40gb + 3g.40gb + 1g.10gb: they take 9 memory slices, and the card has 8" in refused
    assert "L40S cannot be divided into slices" in said("--show", "L40S", "--slices", "1g.6gb", code=2)
    assert "--slices: applies to --show" in said("--slices", "1g.6gb", code=2)
