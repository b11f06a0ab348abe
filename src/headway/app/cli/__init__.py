"""The `headway` command."""
