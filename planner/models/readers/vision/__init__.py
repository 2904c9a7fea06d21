"""Readers of networks that see images, alone or as a part of others."""
