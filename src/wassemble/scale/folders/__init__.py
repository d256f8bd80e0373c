"""Folders of part files in, a folder out: in runs that may be cut off, here or on a cluster."""
