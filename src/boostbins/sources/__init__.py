"""Where rows come from: anything that holds a table, as named columns of numbers."""
