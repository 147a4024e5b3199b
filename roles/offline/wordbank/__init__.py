"""Material for the offers: titles, places, routes, products. Facts and inventions, no facts about any user."""
