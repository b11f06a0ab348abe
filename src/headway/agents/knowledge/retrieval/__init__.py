"""Finding passages: by meaning and by words, fused, reranked, without repeats, from a file that is kept up to date."""
