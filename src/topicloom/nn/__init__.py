"""Parts of networks: leaves that import only torch."""
