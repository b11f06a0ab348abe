"""Routing policies: one per file, each registered under ``headway.route_policies``."""
