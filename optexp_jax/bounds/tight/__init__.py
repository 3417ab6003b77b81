"""The tight search: exact pairs everywhere, and bounds on what a third concept can add to them."""
