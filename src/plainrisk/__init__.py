"""plainrisk"""
