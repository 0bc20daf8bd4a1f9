"""Topics as people meet them: tables of topics and of documents with their topics. Nothing here needs PyTorch."""
