/** Exit statuses of the command `signalbox`, see {@link EXIT_TEXT}; `signalbox trains` has its own. */
export const EXIT = {
  fine: 0,
  failed: 1,
  usage: 2,
  unavailable: 69,
  busy: 75,
  lost: 76,
  notStarted: 126,
  notFound: 127,
  signal: 128,
} as const

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
