"""LangSmith: runs."""
