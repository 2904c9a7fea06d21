"""Archives from the network: hostile, broken, and as they should be."""

import pytest
from price_samples import AWS_ROWS, archive, table
from price_server import PriceServer

from planner.cost.price_feeds.download import Fetcher
from planner.cost.price_feeds.gpuhunt import fetch_gpuhunt, read_table, unpack_list
from planner.cost.price_feeds.offers import CardMatcher, Listing, RejectedRow
from planner.errors import PriceError
from planner.hardware.catalog import load_hardware
from planner.paths import catalog_dir


def test_what_is_no_archive_with_the_one_list_is_refused_and_keeps_the_prices():
    assert unpack_list(archive("aws.csv", b"a,b\n1,2\n"), "aws") == b"a,b\n1,2\n"
    for content, reason in ((b"no zip", "cannot be unpacked"), (archive("x", b""), "contains x instead of aws.csv")):
        with pytest.raises(PriceError, match=f"AWS: its archive {reason}") as refused:
            unpack_list(content, "aws")
        assert "prices in use stay" in refused.value.hint


HTTP = frozenset({"http"})


def fetcher(prices: PriceServer) -> Fetcher:
    return Fetcher(frozenset({prices.host}), schemes=HTTP)


def serve_aws(prices: PriceServer, content: bytes | None = None, version: bytes = b"20261101-7\n") -> None:
    prices.files["/aws/version"] = version
    prices.files["/aws/20261101-7/catalog.zip"] = archive("aws.csv", content or table(*AWS_ROWS))


def test_a_list_of_gpuhunt_comes_by_its_newest_version(prices):
    serve_aws(prices)
    fetched, rows = fetch_gpuhunt(fetcher(prices), "aws", prices.base)
    assert fetched.url == f"{prices.base}/aws/20261101-7/catalog.zip"
    assert prices.asked == ["/aws/version", "/aws/20261101-7/catalog.zip"]
    assert rows[0] == Listing(
        provider="AWS",
        instance="p5.48xlarge",
        card="H100",
        card_memory_gb=80.0,
        count=8,
        region="us-east-1",
        price_usd_per_hour=55.04,
        is_spot=False,
        date="2026-11-01",
        vcpus=192.0,
        ram_gb=2048.0,
    )
    assert [row.is_spot for row in rows] == [False, True, False]


@pytest.mark.parametrize("version", [b"", b"latest", b"../../etc", b"20261101-7/../x", "２０２６１１０１-1".encode()])
def test_a_version_that_is_no_date_is_not_followed(prices, version):
    serve_aws(prices, version=version)
    with pytest.raises(PriceError, match="is not a date"):
        fetch_gpuhunt(fetcher(prices), "aws", prices.base)
    assert len(prices.asked) == 1


def test_names_that_are_written_together_are_taken_apart():
    names = ["RTX4070TiSUPER", "RTX6000Ada", "RTXPRO6000", "H100NVL", "RTX4090", "A10G", "MI300X"]
    rows = [f"i{at},x,1,1,1,1,{name},24,False,,nvidia,,x86,{{}}" for at, name in enumerate(names)]
    found = [row.card for row in read_table(table(*rows), "AWS", "2026-11-01")]
    assert found == ["RTX4070 Ti SUPER", "RTX6000 Ada", "RTX PRO 6000", "H100 NVL", "RTX4090", "A10G", "MI300X"]


@pytest.mark.parametrize(
    ("name", "memory", "gpu"),
    [
        ("A16", 16, "a16"),
        ("MI308X", 192, "instinct-mi308x"),
        ("Gaudi", 32, "gaudi1"),
        ("Gaudi2", 96, "gaudi2"),
        ("n150", 12, "wormhole-n150"),
        ("n300", 24, "wormhole-n300"),
        ("p150", 32, "blackhole-p150a"),
        ("Trainium", 32, "trainium1"),
    ],
)
def test_accelerators_of_other_makers_are_matched(name, memory, gpu):
    (row,) = read_table(table(f"x,eu,1,1,1,1,{name},{memory},False,,,,x86,{{}}"), "OCI", "2026-11-01")
    assert CardMatcher(load_hardware(catalog_dir()), {}).match(row).gpu == gpu


@pytest.mark.parametrize(
    ("name", "gpu", "count"),
    [
        ("v5litepod-8", "tpu-v5e", 8),
        ("v6e-1", "tpu-v6e", 1),
        ("v2-8", "tpu-v2", 4),
        ("v3-8", "tpu-v3", 4),
        ("v4-16", "tpu-v4", 8),
        ("v5p-8", "tpu-v5p", 4),
    ],
)
def test_tpus_are_counted_by_the_chip(name, gpu, count):
    (row,) = read_table(
        table(f"{name},us-east1-c,9.6,224,384,1,{name},128,False,,google,,x86,{{}}"), "GCP", "2026-11-01"
    )
    assert row.count == count
    assert CardMatcher(load_hardware(catalog_dir()), {}).match(row).gpu == gpu


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (table(columns="instance_name,location,price"), "no column gpu_count, gpu_name, gpu_memory, spot"),
        (b"", "no column instance_name"),
        (b"\xff\xfe\x00", "cannot be read"),
        (table('"never closed'), "cannot be read"),
    ],
)
def test_a_list_of_another_form_is_refused(content, reason):
    with pytest.raises(PriceError, match=reason):
        list(read_table(content, "AWS", "2026-11-01"))


@pytest.mark.parametrize(
    "row",
    [
        "p5,us,not a price,1,1,8,H100,80,False,,nvidia,,x86,{}",
        "p5,us,1.0,1,1,eight,H100,80,False,,nvidia,,x86,{}",
        "p5,us,1.0,1,1,8,H100,80,perhaps,,nvidia,,x86,{}",
        "p5,us,1.0",
    ],
)
def test_a_row_without_sense_is_named_and_the_others_stay(row):
    found = list(read_table(table(row, AWS_ROWS[0]), "AWS", "2026-11-01"))
    assert isinstance(found[0], RejectedRow)
    assert found[0].name == "AWS p5"
    assert isinstance(found[1], Listing)
