"""Topics for people to read: documents with their topics, and tables of topics. Nothing here needs PyTorch."""
