"""Table 6: nodes and seconds a unit of the other models on ADE20K-Full.

Real data goes into the requests as `data` and `weights`: see docs/how_to/reproducing.md.
"""

from paper_tables import print_tables

from optexp_jax.reproduction import TableRequest

REQUESTS = [TableRequest("intermediate", model) for model in ("alexnet", "densenet161")]

if __name__ == "__main__":
    print_tables("Table 6", REQUESTS)
