"""Findings: what is wrong with a task or a set of tasks, what it costs, and how to know for sure."""

from headway.trace.findings.detect import findings, set_findings
from headway.trace.findings.finding import Confidence, Finding
from headway.trace.findings.tail import Account

__all__ = ["Account", "Confidence", "Finding", "findings", "set_findings"]
