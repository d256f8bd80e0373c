"""How long tests wait for other processes and threads: so long that only a hang is longer."""

SECONDS = 240
