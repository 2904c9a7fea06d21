"""Plans made from other programs' training files and from presets."""
