"""FluSight: real forecasts of many teams, fused from what was known when they were made."""
