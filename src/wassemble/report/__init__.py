"""The evidence report: one page that opens offline, and its figures as JSON."""

from wassemble.report.write import write_report

__all__ = ["write_report"]
