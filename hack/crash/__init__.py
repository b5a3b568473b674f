"""Taintkeeper is killed at random moments, over and over; the API server's audit log tells whether anybody noticed."""
