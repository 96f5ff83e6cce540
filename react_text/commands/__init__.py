"""The commands of `react-text`, a module for each group: `register` declares them, a function runs each."""
