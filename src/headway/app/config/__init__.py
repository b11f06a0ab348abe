"""`headway.toml` as a person writes it: read, checked, and each mistake told by its line."""
