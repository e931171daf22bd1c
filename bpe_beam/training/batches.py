def plain_batch(*a, **k):
    return 1
