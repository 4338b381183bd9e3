"""The way of events and solutions: logs, formats, and the runners between them."""
