"""Search over a server: ours for a corpus, any that speaks the same, a cache, summaries."""
