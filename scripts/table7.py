"""Table 7: nodes and seconds a unit of the other models on Broden.

Real data goes into the requests as `data` and `weights`: see docs/how_to/reproducing.md.
"""

from paper_tables import print_tables

from optexp_jax.reproduction import TableRequest

REQUESTS = [TableRequest("high", model) for model in ("alexnet", "densenet161")]

if __name__ == "__main__":
    print_tables("Table 7", REQUESTS)
