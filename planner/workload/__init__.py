"""Workloads: training or inference, with the choices that determine memory and time."""
