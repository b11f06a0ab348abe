"""Between dialects: a request becomes a `conversation`, that the engine's request, and its answer is told back."""
