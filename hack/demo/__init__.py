"""Shows the operator at work: a small cluster, a node that fails, one that is tainted by hand, and who leaves when.

Everything told is read from the API, as any user could; nothing is taken from inside the operator.
"""
