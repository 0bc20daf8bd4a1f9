"""Topics as people meet them: documents with their topics, and tables of topics. Nothing here needs PyTorch."""
