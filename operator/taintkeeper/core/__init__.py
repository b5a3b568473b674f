"""Decisions, without I/O: what a taint means, when a pod must leave, how fast a zone may be tainted.

Everything here is deterministic. Events and a time go in, effects come out; the shell around it watches the
cluster, carries the effects out and feeds the answers back. Times are seconds since the epoch on a clock that
never jumps; what is random comes from a generator that is passed in.
"""
