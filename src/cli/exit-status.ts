/** How the command `signalbox` ends; `signalbox trains` has statuses of its own. */
export const EXIT = {
  fine: 0,
  /** It was not done: nothing was found, or the engine could not do it. */
  failed: 1,
  /** The command line can't be used, and nothing was done. */
  usage: 2,
  /** The engine can't be reached or refuses, or its answer never came. */
  unavailable: 69,
  /** The lock or permit was not free within the wait. */
  busy: 75,
  /** The lock was lost while the command ran, which was ended. */
  lost: 76,
  /** The command was found but can't be started. */
  notStarted: 126,
  /** There is no such command. */
  notFound: 127,
  /** To this the number of the signal is added that ended it. */
  signal: 128,
} as const

/** The same for `--help`. */
export const EXIT_TEXT = `
Exit status:
  0    done
  1    not done: nothing was found, another version was there, or doctor has found something
  2    the command line can't be used; nothing was done
  69   the engine can't be reached or refuses, or its answer never came
  75   the lock or permit was not free within the wait
  76   the lock was lost while the command ran, which was ended
  126  the command can't be started; 127: there is no such command
  128  and the number of a signal: ended by it
run, lead and limit end with the status of the command that they ran.`
