"""Reading runs: scenarios by expression, column or text; conversations with their faults, judgements and calls."""
