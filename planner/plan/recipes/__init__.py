"""Sources of plans: training files of other programs, and presets."""
