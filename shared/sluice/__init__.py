"""Sluice's contracts: the records on the bus, the CRDs, quantities, settings and telemetry."""
