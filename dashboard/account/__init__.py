"""What people do with their accounts: make one, choose another password, see their use, keep keys, leave."""
