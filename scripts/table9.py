"""Table 9: how often a beam is not optimal with the highest of five clusters as range.

Real data goes into the requests as `data` and `weights`: see docs/how_to/reproducing.md.
"""

from paper_tables import print_tables

from optexp_jax.reproduction import TableRequest

REQUESTS = [TableRequest("clusters")]

if __name__ == "__main__":
    print_tables("Table 9", REQUESTS)
