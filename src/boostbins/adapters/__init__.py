"""What the adapters of the libraries have in common."""
