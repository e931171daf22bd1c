"""A module or a folder for each command; its function `run(settings, progress)` does the job.

Args:
    settings: The job's settings, which are checked.
    progress: Shows the stages and the warnings of the job.

Returns:
    The summary, which can be written as JSON.

Raises:
    UsageError: Settings do not fit the data, an input does not exist, or the output folder holds
        something else.
    DataError: Data is damaged, or storage fails.
"""
