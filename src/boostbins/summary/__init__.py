"""What is kept of a column's rows: a summary, from which cuts are found, and which adds up."""
