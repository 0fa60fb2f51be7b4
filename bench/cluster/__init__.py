"""Several machines on one database and one remote: what they cost, and whether faults harm them."""
