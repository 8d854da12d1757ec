"""What is loaded right now: topics with their producers, subscriptions and cursors."""
