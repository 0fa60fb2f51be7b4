"""The queue in PostgreSQL: many machines empty one inbox.

The database brings the locks, the order, the durability and the wake-up; what is here are the
functions (`functions.sql`) and the queue's protocol in them.
"""
