"""What may not grow: a curve for each cost, its ratio, and the verdict against its goal."""
