/** Exit statuses of the command `signalbox`; `signalbox trains` has its own. */
export const EXIT = {
  fine: 0,
  /** Not done: nothing was found, or the engine could not do it. */
  failed: 1,
  /** The command line is invalid; nothing was done. */
  usage: 2,
  /** The engine can't be reached, refused the request, or did not answer. */
  unavailable: 69,
  /** The lock or permit was not free within the wait. */
  busy: 75,
  /** The lock was lost while the command ran; the command was stopped. */
  lost: 76,
  /** The command exists but can't be started. */
  notStarted: 126,
  /** The command was not found. */
  notFound: 127,
  /** Plus the number of the signal that ended it. */
  signal: 128,
} as const

/** The exit statuses as `--help` shows them. */
export const EXIT_TEXT = `
Exit status:
  0    done
  1    not done: nothing was found, the version differs, or doctor found a problem
  2    the command line is invalid; nothing was done
  69   the engine can't be reached, refused the request, or did not answer
  75   the lock or permit was not free within the wait
  76   the lock was lost while the command ran; the command was stopped
  126  the command can't be started; 127: the command was not found
  128  plus the number of the signal that ended it
run, lead and limit exit with the status of the command that they ran.`
