"""All settings in one model.

Values come from arguments, environment and a policy file, and know their source.
"""
