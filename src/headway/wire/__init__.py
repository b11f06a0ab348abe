"""Wire formats to core types and back; bytes in, values out, no I/O."""
