"""Connects to the systems of which both directions need the same: clients, logins and faults."""
