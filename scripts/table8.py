"""Table 8: minutes a unit by length and size of a beam.

Real data goes into the requests as `data` and `weights`: see docs/how_to/reproducing.md.
"""

from paper_tables import print_tables

from optexp_jax.reproduction import TableRequest

REQUESTS = [TableRequest("hyperparameters")]

if __name__ == "__main__":
    print_tables("Table 8", REQUESTS)
