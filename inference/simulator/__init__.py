"""The production scheduler under a virtual clock: what a policy does to ten thousand chats, in seconds."""
