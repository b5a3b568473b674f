"""The cluster's API: one client, watches, what objects look like on the wire, events, access reviews."""
