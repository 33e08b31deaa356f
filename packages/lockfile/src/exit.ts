import { constants } from 'node:os'

/** Signals that end a process which does not handle them. The others can't be handled, or mean that it is broken. */
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

/** How signal-exit, which proper-lockfile and many others use, counts its listeners. */
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
      // A program that handles the signal may continue. It must not find us gone the next time.
      setImmediate(() => process.prependListener(signal, listener))
      return
    }
    release()
    process.kill(process.pid, signal)
  }
  process.prependListener(signal, listener)
}

/** The number of listeners of signal-exit for each signal. They end the process when they find no other listeners. */
function ofSignalExit(): number {
  const { __signal_exit_emitter__: third } = process as { __signal_exit_emitter__?: Counted }
  const fourth = (globalThis as { [key: symbol]: Counted | undefined })[Symbol.for('signal-exit emitter')]
  return [third, fourth].reduce((sum, counted) => sum + (Number(counted?.count) || 0), 0)
}
