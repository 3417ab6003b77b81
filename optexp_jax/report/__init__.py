"""The report of runs: a static site that opens from disk, with no server and no network."""

from optexp_jax.report.site import ReportSettings, build_report

__all__ = ["ReportSettings", "build_report"]
