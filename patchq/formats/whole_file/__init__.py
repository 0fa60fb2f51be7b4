"""Whole files, in a fence under their path or between FILE: lines."""
