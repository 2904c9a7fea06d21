"""The price file of gpu-price-feed, which collects prices once a day from the APIs of providers.

**Source**: github.com/toolshedlabs-hash/gpu-price-feed at 03b0c63 (2026-08-23): `README.md`, `METHODOLOGY.md` and
`data/prices.json` for the meaning of the fields. It distinguishes form factors, marks slices of a GPU, and
gives the rate and day by which prices in euros were converted.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from planner.cost.price_feeds.download import FetchedFile, Fetcher
from planner.cost.price_feeds.offers import KEPT_PRICES_HINT, Listing, RejectedRow
from planner.errors import PriceError
from planner.parsing import parse_json
from planner.storage import UnreadableFileError

HOST: Final = "raw.githubusercontent.com"
URL: Final = f"https://{HOST}/toolshedlabs-hash/gpu-price-feed/main/data/prices.json"
TITLE: Final = "gpu-price-feed"
PROVIDERS: Final[Mapping[str, str]] = {
    "akamai": "Akamai",
    "datacrunch": "Verda",
    "digitalocean": "DigitalOcean",
    "lambdalabs": "Lambda",
    "runpod": "RunPod",
    "scaleway": "Scaleway",
    "vastai": "Vast.ai",
    "vultr": "Vultr",
}
"""Provider names by the feed's spelling; DataCrunch is now called Verda."""
# Commitments are left out, since they need a contract.
_KINDS: Final = {"on-demand": False, "spot": True}
_CLOUDS: Final = ("secure", "community")


def fetch_price_feed(fetcher: Fetcher, url: str = URL) -> tuple[FetchedFile, list[Listing | RejectedRow]]:
    """Download the price file, and return it with its rows.

    Raises:
        PriceError: If it cannot be fetched or is not the expected list.
    """
    fetched = fetcher.fetch(url)
    return fetched, list(read_feed(fetched.content))


def read_feed(content: bytes) -> Iterator[Listing | RejectedRow]:
    """Yield the feed's offers of whole GPUs, and rejected rows; other offers are left out.

    Raises:
        PriceError: If `content` is not JSON or has an unknown structure.
    """
    try:
        whole = parse_json(content)
        offers = whole["offers"]
        date = datetime.fromisoformat(whole["collected_at"]).date().isoformat()
        rate = whole.get("fx") or {}
        if not isinstance(offers, list) or not isinstance(rate, dict):
            raise TypeError("offers is not a list")
    except UnreadableFileError as error:
        raise PriceError(TITLE, f"the file {error.reason}", KEPT_PRICES_HINT) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"the file has an unknown structure ({_short_error_text(error)})"
        raise PriceError(TITLE, reason, KEPT_PRICES_HINT) from error
    for offer in offers:
        listing = _parse_offer(offer, date, rate)
        if listing is not None:
            yield listing


def _parse_offer(offer: Any, date: str, rate: Mapping[str, Any]) -> Listing | RejectedRow | None:  # noqa: ANN401  # JSON of others
    row_name = TITLE
    try:
        provider = PROVIDERS.get(offer["provider"])
        row_name = f"{offer['provider']} {offer['gpu_model_raw']}"[:100]
        if offer["pricing_type"] not in _KINDS or offer.get("gpu_partition") or offer["price_per_gpu_hr"] is None:
            return None
        if provider is None:
            return RejectedRow(row_name, "the provider is unknown")
        return _build_listing(offer, provider, date, rate)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return RejectedRow(row_name, f"a field is invalid ({_short_error_text(error)})")


def _build_listing(offer: Mapping[str, Any], provider: str, date: str, rate: Mapping[str, Any]) -> Listing:
    memory, note = offer.get("vram_gb"), str(offer.get("notes") or "")[:200]
    currency = str(offer["currency"])
    is_dollar = currency == "USD"
    return Listing(
        provider=_provider_with_cloud(provider, note),
        instance=str(offer["gpu_model_raw"])[:100],
        card=_card_name(offer),
        card_memory_gb=None if memory is None else float(memory),
        count=int(offer["gpu_count"]),
        region=str(offer.get("region") or "")[:100],
        price_usd_per_hour=float(offer["price_total_hr_usd"]),
        is_spot=_KINDS[offer["pricing_type"]],
        date=date,
        vcpus=_parse_number(offer.get("vcpu")),
        ram_gb=_parse_number(offer.get("ram_gb")),
        storage_gb=_parse_number(offer.get("disk_gb")),
        billed_currency=currency,
        usd_per_billed=None if is_dollar else float(rate[f"{currency.lower()}_usd"]),
        rate_date=None if is_dollar else str(rate["published"]),
        note=note,
    )


def _card_name(offer: Mapping[str, Any]) -> str:
    """Return the GPU's family and form factor if the feed recognized it, else the provider's own spelling."""
    if not offer.get("gpu_recognised"):
        return str(offer["gpu_model_raw"])[:100]
    form = offer.get("gpu_form")
    # The form factor is reliable only if the provider states it.
    stated = form if form and offer.get("gpu_form_source") == "provider" else ""
    return f"{offer['gpu_family']} {stated}".strip()[:100]


def _provider_with_cloud(provider: str, note: str) -> str:
    """Return the provider's name, with the cloud's name if there are several, such as "RunPod Secure"."""
    cloud = next((cloud for cloud in _CLOUDS if note.startswith(f"{cloud} cloud")), None)
    return provider if cloud is None else f"{provider} {cloud.capitalize()}"


def _parse_number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _short_error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:120]
