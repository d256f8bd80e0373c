"""What experiments share: the catalogue, findings, how they are judged, and their records."""
