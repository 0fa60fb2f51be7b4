"""The queue in PostgreSQL: many machines empty one inbox.

The database brings the locks, the order, the durability and the wake-up; what is here are the
tables (`sql/`) and how the queue's protocol is said in them.
"""
