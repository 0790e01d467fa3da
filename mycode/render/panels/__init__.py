"""The larger pictures: the context, a summary, the history, a question. Each one also as labelled lines."""
