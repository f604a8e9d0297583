"""`holdfast run`: a command that runs while a lock is held, and is stopped before it is lost (S32).

Three processes, all forked before the first thread exists, so that none runs Python code between
fork and exec beside threads:

    front    what the user started: signals, the terminal, the exit code; it knows no engine
      holder   has the client and the lease; keeps the lock until the command is reaped
        child    waits for the word, then becomes the command, in a process group of its own

Rule 1: the holder gives the lock back only when the child is reaped. So a front that is killed
        with -9 frees nothing: the holder sees its end of the channel close, kills the child and
        all its descendants, and gives the lock back then.
Rule 2: the deadline is the earlier of the lease's and of one TTL after the last sign of life of
        the front: who stops `holdfast run` for a TTL has lost the lock, like any stopped holder.
        TERM comes at deadline - grace, KILL before the deadline; once TERM was sent there is no
        way back.
Rule 3: the front watches the holder in turn: past the instant of KILL without news it kills.
Rule 4: the child dies with the holder (PR_SET_PDEATHSIG), also when that is killed with -9.
"""
