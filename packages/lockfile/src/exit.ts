import { constants } from 'node:os'

/**
 * Signals that end a process that does not handle them. Others can't be handled, or mean that the process is broken.
 */
const SIGNALS = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGALRM',
  'SIGUSR2',
  'SIGXCPU',
  'SIGVTALRM',
] as const

/** The counter of the listeners of signal-exit, which proper-lockfile and many other packages use. */
interface Counted {
  readonly count?: unknown
}

/** Calls the function when this process or thread ends, also by a signal that nothing else handles. */
export function atExit(release: () => void): void {
  process.on('exit', release)
  for (const signal of SIGNALS) if (signal in constants.signals) handle(signal, release)
}

function handle(signal: NodeJS.Signals, release: () => void): void {
  const listener = (): void => {
    process.off(signal, listener)
    if (process.listenerCount(signal) > ofSignalExit()) {
      // A program that handles the signal may continue. The listener must be there for the next signal.
      setImmediate(() => process.prependListener(signal, listener))
      return
    }
    release()
    process.kill(process.pid, signal)
  }
  process.prependListener(signal, listener)
}

/** Returns the number of listeners of signal-exit for each signal. They end the process if there are no others. */
function ofSignalExit(): number {
  const { __signal_exit_emitter__: third } = process as { __signal_exit_emitter__?: Counted }
  const fourth = (globalThis as { [key: symbol]: Counted | undefined })[Symbol.for('signal-exit emitter')]
  return [third, fourth].reduce((sum, counted) => sum + (Number(counted?.count) || 0), 0)
}
