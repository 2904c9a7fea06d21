"""Sentences on the kinds of hardware that introductions name: each means one thing, and is set apart from others."""

from typing import Final

KINDS: Final[dict[str, str]] = {
    "TPU": (
        "TPUs are Google's accelerators for large matrix products, rented in slices and programmed through XLA (JAX, "
        "PyTorch/XLA): for training and serving at scale in Google's cloud."
    ),
    "FPGA": (
        "FPGAs are chips whose circuits are configured after manufacture: for fixed networks that must answer within "
        "microseconds or at a few watts, and not for training or for models that change."
    ),
    "ASIC": (
        "ASICs are chips made for one kind of work, of which this catalog lists those for neural networks: TPU, "
        "Trainium, Gaudi, Ascend, Groq, Cerebras, Maia and MTIA."
    ),
    "NPU": (
        "NPUs are small units for neural networks in the processors of phones and laptops, which share the memory of "
        "their processor: search for its name, such as Ryzen AI or Apple M4, or for a card, such as Ascend or Cloud AI."
    ),
    "CPU": (
        "A CPU runs models that fit into its own memory; when it generates text, memory bandwidth limits the speed, as "
        "on a GPU, and two channels of DDR5-5600 give 90 GB/s, a tenth of a GeForce RTX 4090; to plan for a CPU, let "
        "llama.cpp run the model with 0 GPU layers."
    ),
    "CUDA": (
        "CUDA cores are the general units of NVIDIA's GPUs, which do everything but matrix products; other makers call "
        "theirs stream processors or shaders, and their numbers compare only within a generation."
    ),
    "TENSOR": (
        "Tensor cores, in NVIDIA's GPUs from Volta on, do matrix products several times as fast as CUDA cores; AMD's "
        "are called matrix cores."
    ),
    "GDDR": (
        "GDDR is the memory of most graphics cards, in chips around the GPU: cheaper and slower than HBM, which is "
        "stacked beside the chip."
    ),
    "HBM": (
        "HBM is memory in stacks beside the chip, as in most data center GPUs: several times as fast as GDDR, which "
        "sits around the chip, and more expensive."
    ),
    "VRAM": "VRAM is a GPU's own memory, the column Memory; search for an amount, such as 24 GB, or at least 24 GB.",
    "CACHE": (
        "Caches hold what was just read, so that it is not read from memory again: the L1 cache serves one group of "
        "cores and the L2 cache the whole chip; the details of a GPU have their sizes where they are published."
    ),
    "NVLINK": (
        "NVLink joins NVIDIA's GPUs several times as fast as PCIe, as a bridge between two GPUs or through NVSwitch "
        "among all of a server."
    ),
    "NVSWITCH": (
        "NVSwitch is the switch in a server or rack through which each GPU reaches any other at the full speed of its "
        "NVLink: search the systems for it."
    ),
    "BLADE": (
        "Blades are servers that share a chassis with its power and cooling; the systems are servers, boards and racks."
    ),
    "DGX": (
        "DGX is a complete machine of NVIDIA's, and HGX the board of GPUs from which others build servers: both are "
        "systems."
    ),
    "GEFORCE": (
        "Gaming cards (GeForce, Radeon RX, Arc) give the most arithmetic for their price, with less memory than "
        "workstation and data center cards and mostly without ECC and links between cards."
    ),
    "QUADRO": (
        "Workstation cards (NVIDIA's RTX PRO and RTX A, until 2020 Quadro; AMD's Radeon PRO) have more memory than "
        "gaming cards with the same chip, and mostly ECC, at a multiple of the price."
    ),
    "TITAN": (
        "Titan cards, sold until the Titan RTX of 2018, stood between GeForce and Quadro in memory and in price."
    ),
    "TESLA": (
        "Data center GPUs (A100, H100, Instinct; until 2020 Tesla) run in servers, which cool them, mostly with HBM "
        "and fast links, and without display outputs."
    ),
    "JETSON": (
        "Jetson modules are small computers for robots and cameras, whose GPU shares the memory of its processor and "
        "draws far less than a card."
    ),
    "IGPU": (
        "Integrated graphics are part of a processor and share its memory, which is slower than a card's and may be "
        "much larger."
    ),
    "SILICON": "Apple silicon is processor and GPU on one chip with one memory, of which the GPU may use the most.",
    "SXM": (
        "SXM modules sit on the board of a server, with more power and NVLink than the cards of the same name with "
        "PCIe, which fit a slot."
    ),
    "LAPTOP": (
        "Laptop GPUs share their name with a card, but have fewer cores or lower clocks, since their power is limited."
    ),
    "INFINIBAND": (
        "InfiniBand is a network between servers, and matters for a model on several of them: it belongs to a system, "
        "not to a GPU."
    ),
}
"""One sentence on each kind of hardware, and on what sets it apart.

**Source** TPU: https://cloud.google.com/tpu/docs/intro-to-tpu. FPGA: Umuroglu et al., FINN, FPGA 2017.
CPU: channels × 8 bytes × transfers per second, 2 × 8 × 5.6e9 = 89.6 GB/s (JEDEC JESD79-5); RTX 4090: 1,008 GB/s.
Others: the catalog's own records, and the sources of the terms in the glossary.
"""

_ALSO_CALLED: Final = {
    "TPU": ("TPUS",),
    "FPGA": ("FPGAS",),
    "ASIC": ("ASICS",),
    "NPU": ("NPUS", "NEURAL"),
    "CPU": ("CPUS", "PROCESSOR", "PROCESSORS", "RYZEN", "EPYC", "XEON"),
    "CACHE": ("CACHES", "L1"),
    "GDDR": ("GDDR5", "GDDR6", "GDDR6X", "GDDR7"),
    "HBM": ("HBM2", "HBM2E", "HBM3", "HBM3E", "HBM4"),
    "BLADE": ("BLADES",),
    "DGX": ("HGX", "SUPERCOMPUTER"),
    "GEFORCE": ("GAMING", "CONSUMER", "RADEON"),
    "QUADRO": ("WORKSTATION", "PROFESSIONAL"),
    "TESLA": ("DATACENTER", "DATACENTRE", "CENTER", "CENTRE"),
    "JETSON": ("EDGE", "EMBEDDED"),
    "IGPU": ("INTEGRATED", "APU"),
    "SXM": ("PCIE",),
    "LAPTOP": ("NOTEBOOK",),
}


def describe_kinds(text: str) -> str:
    """Return a sentence on each kind of hardware that `text` names, or an empty text."""
    named = set(text.upper().split())
    return " ".join(meaning for name, meaning in KINDS.items() if named & {name, *_ALSO_CALLED.get(name, ())})
