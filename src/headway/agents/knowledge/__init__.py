"""Answers questions from documents, with sources."""
