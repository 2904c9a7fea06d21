"""Import of logs of other programs: real excerpts and files of the same forms, complete, truncated and malformed."""

from datetime import date, datetime
from pathlib import Path

import pytest
from logs_kit import cards, samples, value

from planner.errors import RecordingError
from planner.monitor.readings.reading import Cause, missing
from planner.monitor.recording.log_import import (
    NO_TIMES,
    _modification_day,
    import_log,
    open_recording,
    recording_from_text,
    updates_from_lines,
)
from planner.monitor.recording.recorder import Recorder

# nvidia_gpu_exporter, internal/captures (MIT): an RTX 2080 Super that encodes, and an H100 in MIG mode.
DMON = """\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
    0     98     45      -      8      3    100      0      0      0   7500   2055
    0     98     45      -      8      3    100      0      0      0   7500   2055
"""
DMON_MIG = """\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
    0     70     42     48      -      -      -      -      -      -   2619    345
"""
# As a tutorial shows `nvidia-smi dmon -s pucet -o DT`, with a second card.
DMON_DATED = """\
#Date       Time        gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk sbecc dbecc   pci rxpci txpci
#YYYYMMDD   HH:MM:SS    Idx     W     C     C     %     %     %     %   MHz   MHz  errs  errs  errs  MB/s  MB/s
 20210102   19:12:31      0    37    19     -     0     0     0     0   405   300     -     -     0     1     2
 20210102   19:12:31      1    60    30     -    50     7     0     0  5000  1300     -     -     0     3     4
 20210102   19:12:33      0    38    19     -     0     0     0     0   405   300     -     -     0     1     2
"""
DMON_CSV = """\
#gpu, pwr, gtemp, sm
# Idx, W, C, %
0, 100, 50, 99
"""
QUERY = """\
timestamp, index, uuid, pci.bus_id, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], \
clocks.sm [MHz], pstate, clocks_event_reasons.active, encoder.stats.sessionCount, fan.speed [%], temperature.memory
2026/01/03 15:36:53.507, 0, GPU-0a, 00000000:01:00.0, NVIDIA GeForce RTX 4090, 1 %, 1129 MiB, 24564 MiB, 33.09 W, \
210 MHz, P8, 0x0000000000000001, 0, 30 %, [N/A]
2026/01/03 15:36:53.512, 1, GPU-0b, 00000000:02:00.0, NVIDIA GeForce RTX 4090, [Insufficient Permissions], , \
24564 MiB, \
[Unknown Error], 2520 MHz, P0, 0x4, 0, [Function Not Found], [Not Supported]
2026/01/03 15:36:54.507, 0, GPU-0a, 00000000:01:00.0, NVIDIA GeForce RTX 4090, 34 %, 17304 MiB, 24564 MiB, 71.06 W, \
2520 MHz, P2, 0x0, 0, 31 %, [Requested functionality has been deprecated]
2026/01/03 15:36:54.512, 1, GPU-0b, 000000
"""
# As amd-smi of an MI-series writes it: cells that are lists, N/A, seconds since 1970, and a blank line between looks.
AMD = """\
timestamp,gpu,gfx_activity,umc_activity,vcn_activity,socket_power,gfx_0_clk,mem_0_clk,edge,hotspot,mem
1786553852,0,97,12,"['N/A', 'N/A']",238,2100,2000,N/A,37,23
1786553852,1,0,0,"[0, 0]",242,94,2000,N/A,41,26

1786553853,0,96,12,"['N/A', 'N/A']",239,2100,2000,N/A,38,23
1786553853,1,0,0,"[0, 0]",243,94,2000,N/A,41,26
"""
DCGMI = """\
#Entity         GPUTL             FBUSD             FBTTL             SMACT             DRAMA             TOTEC
ID
GPU 0           10                800               1000              0.512             N/A               5000
GPU 1           30                900               1000              0.25              0.125             7000
GPU-I 3         N/A               100               1000              0.9               0.5               N/A
GPU 0           11                800               1000              0.513             N/A               6000
"""
DCGM_CSV = """\
timestamp,gpu,uuid,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
2026-01-03T10:00:00+00:00,0,GPU-0a,99,650.5,0.41
2026-01-03T10:00:01+00:00,0,GPU-0a,98,655.5,0.42
"""
# Version 3.3.0 left out commas (Syllo/nvtop issue 438); the second snapshot is cut off.
NVTOP = """\
[
  {
   "device_name": "NVIDIA GeForce RTX 5060 Ti",
   "gpu_clock": "210MHz",
   "mem_clock": "405MHz",
   "temp": "36C",
   "fan_speed": "CPU Fan",
   "power_draw": "7W",
   "gpu_util": "0%",
   "mem_util": "35%"
   "mem_total": "21197180928"
   "mem_used": "7585398784"
   "mem_free": "13611782144"
  },
  {
   "device_name": "Battlemage G21",
   "gpu_clock": "400MHz",
   "mem_clock": null,
   "fan_speed": "1179RPM",
   "pcie_link_gen": 3,
   "processes" : [
      {"pid": "7", "gpu_usage": null}
   ]
  }
]
[
  {
   "device_name": "NVIDIA GeForce RTX 5060 Ti",
   "gpu_util": "5
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_query_of_two_cards(imported, encoding, ends):
    found = imported(QUERY.replace("\n", ends), encoding)
    first, second = cards(found)
    assert (first.uuid, first.index, first.name) == ("GPU-0a", 0, "NVIDIA GeForce RTX 4090")
    assert (second.uuid, second.index, second.pci_bus_id) == ("GPU-0b", 1, "00000000:02:00.0")
    assert first.fact("memory_total_bytes") == 24564 * 2**20
    look = samples(found)[0].devices
    assert look["GPU-0a"]["power_watts"].value == 33.09
    assert look["GPU-0a"]["performance_state"].value == 8
    assert look["GPU-0a"]["clock_reasons"].value == 1
    assert look["GPU-0a"]["memory_temperature_celsius"] == missing(Cause.NOT_SUPPORTED)
    assert "memory_used_bytes" not in look["GPU-0b"], "a blank cell is no reading"
    assert look["GPU-0b"]["utilization_fraction"] == missing(Cause.NO_PERMISSION)
    assert look["GPU-0b"]["power_watts"] == missing(Cause.FAILED)
    assert look["GPU-0b"]["fan_fraction"] == missing(Cause.MISSING_SYMBOL)
    assert list(samples(found)[1].devices) == ["GPU-0a"]
    assert found.notes == ("1 of its lines could not be read.",)
    assert found.seconds == pytest.approx(1.0)


def test_dmon_has_no_times(imported):
    found = imported(DMON)
    assert found.notes == (NO_TIMES,)
    assert (found.samples, found.seconds) == (2, 1.0)
    assert value(found, 0, "log-0", "encoder_fraction") == 1.0
    assert value(found, 0, "log-0", "utilization_fraction") == 0.08
    assert samples(found)[0].devices["log-0"]["memory_temperature_celsius"] == missing(Cause.NOT_SUPPORTED)
    mig = samples(imported(DMON_MIG))[0].devices["log-0"]
    assert mig["utilization_fraction"].value is None
    assert mig["power_watts"].value == 70


def test_dmon_with_dates_and_two_cards(imported):
    found = imported(DMON_DATED)
    assert (found.notes, found.seconds, found.samples) == ((), 2.0, 2)
    assert value(found, 0, "log-1", "power_watts") == 60
    assert value(found, 0, "log-1", "pcie_transmit_bytes_per_s") == 4e6
    assert value(found, 0, "log-1", "pcie_receive_bytes_per_s") == 3e6
    assert found.first.wall_seconds == datetime(2021, 1, 2, 19, 12, 31).timestamp()


def test_dmon_as_csv(imported):
    assert value(imported(DMON_CSV), 0, "log-0", "utilization_fraction") == 0.99


def test_amd_smi_has_lists_and_blank_lines(imported):
    found = imported(AMD)
    assert (found.samples, found.seconds, found.notes) == (2, 1.0, ())
    assert found.first.wall_seconds == 1786553852
    assert value(found, 0, "log-0", "temperature_celsius") == 37, "the hotspot where there is no edge"
    assert value(found, 1, "log-1", "power_watts") == 243
    assert value(found, 0, "log-0", "memory_temperature_celsius") == 23
    assert value(found, 0, "log-0", "memory_controller_fraction") == 0.12
    assert [card.name for card in cards(found)] == ["GPU 0", "GPU 1"]


def test_dcgmi_dmon(imported):
    found = imported(DCGMI)
    assert [card.name for card in cards(found)] == ["GPU 0", "GPU 1", "GPU GPU-I 3"]
    assert value(found, 0, "log-1", "sm_active_fraction") == 0.25
    assert value(found, 1, "log-0", "energy_joules") == 6.0
    assert cards(found)[0].fact("memory_total_bytes") == 1000 * 2**20
    assert found.notes == (NO_TIMES,)


def test_dcgm_fields_as_csv(imported):
    found = imported(DCGM_CSV)
    assert value(found, 1, "GPU-0a", "tensor_active_fraction") == 0.42
    assert found.first.wall_seconds == 1767434400


def test_nvtop_with_and_without_commas(imported):
    found = imported(NVTOP, name="nvtop.json")
    assert found.notes == (NO_TIMES,)
    first, second = cards(found)
    assert (first.name, second.name) == ("NVIDIA GeForce RTX 5060 Ti", "Battlemage G21")
    assert first.fact("memory_total_bytes") == 21197180928
    look = samples(found)[0].devices
    assert look["log-0"]["power_watts"].value == 7
    assert "fan_fraction" not in look["log-0"] | look["log-1"], "no share of the full speed"
    assert look["log-1"]["pcie_generation"].value == 3
    gpus = '{"gpus": [{"device_name": "A", "pci": "0000:0c:00.0", "gpu_util": "3%", "odd": []}, 7]} {"gpus": 1}'
    assert cards(imported(gpus))[0].pci_bus_id == "0000:0c:00.0"


def test_a_script_that_repeats_date_and_header(imported):
    found = imported(
        "\n\n10:30:01\npower.draw [W], utilization.gpu [%]\n100 W, 5 %\n"
        "\n\n10:30:03\npower.draw [W], utilization.gpu [%]\n110 W, 6 %\n"
    )
    assert (found.samples, found.seconds, found.notes) == (2, 2.0, ())


@pytest.mark.parametrize(
    "text",
    [
        "hello\nworld, here\n",
        "timestamp, name\n1, 2\n",
        "[",
        "[1]",
        '{"a": 1}',
        "[" * 50_000,
        "\0" * 9 + "a",
        "power.draw,util\n" + "9" * 70_000 + ",1\n",
        "power.draw [W], util\n",
        "power.draw [W], util\nmuch, more\n",
    ],
)
def test_an_unsupported_file_is_an_error(imported, text):
    with pytest.raises(RecordingError, match=": not a supported GPU log") as refused:
        imported(text)
    assert "nvidia-smi --query-gpu" in refused.value.hint


@pytest.mark.parametrize("text", ["", "\n\n", "\0" * 9])
def test_an_empty_file_is_an_error(imported, text):
    with pytest.raises(RecordingError, match="the file is empty"):
        imported(text)


def test_unreadable_files_are_errors(tmp_path):
    with pytest.raises(RecordingError, match="is a folder"):
        import_log(tmp_path)
    with pytest.raises(RecordingError, match="cannot be read"):
        open_recording(tmp_path / "missing.csv")


def test_an_invalid_path_is_an_error():
    with pytest.raises(RecordingError, match="cannot be read"):
        open_recording(Path("a\0b"))
    with pytest.raises(RecordingError, match=": not a supported GPU log"):
        recording_from_text("nothing", Path("a\0b"))


def test_recordings_and_logs_are_opened(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(QUERY)
    assert open_recording(log).samples
    with Recorder(tmp_path / "run.gpurec"):
        pass
    assert open_recording(tmp_path / "run.gpurec").samples == 0


# As nvidia-smi tells of processes: `pmon -c 2`, and `--query-compute-apps` as CSV.
PMON = """\
# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command
# Idx           #    C/G      %      %      %      %      %      %    name
    0       1234      C     97     41      -      -      -      -    python
    0          -      -      -      -      -      -      -      -    -
"""
APPS = "timestamp, pid, process_name, used_gpu_memory [MiB]\n2026/01/03 15:36:53.507, 7, python, 900 MiB\n"
# A spreadsheet of a country that writes numbers with a comma has saved it again.
SEMICOLONS = """\
timestamp;name;utilization.gpu [%];power.draw [W]
2026/01/03 15:36:53,507;NVIDIA GeForce RTX 4090;34 %;33,09 W
2026/01/03 15:36:54,507;NVIDIA GeForce RTX 4090;35 %;33,19 W
"""


@pytest.mark.parametrize("text", [PMON, APPS])
def test_a_log_of_processes_is_an_error_with_a_hint(imported, text):
    with pytest.raises(RecordingError, match=": a log of processes, not of GPUs") as refused:
        imported(text)
    assert "--query-gpu=timestamp,index" in refused.value.hint


def test_cells_separated_by_semicolons_or_tabs(imported):
    found = imported(SEMICOLONS)
    assert [value(found, place, "log-0", "power_watts") for place in (0, 1)] == [33.09, 33.19]
    assert (found.seconds, cards(found)[0].name) == (1.0, "NVIDIA GeForce RTX 4090")
    tabs = imported(SEMICOLONS.replace(";", "\t"))
    assert (tabs.samples, value(tabs, 1, "log-0", "power_watts")) == (2, 33.19)


def test_a_log_that_is_no_file_has_a_day_all_the_same(tmp_path: Path) -> None:
    assert _modification_day(tmp_path / "absent.csv") == date(2000, 1, 1)


def test_unnamed_cards_are_distinguished_by_the_time_of_their_lines(imported):
    found = imported("timestamp,power.draw\n" + "".join(f"2026/01/03 10:00:0{at},{at}\n" for at in (0, 0, 0, 1, 1, 1)))
    assert [len(look.devices) for look in samples(found)] == [3, 3]


def test_a_clock_set_back_gives_increasing_times(imported):
    times = ("2026/01/03 10:00:00", "2026/01/03 10:00:02", "2026/01/03 09:00:00", "2026/01/03 09:00:01")
    found = imported("timestamp,power.draw\n" + "".join(f"{at},1\n" for at in times))
    assert [look.monotonic_seconds for look in samples(found)] == [0.0, 2.0, 4.0, 5.0]


def test_no_lines_give_no_updates():
    assert list(updates_from_lines([], date(2026, 1, 1))) == []


def test_the_size_of_the_memory_is_a_fact_of_the_card_and_no_reading(imported):
    found = imported("index,memory.total [MiB],power.draw [W]\n0,1024 MiB,100 W\n0,1024 MiB,110 W\n")
    (card,) = cards(found)
    assert {name: fact.value for name, fact in card.facts.items()} == {"memory_total_bytes": 2**30}
    assert [set(look.devices[card.uuid]) for look in samples(found)] == [{"power_watts"}] * 2


def test_a_log_with_too_many_cards_is_an_error(imported):
    with pytest.raises(RecordingError, match="names more than 1,024 GPUs"):
        imported("index,power.draw\n" + "".join(f"{number},1\n" for number in range(2000)))
