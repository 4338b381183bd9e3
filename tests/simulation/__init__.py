"""A deterministic simulation of servers: one seed gives one history of threads, disks, a store, clients and faults."""
