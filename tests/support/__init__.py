"""What tests share: an independent judge of requests, generators of histories, real data."""
