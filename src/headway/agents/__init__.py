"""Reference agents: ordinary programs that know only a base URL."""
