"""Planning tests with an exact oracle (PDoctor, arXiv 2404.17833)."""
