"""The upper hull of extras and intersections, found by searches with other bases than |N|."""
