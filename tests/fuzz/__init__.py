"""Random tables, partitions, damaged files and killed writers, each against what the library promises of them."""
