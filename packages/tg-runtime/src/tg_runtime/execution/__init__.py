"""Schedules run: prepared for repetition, executed step by step or recorded, their memory arranged."""
