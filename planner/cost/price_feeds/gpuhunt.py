"""Price lists of dstack's gpuhunt: one zip archive with one CSV file per provider, rebuilt every hour.

**Source**: github.com/dstackai/gpuhunt at 3584151 (2026-08-19): `_internal/catalog.py` for the addresses,
`_internal/storage.py` for the columns. Prices are of the whole instance, in USD. There is no form factor (SXM or PCIe)
and no commitment in it.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from typing import Final

from planner.cost.price_feeds.download import FetchedFile, Fetcher
from planner.cost.price_feeds.offers import KEPT_PRICES_HINT, Listing, RejectedRow
from planner.errors import PriceError
from planner.parsing.packed import unpack_zip
from planner.storage import UnreadableFileError
from planner.units import MIB

MOST_UNPACKED_BYTES: Final = 200 * MIB
HOST: Final = "dstack-gpu-pricing.s3.eu-west-1.amazonaws.com"
BASE: Final = f"https://{HOST}/v3"
PROVIDERS: Final[Mapping[str, str]] = {
    "aws": "AWS",
    "azure": "Azure",
    "gcp": "GCP",
    "oci": "OCI",
    "lambdalabs": "Lambda",
    "nebius": "Nebius",
    "verda": "Verda",
    "cloudrift": "CloudRift",
}
"""Provider names by gpuhunt's spelling; RunPod is left out, because its list does not distinguish its two clouds."""
_NEEDED: Final = ("instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot")
_VERSION_BYTES: Final = 200
# YYYYMMDD and the number of the run.
_VERSION: Final = re.compile(r"(\d{4})(\d{2})(\d{2})-\d+", re.ASCII)
# Splits "RTX4070TiSUPER" and "RTX6000Ada" into the words of the catalog's names.
_WORDS: Final = re.compile(r"(?<=RTX)(?=PRO)|(?<=PRO)(?=\d)|(?<=\d)(?=Ti|SUPER|Ada|NVL)|(?<=Ti)(?=SUPER)")

_TPU: Final = re.compile(r"(v2|v3|v4|v5p|v5litepod|v6e)-(\d+)", re.ASCII)
"""A TPU's name in the list, which stands in the place of the GPU's: version and number of cores or of chips."""
_CHIPS_PER_CORE: Final[Mapping[str, float]] = {"v5litepod": 1, "v6e": 1}
"""Chips by the unit of such a name; that of the other versions is a core, of which a chip has two.

**Source**: gpuhunt `providers/gcp.py` at 027ccf3, `TPU_HARDWARE_SPECS` and `get_tpu_prices`: prices are of all chips.
"""


def fetch_gpuhunt(fetcher: Fetcher, key: str, base: str = BASE) -> tuple[FetchedFile, list[Listing | RejectedRow]]:
    """Download a provider's archive, by gpuhunt's name for the provider, and return it with its rows.

    Raises:
        PriceError: If it cannot be fetched or is not the expected list.
    """
    provider = PROVIDERS[key]
    stated = fetcher.fetch(f"{base}/{key}/version", _VERSION_BYTES).content.decode("ascii", "replace").strip()
    version = _VERSION.fullmatch(stated)
    if version is None:
        raise PriceError(provider, f"its version {stated[:40]!r} is not a date", KEPT_PRICES_HINT)
    fetched = fetcher.fetch(f"{base}/{key}/{stated}/catalog.zip")
    table = unpack_list(fetched.content, key)
    return fetched, list(read_table(table, provider, "-".join(version.groups())))


def unpack_list(content: bytes, key: str) -> bytes:
    """Return the CSV file in a provider's archive, by gpuhunt's name for the provider.

    Raises:
        PriceError: If `content` is not such an archive, or unpacks to more than 200 MiB.
    """
    try:
        return unpack_zip(content, f"{key}.csv", MOST_UNPACKED_BYTES)
    except UnreadableFileError as error:
        raise PriceError(PROVIDERS[key], f"its archive {error.reason}", KEPT_PRICES_HINT) from error


def read_table(table: bytes, provider: str, date: str) -> Iterator[Listing | RejectedRow]:
    """Yield the offers with GPUs in a provider's CSV file, and rejected rows; offers without GPUs are left out.

    Raises:
        PriceError: If it is not text or lacks a column.
    """
    try:
        reader = csv.DictReader(io.StringIO(table.decode("utf-8"), newline=""), strict=True)
        missing = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
        if missing:
            raise PriceError(provider, f"its list has no column {', '.join(missing)}", KEPT_PRICES_HINT)
        for row in reader:
            listing = _parse_row(row, provider, date)
            if listing is not None:
                yield listing
    except (csv.Error, UnicodeDecodeError) as error:
        raise PriceError(provider, f"its list cannot be read ({error})", KEPT_PRICES_HINT) from error


def _parse_row(row: Mapping[str, str | None], provider: str, date: str) -> Listing | RejectedRow | None:
    instance = (row["instance_name"] or "")[:100]
    try:
        count = int(row["gpu_count"] or "")
        if count == 0:
            return None
        card, memory = row["gpu_name"] or "", _parse_number(row["gpu_memory"])
        tpu = _TPU.fullmatch(card)
        if tpu:
            card = f"TPU {tpu[1].replace('litepod', 'e')}"
            count, memory = max(int(int(tpu[2]) * _CHIPS_PER_CORE.get(tpu[1], 0.5)), 1), None
        return Listing(
            provider=provider,
            instance=instance,
            card=_WORDS.sub(" ", card)[:100],
            card_memory_gb=memory,
            count=count,
            region=(row["location"] or "")[:100],
            price_usd_per_hour=float(row["price"] or ""),
            is_spot={"true": True, "false": False}[(row["spot"] or "").lower()],
            date=date,
            vcpus=_parse_number(row.get("cpu")),
            ram_gb=_parse_number(row.get("memory")),
            storage_gb=_parse_number(row.get("disk_size")),
        )
    except (ValueError, KeyError) as error:
        return RejectedRow(f"{provider} {instance}".strip(), f"a field is invalid ({error})")


def _parse_number(text: str | None) -> float | None:
    return float(text) if text else None
