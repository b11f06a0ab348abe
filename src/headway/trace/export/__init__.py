"""Spans in the formats of other tools."""
