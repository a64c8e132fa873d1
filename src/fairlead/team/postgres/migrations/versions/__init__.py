"""The migrations, which are applied in the order of their names."""
