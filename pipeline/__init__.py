"""This package carries events and solutions: logs, formats, and the runners between them."""
