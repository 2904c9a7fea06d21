"""`gpu-planner cost` as a person and a script use it; prices are looked at on a fixed day."""

import json
import re
from datetime import date

import pytest

from planner.cli.cost import run
from planner.cli.main import main
from planner.plan.files import load_plan

TODAY = date(2026, 11, 22)
TUNING = (
    *("meta-llama/Llama-3.1-8B", "--task", "training", "--method", "qlora", "--checkpointing", "full"),
    *("--tokens", "50e6"),
)
SERVING = ("meta-llama/Llama-3.1-8B", "--profile", "vllm", "--batch", "32", "--gpu", "l40s")


@pytest.fixture
def said(capsys):
    """Return a way to ask on a fixed day, and read what was printed."""

    def ask(*words: str) -> str:
        assert run([*words], TODAY) == 0
        return capsys.readouterr().out

    return ask


def test_the_whole_answer(said, golden):
    golden("cost.txt", said(*TUNING, "--gpu", "RTX 4090", "--offers", "4"))
    golden("cost-details.txt", said(*TUNING, "--gpu", "RTX 4090", "--offers", "4", "--details"))


def test_a_plan_that_does_not_fit_is_told_what_would_help_instead_of_a_decision(said):
    words = ("meta-llama/Llama-3.1-8B", "--task", "training", "--hours-per-day", "8")
    printed = " ".join(said(*words, "--gpu", "RTX 4090", "--explain", "--offers=3").split())
    assert printed.startswith("No decision yet. The plan does not fit on this GPU: 123.2 GiB are needed, and 23.5 GiB")
    assert "What would help: " in printed
    assert "QLoRA" in printed
    assert "(gpu-planner fit --advise shows all)" in printed
    assert printed.endswith(f"gpu-planner recommend {' '.join(words)}")
    assert "$" not in printed
    assert "No decision" not in said(*TUNING, "--gpu", "RTX 4090")


def test_a_plan_that_does_not_fit_has_costs_but_no_answer_in_json(said):
    cost = json.loads(said("meta-llama/Llama-3.1-8B", "--task", "training", "--gpu", "RTX 4090", "--json"))["cost"]
    assert cost["blocked"]["code"] == "does-not-fit"
    assert cost["blocked"]["needed_bytes"] > cost["blocked"]["usable_bytes"]
    assert cost["answer"] is cost["break_even"] is None
    assert cost["rent"]["usd"] > 0


def test_the_decision_comes_first_with_how_sure_it_is_and_what_would_change_it(said):
    lines = said("gpt2", "--gpu", "RTX 4090", "--hours-per-day", "14").splitlines()
    assert lines[0] == "Rent (cheaper in 69\u2009% of cases)."
    assert lines[1].startswith("Present value over 5 years: renting $")
    assert lines[2].startswith("Changes if used over 55\u2009% of the time (now 42\u2009%), a GPU costs under $")
    assert any(line.startswith("Oldest price: ") for line in lines[:6])
    assert any(line.split() == ["Renting", "Buying"] for line in lines[:8])


def test_a_single_run_leads_with_its_cost_and_time(said):
    first = said(*TUNING, "--gpu", "RTX 4090").splitlines()[0].replace("\u2009", " ")
    assert first == "Rent (cheaper in over 99 % of cases): $2.41 and 8.33 h on 1 × GeForce RTX 4090 from OpenRelay."


def test_close_calls_are_called_so(said):
    words = ("gpt2", "--gpu", "RTX 4090", "--hours-per-day", "19")
    assert said(*words).startswith("Too close to call: buying is cheaper in 50")
    answer = json.loads(said(*words, "--json", "--tornado"))
    decision, owning = answer["cost"]["answer"], answer["simulation"]["owning_cheaper_fraction"]
    assert decision["verdict"] == "too-close"
    assert decision["more_often_cheaper"] == "buy"
    assert decision["confidence"] == pytest.approx(owning)


def test_a_card_of_ones_own_costs_electricity_and_a_faster_one_is_named(said):
    words = (*TUNING, "--gpu", "RTX 4090", "--own", "--place", "desk")
    told = said(*words).replace("\u2009", " ")
    assert re.match(r"Use your own \(cheaper in (?:over )?\d+ % of cases\): \$\d\.\d\d of electricity per run\.", told)
    assert "Your own" in told
    assert "Faster: renting 1 × " in told
    details = said(*words, "--details")
    assert "Upfront:" not in details
    assert "Your own: $" in details
    answer = json.loads(said(*words, "--json"))
    assert answer["cost"]["answer"]["owned"] is True
    assert answer["faster_rental"]["hours"] < answer["faster_rental"]["own_hours"]
    assert "faster_rental" not in json.loads(said(*TUNING, "--gpu", "RTX 4090", "--json"))


def test_a_service_names_the_program_that_needs_fewer_cards(said):
    words = ("llama-3.1-8b", "--gpu", "H100 SXM5", "--requests-per-day", "200000")
    assert "vLLM answers 256 and needs 1 × H100 SXM5 80 GB instead of" in " ".join(said(*words).split())
    assert json.loads(said(*words, "--json"))["batched_service"]["cards"] == 1
    assert json.loads(said(*words, "--profile", "vllm", "--json"))["batched_service"] is None


def test_costs_are_listed_on_request_only(said):
    short, long = (said(*TUNING, "--gpu", "RTX 4090", *more) for more in ((), ("--details",)))
    assert "--details shows every cost" in short
    assert "Host (server without GPUs)" not in short
    assert "Host (server without GPUs)" in long
    assert "Local storage is assumed" in long
    assert "--details" not in long


def test_scripts_get_everything(said):
    answer = json.loads(said(*TUNING, "--gpu", "l40s", "--json"))
    assert set(answer) == {"plan", "time", "cost", "demand", "offers", "hybrid"}
    assert set(answer["cost"]) == {
        *("rent", "own", "break_even", "curve", "answer", "blocked", "machines", "notes", "unsupported"),
        "rental_modes",
    }
    assert answer["cost"]["rent"]["usd"] == sum(term["usd"] for term in answer["cost"]["rent"]["terms"])
    assert answer["hybrid"] is None
    assert answer["offers"][0]["usd"] > 0
    assert all(term["source"] and term["formula"] for term in answer["cost"]["own"]["upfront"])


def test_scripts_get_more_on_request(said):
    more = json.loads(
        said(*SERVING, "--requests-per-day", "200000", "--json", "--tornado", "--carbon", "--versus", "h100-sxm")
    )
    assert more["simulation"]["draws"] == 2_000
    assert more["tornado"]
    assert more["carbon_by_region"][0]["carbon_kg"] <= more["carbon_by_region"][-1]["carbon_kg"]
    assert more["hybrid"]["best"] == min(more["hybrid"]["mixes"], key=lambda mix: mix["own_usd"] + mix["rent_usd"])
    assert more["other"]["plan"]["gpu"] == "h100-sxm5-80gb"
    assert "tornado" in more["other"]


def test_a_service_says_how_many_machines_it_needs(said):
    words = (*SERVING, "--requests-per-day", "2000000")
    machines = json.loads(said(*words, "--json"))["cost"]["machines"]
    assert machines == {
        **{"groups": 12, "cards_per_group": 1, "cards": 12, "rented": 12, "owned": 2},
        "power_watts": 12 * 350.0,
    }
    told = " ".join(said(*words).replace("\u2009", " ").split())
    assert "Peak load needs 12 × L40S: 12 machines if rented, 2 machines if bought and 4,200 W for the GPUs." in told


def test_what_moves_the_decision(said):
    words = (*SERVING, "--requests-per-day", "200000", "--money", "job.scales_down=true")
    told = said(*words, "--tornado", "--offers", "0")
    assert "Owning saves at low" in told
    assert "of 2,000 simulated cases" in told
    assert "Best mix" in told or "worth owning" in told
    assert "offers for this job" not in told


def test_every_amount_opens(said):
    told = said(*TUNING, "--gpu", "RTX 4090", "--explain", "--offers", "0")
    for line in ("= n · p", "p = 1,800: USD for one GPU [", "= C · o · h / 8766"):
        assert line in told


def test_the_same_electricity_elsewhere(said):
    told = said(*SERVING, "--carbon", "--electricity", "DE")
    assert "regions, lowest first; highest: " in told
    assert "Owned in Germany: " in said(*SERVING, "--details", "--electricity", "DE")


def test_another_plan_stands_beside(said, tmp_path):
    path = tmp_path / "plan.json"
    said(*SERVING, "--hours-per-day", "3", "--save", str(path))
    assert load_plan(path).cost.job.hours_per_day == 3
    told = said(str(path), "--hours-per-day", "20", "--versus", str(path))
    assert "Other: meta-llama/Llama-3.1-8B" in told
    assert "Difference" in told
    assert "65.2" in told


def test_a_saved_plan_keeps_its_terms(said, tmp_path):
    path = tmp_path / "plan.json"
    first = said(*SERVING, "--place", "desk", "--electricity", "DE", "--card-price", "7000", "--save", str(path))
    assert said(str(path)) == first


def test_commitments_and_regions_are_told(said):
    told = said("gpt2", "--gpu", "h100-sxm", "--mode", "reserved-1y", "--hours-per-day", "24", "--details")
    assert ", reserved for 1 year: $" in told
    german = said(
        "meta-llama/Llama-3.1-8B", "--gpu", "h100-sxm", "--provider", "nebius", "--regions", "eu-north1", "--details"
    )
    assert "Rented from Nebius (eu-north1)" in german


def test_an_offer_can_be_named(said):
    listed = json.loads(said(*SERVING, "--json"))["offers"]
    chosen = listed[-1]["offer"]["id"]
    assert json.loads(said(*SERVING, "--offer", chosen, "--json"))["cost"]["rent"]["offer_id"] == chosen


def test_where_nobody_offers_it_owning_is_told(said):
    told = said("gpt2", "--gpu", "RTX 4090", "--mode", "spot")
    assert told.startswith("No current spot offer for the GeForce RTX 4090 is known.")
    assert "Bought: $" in told
    assert "Owning saves at low" not in said("gpt2", "--gpu", "RTX 4090", "--mode", "spot", "--tornado")


def test_where_nobody_knows_what_a_card_costs_renting_is_told(said):
    told = said("gpt2", "--gpu", "l4", "--tornado", "--carbon")
    assert "owning: " in told.lower()
    assert "Bought: $" not in told
    extra = json.loads(said("gpt2", "--gpu", "l4", "--tornado", "--carbon", "--json"))
    assert extra["tornado"] is extra["simulation"] is None


@pytest.mark.parametrize("width", [80, 120, 160])
def test_no_line_is_wider_than_the_terminal(said, monkeypatch, width):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    told = said(*TUNING, "--gpu", "RTX 4090", "--tornado", "--carbon", "--versus", "l40s")
    assert max(map(len, told.splitlines())) <= width


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ([], "--gpu: the plan has no GPU", 'Name one GPU, such as --gpu "RTX 4090", or let `gpu-planner recommend`'),
        (
            ["--gpu", "rtx-4090", "--gpu", "rtx-3090"],
            "--gpu: the cost of a mix of different GPUs",
            "Name one kind of GPU",
        ),
        (
            ["--gpu", "l40s", "--tokens", "5", "--hours", "3"],
            "--tokens and --hours: cannot be combined: they are different jobs",
            "Choose one",
        ),
        (
            ["--gpu", "l40s", "--task", "training", "--requests-per-day", "5000"],
            "--requests-per-day: a service needs a plan for inference, and this plan trains",
            "Add --task inference, or enter the training run with --tokens or --hours",
        ),
        (["--gpu", "l40s", "--electricity", "XX"], "--electricity: the catalog has no electricity data for 'XX'", "DE"),
        (["--gpu", "l40s", "--place", "moon"], "--place: there is no 'moon'; choose desk", "--help"),
        (["--gpu", "l40s", "--mode", "weekly"], "--mode: there is no 'weekly'; choose on-demand", "--help"),
        (["--gpu", "l40s", "--offer", "nope"], "--offer: there is no offer with the id 'nope'", "choose another"),
        (["--gpu", "l40s", "--epochs", "3"], "--dataset: the size of an epoch is missing", "the number of samples"),
        (["--gpu", "l40s", "--hours", "1e6"], "--horizon: one run takes longer", "more GPUs"),
        (["--gpu", "l40s", "--offers", "-1"], "'-1' is too small. Type a whole number from 0", "--help"),
        (["--gpu", "l40s", "--versus", "nothing"], "no model is called 'nothing'", "gpu-planner models"),
    ],
)
def test_wrong_input_is_told_with_what_to_do(capsys, words, message, hint):
    assert main(["cost", "meta-llama/Llama-3.1-8B", *words]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert hint in printed


def test_an_offer_of_another_card_is_refused(capsys, said):
    other = json.loads(said(*SERVING, "--json"))["offers"][0]["offer"]["id"]
    assert main(["cost", "gpt2", "--gpu", "RTX 4090", "--offer", other]) == 2
    assert f"--offer: {other} has l40s, not rtx-4090" in capsys.readouterr().err


def test_a_million_requests_a_second_are_no_crash(said):
    assert json.loads(said(*SERVING, "--requests-per-day", "1e12", "--json"))["hybrid"] is None


def test_help_says_what_scripts_get(said, capsys):
    assert main(["cost", "--help-all"]) == 0
    told = capsys.readouterr().out
    assert "--json prints one object: plan, time, cost" in told
    assert "exit codes: 0 done, 2 invalid input" in told
