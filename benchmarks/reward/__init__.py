"""The reward model measured: true effects of simulated people, orders of a real shop, speed."""
