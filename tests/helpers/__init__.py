"""Inputs, references and settings that several tests share."""
