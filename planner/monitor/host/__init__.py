"""The host as its operating system reports it: usage, processes, PCI devices and containers."""
