"""What the gateway's benchmark is made of: a mock engine and a load generator in C, the traffic, pinned processes."""
