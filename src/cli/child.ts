import { spawn, type ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { systemClock, type Timer } from '../base/clock.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'

const FORWARDED: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']

/** A command that is run for the user, with this process's standard streams and its signals. */
export class Child {
  readonly #process: ChildProcess
  /**
   * Whether the command has its own process group, so that signals reach everything it starts. At a terminal it has
   * none: it could not read the keyboard, and Ctrl-Z would stop only this process.
   */
  readonly #ownGroup: boolean
  // Accessing `process.stdin` would open it, and the input belongs to the command.
  readonly #atKeyboard = isatty(0)
  readonly #grace: number
  readonly #forward = (name: NodeJS.Signals): void => {
    // The terminal sends these to the command itself.
    if (this.#atKeyboard && (name === 'SIGINT' || name === 'SIGQUIT')) return
    this.#send(name)
  }
  #force: Timer | undefined
  /** Settles when the command has ended, with its exit status: 128 and the number of the signal that ended it. */
  readonly ended: Promise<number>

  /** @param grace maximum time to end after SIGTERM, in milliseconds. */
  constructor(command: readonly string[], environment: Readonly<Record<string, string>>, grace: number) {
    this.#grace = grace
    this.#ownGroup = !this.#atKeyboard
    const [file = '', ...args] = command
    // Registered before the command starts, so that a signal never ends only this process.
    for (const name of FORWARDED) process.on(name, this.#forward)
    this.#process = spawn(file, args, {
      stdio: 'inherit',
      detached: this.#ownGroup,
      env: { ...process.env, ...environment },
    })
    this.ended = new Promise<number>((resolve, reject) => {
      this.#process.on('error', error => reject(cannotStart(file, error)))
      this.#process.on('exit', (status, signal) => {
        // The processes it started must not outlive a loss either.
        if (this.#force && this.#ownGroup) this.#send('SIGKILL')
        resolve(status ?? EXIT.signal + constants.signals[signal ?? 'SIGKILL'])
      })
    }).finally(() => {
      for (const name of FORWARDED) process.off(name, this.#forward)
      this.#force?.cancel()
    })
  }

  /** Sends SIGTERM, and SIGKILL when the grace period is over. */
  terminate(): void {
    if (this.#force) return
    this.#send('SIGTERM')
    this.#force = systemClock.after(this.#grace, () => this.#send('SIGKILL'), true)
  }

  #send(name: NodeJS.Signals): void {
    const { pid } = this.#process
    if (pid === undefined) return
    try {
      process.kill(this.#ownGroup ? -pid : pid, name)
    } catch (error) {
      // The command has ended just now.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

function cannotStart(file: string, { code, message }: NodeJS.ErrnoException): CommandError {
  return code === 'ENOENT'
    ? new CommandError(`command not found: ${file}`, EXIT.notFound)
    : new CommandError(`can't start ${file}: ${message}`, EXIT.notStarted)
}
