"""Parts of networks, which import nothing but torch."""
