"""Front ends for programs: one-shot printers."""
