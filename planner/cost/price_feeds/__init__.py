"""Price updates from the network, on request only: fetched within limits, validated, and held back if doubtful.

Bundled prices are never changed: fetched prices are stored as snapshots in the user's folder, and a setting selects
which of both are used.
"""
