"""Benchmarks: suites that measure speed, memory and quality, in turns and as ratios.

`optexp bench` runs them. Nothing is imported here: processes that measure memory begin with it.
"""
