/** How the command `signalbox` ends; `signalbox trains` has statuses of its own. */
export const EXIT = {
  fine: 0,
  /** It was not done: nothing was found, or the engine could not do it. */
  failed: 1,
  /** The command line can't be used, and nothing was done. */
  usage: 2,
} as const

/** The same for `--help`. */
export const EXIT_TEXT = `
Exit status:
  0  done
  1  not done: nothing was found, or the engine could not do it
  2  the command line can't be used; nothing was done`
