"""Checksums of the rows of a run, each bound to the run and to its place in it.

They find damage: flipped bits, rows of another run, values changed by hand. Somebody who wants to
deceive can compute them too; what `verify` counts and proves again is what counts then.
"""

import hashlib
import json


def seal(run_id: str, table: str, *row: object) -> str:
    """The checksum of a row of one of the run's tables."""
    # Type and exact value of each: floats by their shortest form, None apart from "null".
    text = json.dumps([run_id, table, *row], default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
