"""Faults on purpose: a scripted session is killed or refused at every write and sync, and looked over."""
