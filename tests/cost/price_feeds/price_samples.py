"""Small price lists in the form that sources publish them, and offers to compare them with."""

import io
import json
import zipfile

from planner.cost.renting.offer import Offer

COLUMNS = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags,cpu_arch,"
    "provider_data"
)
AWS_ROWS = (
    "p5.48xlarge,us-east-1,55.04,192,2048.0,8,H100,80.0,False,,nvidia,,x86,{}",
    "p5.48xlarge,us-east-1,22.5,192,2048.0,8,H100,80.0,True,,nvidia,,x86,{}",
    "g6e.xlarge,us-east-1,1.861,4,32.0,1,L40S,48.0,False,,nvidia,,x86,{}",
    "m5.large,us-east-1,0.096,2,8.0,0,,,False,,,,x86,{}",
)


def table(*rows: str, columns: str = COLUMNS) -> bytes:
    return "\n".join((columns, *rows, "")).encode()


def archive(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, content)
    return buffer.getvalue()


def feed_offer(**changes: object) -> dict[str, object]:
    return {
        "available": True,
        "currency": "USD",
        "disk_gb": 237,
        "gpu_count": 1,
        "gpu_family": "H100",
        "gpu_form": "SXM",
        "gpu_form_source": "provider",
        "gpu_key": "H100 80GB SXM",
        "gpu_model_raw": "H100 SXM5 80GB",
        "gpu_partition": None,
        "gpu_recognised": True,
        "notes": "instance type 1H100.80S.30V",
        "price_per_gpu_hr": 3.25,
        "price_per_gpu_hr_usd": 3.25,
        "price_total_hr": 3.25,
        "price_total_hr_usd": 3.25,
        "pricing_type": "on-demand",
        "provider": "datacrunch",
        "ram_gb": 120,
        "region": None,
        "vcpu": 30,
        "vram_gb": 80,
        **changes,
    }


def feed(*offers: object, **changes: object) -> bytes:
    whole = {
        "collected_at": "2026-08-23T07:00:36+00:00",
        "fx": {"eur_usd": 1.1699, "published": "2026-08-21", "source": "ECB"},
        "offer_count": len(offers),
        "offers": list(offers),
        **changes,
    }
    return json.dumps(whole).encode()


def offer(**changes: object) -> Offer:
    return Offer.model_validate(
        {
            "id": "aws-p5.48xlarge",
            "provider": "AWS",
            "instance": "p5.48xlarge",
            "gpu": "h100-sxm5-80gb",
            "gpu_count": 8,
            "region": "us-east-1",
            "on_demand_price_usd_per_hour": 55.04,
            "price_date": "2026-10-10",
            "source": "a price list",
            **changes,
        }
    )
