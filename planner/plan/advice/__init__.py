"""Advice on how to make a plan fit."""
