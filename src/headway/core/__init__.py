"""The nouns: frozen types that every other layer speaks in. No I/O, no clock, no dice."""
