"""One page that shows an episode: while it runs, or from a film."""
