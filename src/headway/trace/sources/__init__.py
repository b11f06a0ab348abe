"""Importers of what other tools recorded: one file per format, each registered under ``headway.sources``."""
