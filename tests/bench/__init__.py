"""Measurements, run by hand: figures are compared within one run, and nothing here can fail a build."""
