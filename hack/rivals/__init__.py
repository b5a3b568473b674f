"""Taintkeeper beside the controllers that it replaces, all of them at work: who writes how much, and is it noticed."""
