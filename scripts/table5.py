"""Table 5: nodes and seconds a unit of the other models on Cityscapes.

Real data goes into the requests as `data` and `weights`: see docs/how_to/reproducing.md.
"""

from paper_tables import print_tables

from optexp_jax.reproduction import TableRequest

REQUESTS = [TableRequest("low", model) for model in ("alexnet", "densenet161")]

if __name__ == "__main__":
    print_tables("Table 5", REQUESTS)
