"""One conversation, kept: the store, and the face it shows to every front end."""
