"""One module a command; its function `run(settings, progress)` does the job.

Args:
    settings: The job's settings, which are checked.
    progress: Shows the stages and the warnings of the job.

Returns:
    The summary, which can be written as JSON.

Raises:
    UsageError: Settings that do not fit the data, an input that does not exist, or an output folder
        that is not free. Each `run` says what else it refuses.
    DataError: Data that is damaged, or storage that fails.
"""
